"""Configs that are wrong, absurd, or ask for what is not implemented: refused by file and name."""
import json
import resource
import shutil

import support
from support import CASES, ROOT, change_json

OPENCLIP = ROOT / "tests" / "fixtures" / "openclip"


class ConfigTest(support.CommandTest):
    @classmethod
    def tearDownClass(cls):
        # No config makes a command allocate by it: a child's peak, in kB, is that of the program.
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        if peak > 1_500_000:
            raise AssertionError(f"a command took {peak} kB")

    def refuse(self, case, changes, says, file="config.json"):
        """The message holds the config's path and every text of `says`."""
        with self.subTest(changes=changes):
            shutil.rmtree(self.here / "model", ignore_errors=True)
            model = self.model(case)
            change_json(model / file, changes)
            self.refused("inspect", model, says=[
                model / file, *([says] if isinstance(says, str) else says)])


class Values(ConfigTest):
    def test_missing(self):
        for case, key in (("t5_own_head", "d_kv"), ("clip_legacy_end", "vision_config")):
            self.refuse(case, {key: ...}, f"{key} is missing")

    def test_wrong_type(self):
        self.refuse("mistral", {"hidden_size": 24.0}, "hidden_size: expected an integer, found 24.0")
        self.refuse("mistral", {"rms_norm_eps": [1]}, "rms_norm_eps: expected a finite number")
        self.refuse("mistral", {"tie_word_embeddings": 1},
                    "tie_word_embeddings: expected true or false, found 1")
        self.refuse("clip_legacy_end", {"text_config": []},
                    "text_config: expected an object, found a list")
        self.refuse("clip_legacy_end", {"vision_config.hidden_size": {}},
                    "vision_config.hidden_size: expected an integer, found an object")
        self.refuse("mistral", {"model_type": 7}, "model_type: expected a string, found 7")

    def test_absurd_sizes(self):
        for value in (0, -24, 2**31 + 1, 2**63):
            self.refuse("t5_own_head", {"d_model": value}, "d_model")

    def test_many_blocks(self):
        for case, key in (("mistral", "num_hidden_layers"), ("t5_own_head", "num_layers"),
                          ("timm_headless", "model_args.depth")):
            with self.subTest(case=case):
                shutil.rmtree(self.here / "model", ignore_errors=True)
                model = self.model(case)
                change_json(model / "config.json", {key: 10**9})
                self.refused("inspect", model, says="has no tensor")

    def test_shapes_that_the_weights_do_not_have(self):
        model = self.model("mistral")
        change_json(model / "config.json", {"vocab_size": 2**31})
        self.refused("inspect", model, says="the config implies [2147483648, 24]")

    def test_heads(self):
        self.refuse("bert_bare", {"num_attention_heads": 5},
                    "hidden_size by heads: 24 is not a multiple of 5")
        self.refuse("mistral", {"num_key_value_heads": 3},
                    "heads by num_key_value_heads: 4 is not a multiple of 3")
        self.refuse("qwen3_bias", {"head_dim": 9}, "head_dim: 9 is odd")

    def test_patches(self):
        self.refuse("vit_bare", {"image_size": [24, 30]}, "image_size: [24,30] is not implemented")
        self.refuse("vit_bare", {"patch_size": 0}, "patch_size: 0 is not implemented")
        self.refuse("vit_bare", {"image_size": []}, "image_size: the list is empty")
        self.refuse("timm_headless", {"architecture": "vit_base_patch0_224"},
                    "architecture 'vit_base_patch0_224' is not implemented")

    def test_ratio(self):
        self.refuse("timm_headless", {"model_args.mlp_ratio": 1e300},
                    "model_args.mlp_ratio: a width of 24 times 1e+300 is not a size")

    def test_text_that_is_not_an_object(self):
        model = self.model("vit_bare")
        for text, says in (("", "not valid JSON"), ("[]", "a JSON object"),
                           ('{"a": 1, "a": 2}', "the name 'a' appears twice"),
                           ("[" * 100000, "nested deeper than 64 levels"),
                           ('{"model_type": "vit", "x": NaN}', "not valid JSON")):
            (model / "config.json").write_text(text, encoding="latin-1")
            self.refused("inspect", model, says=[model / "config.json", says])

    def test_generation_config(self):
        self.refuse("mistral", {"eos_token_id": "two"},
                    "eos_token_id: expected a list of integers", file="generation_config.json")


