#!/usr/bin/env python3
"""Records what transformers makes of small models, images and texts, for the tests of `evaluate`.

    evaluate.py TOKENIZERS OUT      TOKENIZERS is tests/fixtures/data/tokenizers

Writes OUT/clip and OUT/llama: models with random weights and the small tokenizers;
OUT/images: pictures with OUT/images.csv, whose labels are what CLIP takes them for; OUT/texts.jsonl and
OUT/expected.json: perplexities.
"""
import csv
import json
import pathlib
import shutil
import sys

import numpy
import torch
import transformers
from PIL import Image

CLASSES = ["cat", "dog", "house", "garden", "roof"]
TEMPLATES = ["a photo of a {c}.", "an image of a {c}"]
TEXTS = [("The quick brown fox jumps over the lazy dog.", "a dog"),
         ("She sells sea shells by the sea shore", "sea shells"),
         ("In 1984 there were 12,345 people", "people in 1984"),
         ("hello, world", "print hello")]


def save(model, tokenizer, out):
    model.eval().save_pretrained(out)
    for name in ("tokenizer.json", "tokenizer_config.json", "spiece.model"):
        if (tokenizer / name).is_file():
            shutil.copy(tokenizer / name, out / name)


def clip(tokenizers, out):
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tokenizers / "clip/tokenizer.json"),
                                                pad_token="<|endoftext|>")
    size = len(fast)
    end = fast.convert_tokens_to_ids("<|endoftext|>")
    small = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
    config = transformers.CLIPConfig(
        text_config=dict(small, vocab_size=size, eos_token_id=end, bos_token_id=end - 1,
                         pad_token_id=end, max_position_embeddings=24),
        vision_config=dict(small, image_size=32, patch_size=8), projection_dim=24)
    torch.manual_seed(1)
    model = transformers.CLIPModel(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    save(model, tokenizers / "clip", out / "clip")
    processor = transformers.CLIPImageProcessor(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    processor.save_pretrained(out / "clip")
    weights = []
    for name in CLASSES:
        batch = fast([words.replace("{c}", name) for words in TEMPLATES], padding=True,
                     return_tensors="pt")
        rows = model.text_projection(model.text_model(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).pooler_output)
        rows = (rows / rows.norm(dim=1, keepdim=True)).mean(0)
        weights.append(rows / rows.norm())
    generator = numpy.random.default_rng(3)
    (out / "images").mkdir()
    margins = []
    with open(out / "images.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label"])
        for i in range(40):
            height, width = generator.integers(24, 60, 2)
            coarse = generator.integers(0, 256, (4, 4, 3), dtype=numpy.uint8)
            image = Image.fromarray(coarse).resize((int(width), int(height)), Image.BILINEAR)
            pixels = processor(images=image, return_tensors="pt")["pixel_values"]
            row = model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output)[0]
            scores = torch.stack(weights) @ (row / row.norm())
            first, second = scores.topk(2).values
            if first - second < 1e-3:
                continue  # a pixel's rounding could decide
            name = f"images/{i}.png"
            image.save(out / name)
            margins.append(float(first - second))
            writer.writerow([name, CLASSES[int(scores.argmax())]])
    return {"classes": CLASSES, "templates": TEMPLATES, "images": len(margins),
            "least_margin": min(margins)}


def llama(tokenizers, out):
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tokenizers / "llama3/tokenizer.json"))
    config = transformers.LlamaConfig(
        vocab_size=len(fast), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
        tie_word_embeddings=True)
    torch.manual_seed(2)
    model = transformers.LlamaForCausalLM(config)
    torch.nn.init.normal_(model.model.embed_tokens.weight, std=0.5)
    save(model, tokenizers / "llama3", out / "llama")
    total, count = 0.0, 0
    for text, _ in TEXTS:
        ids = torch.tensor([fast(text)["input_ids"]])
        logits = model(input_ids=ids).logits.double()
        losses = torch.nn.functional.cross_entropy(logits[0, :-1], ids[0, 1:], reduction="none")
        total, count = total + losses.sum().item(), count + losses.numel()
    return {"perplexity": float(numpy.exp(total / count)), "tokens": count}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tokenizers, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True)
    with open(out / "texts.jsonl", "w") as file:
        for text, answer in TEXTS:
            file.write(json.dumps({"text": text, "answer": answer}) + "\n")
    expected = {"transformers": transformers.__version__}
    with torch.no_grad():
        for job in (clip, llama):
            expected[job.__name__] = job(tokenizers, out)
    (out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
