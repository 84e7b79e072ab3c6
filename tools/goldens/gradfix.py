#!/usr/bin/env python3
"""Records what the public reference makes of gradients: signs, masks, and moments of paired gradients.

    gradfix.py REFERENCE OUT [DEVICE]      REFERENCE holds src/merge_and_rebase, OUT is
                                           tests/fixtures/gradient, DEVICE cpu or cuda (default: cuda
                                           where there is one)

Writes OUT/source and OUT/target, two OpenCLIP models with noise for weights, of different widths and patch
grids, and OUT/golden.safetensors:

    source/pixel_values, target/pixel_values, labels, source/classes, target/classes   the inputs
    delta/NAME                       an update of the target
    signs/VOTE/NAME                  compute_gradient_signs, vote mean and majority
    masked/VOTE/MODE/NAME            apply_gradfix_mask
    cross/MODULE, rows/MODULE        collect_bilinear_statistics: S^T R of the gradients of its output
    about                            the versions, as bytes of JSON

The models are built here, as OpenCLIP's vision tower is, so that open_clip is not needed. Needs torch.
"""
import importlib
import json
import math
import pathlib
import struct
import sys
import types

import torch
from torch import nn

BATCHES, BATCH, CLASSES, PATCH = 3, 4, 5, 4
SIZES = {"source": {"width": 8, "image": 12, "embed": 6}, "target": {"width": 12, "image": 8, "embed": 8}}
LAYERS, HEAD, RATIO = 2, 4, 2
TEXT = {"context_length": 4, "vocab_size": 10, "width": 8, "heads": 2, "layers": 1, "mlp_ratio": 2.0}