class Families(ConfigTest):
    def test_unknown_model_type(self):
        self.refuse("mistral", {"model_type": "mamba"}, [
            'model_type "mamba" is not a known model; known:', "bert: config.json", "qwen3",
            "openclip: open_clip_config.json"])
        self.refuse("mistral", {"model_type": ...}, "neither model_type nor architecture")

    def test_unknown_architecture(self):
        self.refuse("timm_headless", {"architecture": "resnet50"}, 'architecture "resnet50"')
        self.refuse("timm_headless", {"architecture": "vit_so400m_patch14_siglip_224"},
                    ["architecture 'vit_so400m_patch14_siglip_224' is not implemented",
                     "vit_SIZE_patchP_S"])


class NotImplemented(ConfigTest):
    def test_activations(self):
        self.refuse("bert_bare", {"hidden_act": "mish"}, [
            "hidden_act: activation 'mish' is not implemented; known:", "quick_gelu"])
        self.refuse("t5_own_head", {"feed_forward_proj": "gated-mish"}, "feed_forward_proj")

    def test_rope(self):
        rope = "rope_parameters"
        for kind in ("yarn", "dynamic"):
            self.refuse("llama3_rope", {f"{rope}.rope_type": kind}, [
                f"{rope}.rope_type: '{kind}' is not implemented; known: default linear llama3"])
        self.refuse("llama3_rope", {f"{rope}.factor": 0}, "factor must be positive")
        self.refuse("llama3_rope", {f"{rope}.rope_type": "linear", f"{rope}.factor": 0},
                    f"{rope}.factor: 0 is not positive")
        self.refuse("llama3_rope", {f"{rope}.rope_theta": 0}, "rope_theta: 0 is not positive")
        self.refuse("mistral", {"partial_rotary_factor": 0.5}, "partial_rotary_factor: 0.5")

    def test_windows(self):
        # Inputs longer than a sliding window are refused when they come: tests/model.
        self.refuse("qwen2_padded", {"layer_types": ["full_attention", "chunked_attention"]},
                    "layer_types: 'chunked_attention' is not implemented")
        self.refuse("mistral", {"sliding_window": -1}, "sliding_window: -1 is not a size")

    def test_bert(self):
        self.refuse("bert_bare", {"position_embedding_type": "relative_key"},
                    'position_embedding_type: "relative_key" is not implemented')
        self.refuse("bert_bare", {"is_decoder": True}, "is_decoder: true is not implemented")
        self.refuse("adapted_bert", {"architectures": ["BertForTokenClassification"]},
                    ["architectures", "BertForTokenClassification"])

    def test_timm(self):
        self.refuse("timm_headless", {"global_pool": "avg"}, 'global_pool: "avg" is not implemented')
        self.refuse("timm_headless", {"model_args.global_pool": "avg"},
                    'model_args.global_pool: "avg" is not implemented')
        self.refuse("timm_headless", {"model_args.reg_tokens": 4}, "model_args.reg_tokens: 4")
        self.refuse("timm_headless", {"model_args.init_values": 1e-5}, "model_args.init_values")

    def test_openclip(self):
        model = self.here / "model"
        shutil.copytree(OPENCLIP, model)
        plain = (model / "open_clip_config.json").read_text()
        for changes, says in (
                ({"vision_cfg.pool_type": "avg"}, 'vision_cfg.pool_type: "avg" is not implemented'),
                ({"text_cfg.pool_type": "last"}, 'text_cfg.pool_type: "last" is not implemented'),
                ({"vision_cfg.timm_model_name": "vit"}, 'vision_cfg.timm_model_name: "vit"'),
                ({"vision_cfg.mlp_ratio": 1e300}, "vision_cfg.mlp_ratio: a width of 8 times 1e+300"),
                ({"multimodal_cfg": {"width": 1}}, "multimodal_cfg"),
                ({"text_cfg.heads": 3}, "8 is not a multiple of 3")):
            (model / "open_clip_config.json").write_text(plain)
            change_json(model / "open_clip_config.json",
                        {"model_cfg." + key: value for key, value in changes.items()})
            self.refused("inspect", model, says=[model / "open_clip_config.json", says])

    def test_images(self):
        self.refuse("vit_bare", {"num_channels": 1}, "num_channels: 1 is not implemented; expected 3")


