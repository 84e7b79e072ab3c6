"""Records golden cases with transformers, timm and peft: tiny random models beside what those
libraries compute with them. Each case is a folder as that ecosystem writes it plus golden.safetensors:
input/NAME, expect/NAME, and in/MODULE, out/MODULE of every nn.Linear (first call).

    python3 make_golden.py OUTPUT_DIRECTORY
"""
import json
import pathlib
import sys

import peft
import timm
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(sys.argv[1])


def spread(model, seed):
    """Random weights that exercise every path: gains off 1, biases off 0, logits well apart."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            noise = torch.randn(tensor.shape, generator=generator)
            if tensor.dim() < 2:
                tensor.add_(0.2 * noise)
            else:
                tensor.copy_(noise / tensor[0].numel() ** 0.5)
                if name.endswith("Attention.q.weight"):  # T5 scales here, not in the scores
                    tensor.mul_(0.3)
    return model.eval()


def ids(shape, vocabulary, seed):
    return torch.randint(3, vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def record(folder, model, inputs, outputs, **expect):
    taps = {}

    def hook(name):
        def keep(module, given, result):
            taps.setdefault("in/" + name, given[0].detach().contiguous().clone())
            taps.setdefault("out/" + name, result.detach().contiguous().clone())
        return keep

    hooks = [module.register_forward_hook(hook(name)) for name, module in model.named_modules()
             if isinstance(module, torch.nn.Linear)]
    with torch.no_grad():
        result = model(**inputs) if not isinstance(model, timm.models.VisionTransformer) else \
            {"logits": model(inputs["pixel_values"]),
             "features": model.forward_features(inputs["pixel_values"])}
    for handle in hooks:
        handle.remove()
    golden = {"input/" + k: v.contiguous() for k, v in inputs.items()}
    golden |= {"expect/" + k: result[k].float().contiguous().clone() for k in outputs}
    golden |= {"expect/" + k: v.contiguous().clone() for k, v in expect.items()}
    save_file(golden | taps, str(folder / "golden.safetensors"))


def folder_of(name):
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def causal(name, model_class, config, seed, mask=None, new_tokens=0, **generate):
    folder = folder_of(name)
    model = spread(model_class(config), seed)
    model.save_pretrained(folder)
    inputs = {"input_ids": ids((3, 10), config.vocab_size, seed)}
    if mask is not None:
        inputs["attention_mask"] = mask
    expect = {}
    if new_tokens:
        expect["greedy"] = model.generate(**inputs, max_new_tokens=new_tokens, do_sample=False,
                                          **generate)
    record(folder, model, inputs, ["logits"], **expect)
    return model


SMALL = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
             vocab_size=60, max_position_embeddings=64, initializer_range=0.3)


def padded(left):
    mask = torch.ones(3, 10, dtype=torch.long)
    mask[1, slice(0, 4) if left else slice(6, None)] = 0
    return mask


def language_models():
    causal("mistral", tf.MistralForCausalLM,
           tf.MistralConfig(**SMALL, num_key_value_heads=2, sliding_window=None), 1, padded(False))
    causal("llama3_rope", tf.LlamaForCausalLM, tf.LlamaConfig(
        **(SMALL | dict(hidden_size=64, max_position_embeddings=512)), num_key_value_heads=1,
        tie_word_embeddings=True, attention_bias=True, mlp_bias=True,
        rope_parameters=dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0,
                             high_freq_factor=4.0, original_max_position_embeddings=32)), 2)
    # Left padding: positions count from the first real token while generating; rows end at 7 or 9.
    causal("llama_left_padded", tf.LlamaForCausalLM, tf.LlamaConfig(
        **SMALL, num_key_value_heads=4, eos_token_id=[7, 9, 30, 31, 32], pad_token_id=0,
        rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=2.0)), 3,
        padded(True), new_tokens=12)
    causal("qwen2_padded", tf.Qwen2ForCausalLM, tf.Qwen2Config(
        **SMALL, num_key_value_heads=2, use_sliding_window=False, sliding_window=16,
        tie_word_embeddings=False, eos_token_id=5, pad_token_id=0), 4, padded(False))
    causal("qwen3_bias", tf.Qwen3ForCausalLM, tf.Qwen3Config(
        **SMALL, num_key_value_heads=2, head_dim=10, attention_bias=True,
        tie_word_embeddings=False), 5, padded(True), new_tokens=6, pad_token_id=0)


def t5(name, seed, files, **options):
    folder = folder_of(name)
    config = tf.T5Config(vocab_size=60, d_model=24, d_kv=7, d_ff=40, num_heads=3, num_layers=2,
                         num_decoder_layers=3, decoder_start_token_id=0, **options)
    model = spread(tf.T5ForConditionalGeneration(config), seed)
    if files == "own head":
        with torch.no_grad():
            model.lm_head.weight = torch.nn.Parameter(
                torch.randn(60, 24, generator=torch.Generator().manual_seed(seed + 50)))
    model.save_pretrained(folder)
    if files == "own head":
        tensors = load_file(folder / "model.safetensors")
        tensors["lm_head.weight"] = model.lm_head.weight.detach()
        save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    mask = torch.ones(3, 40, dtype=torch.long)
    mask[2, 25:] = 0
    inputs = {"input_ids": ids((3, 40), 60, seed), "attention_mask": mask,
              "decoder_input_ids": ids((3, 30), 60, seed + 1)}
    greedy = model.generate(input_ids=inputs["input_ids"], attention_mask=mask, max_new_tokens=15,
                            do_sample=False, use_cache=False)  # its cache takes 2 layers for 3
    record(folder, model, inputs, ["logits", "encoder_last_hidden_state"], greedy=greedy)


def bert():
    small = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
                 vocab_size=60, max_position_embeddings=20, hidden_act="gelu_new",
                 layer_norm_eps=1e-6, type_vocab_size=3)
    inputs = {"input_ids": ids((3, 10), 60, 20), "attention_mask": padded(False)}
    folder = folder_of("bert_bare")
    model = spread(tf.BertModel(tf.BertConfig(**small)), 20)
    model.save_pretrained(folder)
    record(folder, model, inputs, ["last_hidden_state", "pooler_output"])
    # What old files look like: a .bin, "bert." before the encoder, gamma and beta, a head we skip.
    folder = folder_of("bert_old_bin")
    whole = spread(tf.BertForPreTraining(tf.BertConfig(**(small | dict(hidden_act="relu")))), 21)
    whole.config.save_pretrained(folder)
    old = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
           for k, v in whole.state_dict().items()}
    old["bert.embeddings.position_ids"] = torch.arange(20).unsqueeze(0)
    torch.save(old, folder / "pytorch_model.bin")
    record(folder, whole.bert, inputs, ["last_hidden_state", "pooler_output"])
    golden = load_file(folder / "golden.safetensors")
    golden = {(k.replace("/", "/bert.", 1) if k.startswith(("in/", "out/")) else k): v
              for k, v in golden.items()}
    save_file(golden, str(folder / "golden.safetensors"))


def images(size, seed):
    return torch.randn(3, 3, size, size, generator=torch.Generator().manual_seed(seed))


def vision():
    small = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
                 image_size=24, patch_size=6)
    folder = folder_of("vit_bare")
    model = spread(tf.ViTModel(tf.ViTConfig(**small, qkv_bias=False, hidden_act="gelu_new")), 30)
    model.save_pretrained(folder)
    record(folder, model, {"pixel_values": images(24, 30)}, ["last_hidden_state", "pooler_output"])
    folder = folder_of("timm_headless")
    arguments = dict(img_size=24, patch_size=6, embed_dim=24, depth=2, num_heads=3, num_classes=0,
                     qkv_bias=False, mlp_ratio=3.0)
    model = spread(timm.create_model("deit_tiny_patch16_224", **arguments), 31)
    config = {"architecture": "deit_tiny_patch16_224", "num_classes": 0, "global_pool": "token",
              "model_args": arguments, "pretrained_cfg": {"input_size": [3, 24, 24]}}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    torch.save({"epoch": 3, "state_dict": {"module." + k: v for k, v in model.state_dict().items()}},
               folder / "pytorch_model.bin")
    record(folder, model, {"pixel_values": images(24, 31)}, ["features"])
    # gelu, an attention mask, and the end-of-text id that old configs get wrong.
    folder = folder_of("clip_legacy_end")
    text = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
                vocab_size=60, max_position_embeddings=12, hidden_act="gelu", eos_token_id=2)
    model = spread(tf.CLIPModel(tf.CLIPConfig(
        text_config=text, vision_config=small | dict(hidden_act="gelu"), projection_dim=16)), 32)
    model.save_pretrained(folder)
    record(folder, model, {"pixel_values": images(24, 32), "input_ids": ids((3, 10), 60, 32),
                           "attention_mask": padded(False)},
           ["image_embeds", "text_embeds", "logits_per_image"])


def adapters():
    def save(name, model, adapter, inputs, outputs, base):
        with torch.no_grad():
            before = {k: base(**inputs)[k].clone() for k in outputs}
        tuned = peft.get_peft_model(base, adapter)
        spread_lora = torch.Generator().manual_seed(70)
        with torch.no_grad():
            for key, tensor in tuned.named_parameters():
                if "lora_magnitude" in key:
                    tensor.mul_(1 + torch.randn(tensor.shape, generator=spread_lora) / 5)
                elif "lora_" in key or "modules_to_save" in key:
                    tensor.copy_(torch.randn(tensor.shape, generator=spread_lora) / 3)
        folder = folder_of(name + "_adapter")
        tuned.eval().save_pretrained(folder)
        (folder / "README.md").unlink(missing_ok=True)
        with torch.no_grad():
            after = tuned(**inputs)
        golden = {"input/" + k: v for k, v in inputs.items()}
        golden |= {"expect/base_" + k: v for k, v in before.items()}
        golden |= {"expect/" + k: after[k].contiguous() for k in outputs}
        save_file(golden, str(folder / "golden.safetensors"))

    base = causal("adapted_llama", tf.LlamaForCausalLM, tf.LlamaConfig(
        **SMALL, num_key_value_heads=2, tie_word_embeddings=False), 40)
    save("adapted_llama", "llama", peft.LoraConfig(
        r=3, lora_alpha=5, use_rslora=True, target_modules=["q_proj", "v_proj", "down_proj", "lm_head"],
        rank_pattern={"down_proj": 5, "layers.1.self_attn.q_proj": 2},
        alpha_pattern={"^model.layers.0.self_attn.v_proj": 11, "down_proj": 4}),
        {"input_ids": ids((2, 7), 60, 41)}, ["logits"], base)
    folder = folder_of("adapted_bert")
    base = spread(tf.BertForSequenceClassification(tf.BertConfig(
        hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
        vocab_size=60, max_position_embeddings=20, num_labels=4)), 42)
    base.save_pretrained(folder)
    save("adapted_bert", "bert", peft.LoraConfig(
        r=2, lora_alpha=3, task_type="SEQ_CLS", target_modules=r".*attention\.self\.(query|value)",
        modules_to_save=["classifier"]), {"input_ids": ids((2, 7), 60, 42)}, ["logits"], base)
    folder = folder_of("adapted_vit")
    base = spread(tf.ViTForImageClassification(tf.ViTConfig(
        hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
        image_size=24, patch_size=6, num_labels=5)), 43)
    base.save_pretrained(folder)
    save("adapted_vit", "vit", peft.LoraConfig(r=2, lora_alpha=4, target_modules="all-linear"),
         {"pixel_values": images(24, 43)}, ["logits"], base)


    folder = folder_of("dora_bert")
    base = spread(tf.BertForSequenceClassification(tf.BertConfig(
        hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
        vocab_size=60, max_position_embeddings=20, num_labels=4)), 44)
    base.save_pretrained(folder)
    save("dora_bert", "bert", peft.LoraConfig(
        r=2, lora_alpha=3, use_dora=True, task_type="SEQ_CLS", modules_to_save=["classifier"],
        target_modules=["query", "value", "output.dense"], alpha_pattern={"value": 5}),
        {"input_ids": ids((2, 7), 60, 44)}, ["logits"], base)


def half_precision():
    """bfloat16 weights in two shards; what they compute in float32."""
    folder = folder_of("llama_bfloat16")
    config = tf.LlamaConfig(**SMALL, num_key_value_heads=2, dtype="bfloat16")
    model = spread(tf.LlamaForCausalLM(config), 60).to(torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="12KB")
    # Loaded anew: .float() would keep rotary frequencies that were rounded to bfloat16.
    model = tf.LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    record(folder, model, {"input_ids": ids((3, 10), 60, 60)}, ["logits"])


if __name__ == "__main__":
    tf.logging.set_verbosity_error()
    language_models()
    t5("t5_tied_gated_silu", 10, "", feed_forward_proj="gated-silu")
    t5("t5_own_head", 11, "own head", feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    t5("t5_few_buckets", 12, "", feed_forward_proj="relu", relative_attention_num_buckets=8,
       relative_attention_max_distance=20)
    bert()
    vision()
    adapters()
    half_precision()
    print("transformers", tf.__version__, "timm", timm.__version__, "peft", peft.__version__,
          "torch", torch.__version__)