def write_safetensors(path, tensors):
    words = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.int8: "I8",
             torch.uint8: "U8"}
    # Without gaps between tensors, so the widest come first.
    header, body = {}, b""
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        data = tensor.detach().cpu().contiguous().numpy().tobytes()
        header[name] = {"dtype": words[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, width // HEAD, batch_first=True)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential()
        self.mlp.add_module("c_fc", nn.Linear(width, RATIO * width))
        self.mlp.add_module("gelu", nn.GELU())
        self.mlp.add_module("c_proj", nn.Linear(RATIO * width, width))

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class Visual(nn.Module):
    def __init__(self, width, image, embed):
        super().__init__()
        self.class_embedding = nn.Parameter(torch.zeros(width))
        self.positional_embedding = nn.Parameter(torch.zeros((image // PATCH) ** 2 + 1, width))
        self.proj = nn.Parameter(torch.zeros(width, embed))
        self.conv1 = nn.Conv2d(3, width, PATCH, PATCH, bias=False)
        self.ln_pre, self.ln_post = nn.LayerNorm(width), nn.LayerNorm(width)
        self.transformer = nn.Module()
        self.transformer.resblocks = nn.ModuleList(Block(width) for _ in range(LAYERS))

    def forward(self, images):
        x = self.conv1(images).flatten(2).transpose(1, 2)
        first = self.class_embedding.expand(x.shape[0], 1, -1)
        x = self.ln_pre(torch.cat([first, x], 1) + self.positional_embedding)
        for block in self.transformer.resblocks:
            x = block(x)
        return self.ln_post(x)[:, 0] @ self.proj


class Clip(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.visual = Visual(**sizes)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(10.0)))

    def encode_image(self, images):
        return self.visual(images)


def make_model(sizes):
    model = Clip(sizes).eval()
    for name, parameter in model.visual.named_parameters():
        gain = name.endswith("weight") and "ln_" in name
        parameter.data = torch.randn(parameter.shape) * (0.1 if gain else 0.3) + (1 if gain else 0)
    return model


def save_model(model, sizes, folder):
    """As OpenCLIP stores it, with a text tower that nothing here reads."""
    tensors = dict(model.state_dict())
    width = TEXT["width"]
    shapes = {"token_embedding.weight": [TEXT["vocab_size"], width],
              "positional_embedding": [TEXT["context_length"], width], "ln_final.weight": [width],
              "ln_final.bias": [width], "text_projection": [width, sizes["embed"]]}
    for name, parameter in Block(width).named_parameters():
        shapes[f"transformer.resblocks.0.{name}"] = list(parameter.shape)
    tensors |= {name: torch.randn(shape) * 0.3 for name, shape in shapes.items()}
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "open_clip_model.safetensors", tensors)
    vision = {"image_size": sizes["image"], "layers": LAYERS, "width": sizes["width"], "patch_size": PATCH,
              "head_width": HEAD, "mlp_ratio": float(RATIO)}
    config = {"model_cfg": {"embed_dim": sizes["embed"], "vision_cfg": vision, "text_cfg": TEXT}}
    (folder / "open_clip_config.json").write_text(json.dumps(config, indent=2) + "\n")


def load_reference(checkout):
    """Its modules without its packages' own imports, which ask for libraries that are not needed here."""
    root = checkout / "src" / "merge_and_rebase"
    for name in ("", ".models", ".rebase", ".rebase.methods"):
        package = types.ModuleType("merge_and_rebase" + name)
        package.__path__ = [str(root.joinpath(*name.split(".")))]
        sys.modules["merge_and_rebase" + name] = package
    try:
        import tqdm  # noqa: F401  pylint: disable=unused-import,import-outside-toplevel
    except ImportError:
        for name in ("tqdm", "tqdm.auto"):
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].tqdm = lambda items, **_: items
    if not hasattr(nn.functional, "scaled_dot_product_attention"):  # torch before 2.0
        def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False):
            assert attn_mask is None and not dropout_p and not is_causal
            return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v
        nn.functional.scaled_dot_product_attention = attention
    return [importlib.import_module("merge_and_rebase" + name)
            for name in (".rebase.methods.gradfix", ".rebase.methods.bico", ".rebase.methods.theseus",
                         ".models.grad_recipes")]


def main():
    checkout, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    device = sys.argv[3] if len(sys.argv) > 3 else "cuda" if torch.cuda.is_available() else "cpu"
    gradfix, bico, theseus, recipes = load_reference(checkout)
    torch.manual_seed(0)
    models = {side: make_model(sizes) for side, sizes in SIZES.items()}
    for side, sizes in SIZES.items():
        save_model(models[side], sizes, out / side)
    labels = torch.randint(CLASSES, (BATCHES * BATCH,))
    golden, batches, recipe = {"labels": labels}, {}, {}
    for side, sizes in SIZES.items():
        pixels = torch.randn(BATCHES * BATCH, 3, sizes["image"], sizes["image"])
        features = nn.functional.normalize(torch.randn(CLASSES, sizes["embed"]), dim=1)
        golden |= {f"{side}/pixel_values": pixels, f"{side}/classes": features}
        batches[side] = list(zip(pixels.split(BATCH), labels.split(BATCH)))
        recipe[side] = {reduction: recipes.clip_contrastive_recipe(
            types.SimpleNamespace(normalize=True), [], None, text_features=features, device=device,
            reduction=reduction) for reduction in ("mean", "none")}

    target = models["target"]
    delta = {f"visual.{name}": 0.01 * torch.randn(parameter.shape)
             for name, parameter in target.visual.named_parameters()}
    golden |= {f"delta/{name}": value for name, value in delta.items()}
    for vote, reduction in (("mean", "mean"), ("majority", "none")):
        signs = gradfix.compute_gradient_signs(target, batches["target"], recipe=recipe["target"][reduction],
                                               device=device, vote=vote)
        golden |= {f"signs/{vote}/{name}": sign.to(torch.int8) for name, sign in signs.items()}
        mode = "normal" if vote == "mean" else "force"
        masked = gradfix.apply_gradfix_mask(signs, delta, mask_mode=mode)
        golden |= {f"masked/{vote}/{mode}/{name}": value for name, value in masked.items()}

    for model in models.values():
        theseus._split_fused_qkv_if_needed(model)
    registry = bico.collect_bilinear_statistics(
        models["source"], models["target"], batches["source"], batches["target"],
        recipe["source"]["mean"], recipe["target"]["mean"], device=device, seq_align="interpolate2d",
        n_batches=None)
    for key, store in registry.items():
        if key.endswith(".out"):
            module = key[:-len(".out")] or "visual"
            golden[f"cross/{module}"] = store.at_b
            golden[f"rows/{module}"] = torch.tensor(store.n_samples)
    about = {"torch": torch.__version__, "python": sys.version.split()[0], "device": device}
    golden["about"] = torch.tensor(list(json.dumps(about).encode()), dtype=torch.uint8)
    write_safetensors(out / "golden.safetensors", golden)
    print(json.dumps(about), len(golden), "tensors,", (out / "golden.safetensors").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