class Adapters(ConfigTest):
    def refuse_adapter(self, changes, says):
        self.refuse("adapted_llama_adapter", changes, says, file="adapter_config.json")

    def test_variants(self):
        self.refuse_adapter({"use_dora": True}, "use_dora: true, and ")
        self.refuse_adapter({"lora_bias": True}, "lora_bias: true is not supported")
        self.refuse_adapter({"bias": "all"}, "bias: 'all' is not supported; 'none' is")
        self.refuse_adapter({"init_lora_weights": "pissa"},
                            "init_lora_weights: 'pissa' changes the base model's weights")
        self.refuse_adapter({"peft_type": "IA3"},
                            "peft_type: 'IA3' adapters are not supported; LORA is")
        self.refuse_adapter({"layer_replication": [[0, 2]]}, "layer_replication")
        self.refuse_adapter({"novel_config": {"a": 1}}, "novel_config")

    def test_ranks(self):
        with self.subTest("a rank that the tensors do not have"):
            model = self.model("adapted_llama_adapter")
            change_json(model / "adapter_config.json", {"r": 4})
            self.refused("inspect", model, says=["has rank 3", "adapter_config.json: r", "say 4"])
        self.refuse_adapter({"r": "three"}, 'r: expected an integer, found "three"')
        self.refuse_adapter({"lora_alpha": ...}, "lora_alpha is missing")

    def test_patterns(self):
        self.refuse_adapter({"alpha_pattern": {"(": 1}}, [
            "alpha_pattern: '(' is not a regular expression"])
        self.refuse_adapter({"alpha_pattern": {"(" * 100000: 1}}, "a pattern of 100000 characters")
        for pattern, scale in (({"q_proj": 1, ".*_proj": 2}, 1), ({".*_proj": 2, "q_proj": 1}, 2)):
            adapter = self.model("adapted_llama_adapter", f"first{scale}")  # PEFT's is the first
            change_json(adapter / "adapter_config.json", {"alpha_pattern": pattern})
            found = json.loads(self.theseus("inspect", "--json", "--parameters", adapter).stdout)
            scales = {one["name"]: one["scale"] for one in found["parameters"] if "rank" in one}
            self.assertAlmostEqual(scales["model.layers.0.self_attn.q_proj"], scale / 3 ** 0.5)
        model = self.model("adapted_llama_adapter", "slow")
        change_json(model / "adapter_config.json", {"alpha_pattern": {
            "(((m|.)*)*)*!": 1, "(.*.*.*.*.*.*.*.*)*=x": 2}})
        self.theseus("inspect", model)  # in time

    def test_a_half(self):
        adapter = self.model("adapted_llama_adapter")
        path = adapter / "adapter_model.safetensors"
        tensors = support.read_safetensors(path)
        name = next(name for name in tensors if name.endswith("lora_B.weight"))
        support.write_safetensors(path, {key: one for key, one in tensors.items() if key != name})
        self.refused("inspect", adapter, says="has lora_A but not lora_B")
        support.write_safetensors(path, tensors | {"stray": tensors[name]})
        self.refused("inspect", adapter, says="stray does not begin with base_model.model.")
        support.write_safetensors(path, tensors | {"base_model.model.stray": tensors[name]})
        self.refused("inspect", adapter, says="is neither lora_A, lora_B, lora_magnitude_vector nor one of modules_to_save")
        path.unlink()
        self.refused("inspect", adapter, says=[adapter, "holds no weights"])

    def test_not_finite(self):
        adapter = self.model("adapted_llama_adapter")
        path = adapter / "adapter_model.safetensors"
        tensors = support.read_safetensors(path)
        name = next(name for name in tensors if "lora_A" in name)
        support.write_safetensors(path, tensors | {name: tensors[name].changed(0, float("nan"))})
        inputs = self.golden("adapted_llama")
        self.refused("forward", CASES / "adapted_llama", "--inputs", inputs, "--adapter", adapter,
                     "--out", "out.safetensors", says=["lora_A holds NaN or infinity", adapter])

    def test_not_a_directory(self):
        self.refused("forward", CASES / "adapted_llama", "--golden", self.golden("adapted_llama"),
                     "--adapter", "nowhere", says=["nowhere/adapter_config.json",
                                                   "No such file or directory"])


if __name__ == "__main__":
    support.main()
