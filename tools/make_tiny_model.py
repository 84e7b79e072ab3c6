#!/usr/bin/env python3
"""Writes a tiny random Llama in the Hugging Face layout, and inputs for it. Standard library only.

usage: make_tiny_model.py DIRECTORY

    DIRECTORY/model/config.json         what transformers would read
    DIRECTORY/model/model.safetensors   float32 weights; the same on every run
    DIRECTORY/inputs.safetensors        input_ids and attention_mask, two prompts of eight tokens

The model knows nothing: its weights are noise. It has every part that a real one has.
"""
import json
import pathlib
import random
import struct
import sys

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 88,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}


def shapes(config):
    """Every parameter's name and shape."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    head = width // config["num_attention_heads"]
    key_width = head * config["num_key_value_heads"]
    yield "model.embed_tokens.weight", [config["vocab_size"], width]
    for block in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{block}."
        yield prefix + "input_layernorm.weight", [width]
        yield prefix + "self_attn.q_proj.weight", [width, width]
        yield prefix + "self_attn.k_proj.weight", [key_width, width]
        yield prefix + "self_attn.v_proj.weight", [key_width, width]
        yield prefix + "self_attn.o_proj.weight", [width, width]
        yield prefix + "post_attention_layernorm.weight", [width]
        yield prefix + "mlp.gate_proj.weight", [inner, width]
        yield prefix + "mlp.up_proj.weight", [inner, width]
        yield prefix + "mlp.down_proj.weight", [width, inner]
    yield "model.norm.weight", [width]
    yield "lm_head.weight", [config["vocab_size"], width]


def weights(config):
    """Norm gains near one, the rest small noise, as freshly initialised models have."""
    generator = random.Random(0)
    for name, shape in shapes(config):
        mean, deviation = (1.0, 0.05) if len(shape) == 1 else (0.0, 0.2)
        count = 1
        for extent in shape:
            count *= extent
        values = [generator.gauss(mean, deviation) for _ in range(count)]
        yield name, "F32", shape, struct.pack(f"<{count}f", *values)


def inputs(config, prompts=2, tokens=8):
    generator = random.Random(1)
    ids = [generator.randrange(3, config["vocab_size"]) for _ in range(prompts * tokens)]
    shape = [prompts, tokens]
    yield "input_ids", "I64", shape, struct.pack(f"<{len(ids)}q", *ids)
    yield "attention_mask", "I64", shape, struct.pack(f"<{len(ids)}q", *[1] * len(ids))


def write_safetensors(path, tensors, metadata):
    """Header length, header (JSON), then the bytes of one tensor after the other."""
    header, parts, offset = {"__metadata__": metadata}, [], 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        parts.append(data)
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    model = directory / "model"
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    write_safetensors(model / "model.safetensors", weights(CONFIG), {"format": "pt"})
    write_safetensors(directory / "inputs.safetensors", inputs(CONFIG), {"format": "pt"})


if __name__ == "__main__":
    main()
