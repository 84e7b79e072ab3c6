"""Directions that hold nothing but the rounding of float32 are not counted: batch sizes change nothing."""
import random

import support
from support import read_safetensors, tensor, write_safetensors


class Rounding(support.CommandTest):
    """Two features of the source's text stream are always equal, so what norms write has one direction less."""

    def clip(self, name, change):
        model = self.model("clip_legacy_end", name)
        path = model / "model.safetensors"
        tensors = read_safetensors(path)
        for key, one in tensors.items():
            if one.dtype == "F32" and one.shape:
                tensors[key] = tensor("F32", one.shape, change(key, one))
        write_safetensors(path, tensors)
        return model

    def alike(self, key, one):
        values = one.values()
        if not key.startswith("text_model"):
            return values
        width = one.shape[-1]
        if "embedding" in key:
            for row in range(one.shape[0]):
                values[row * width + 1] = values[row * width]
        elif key.endswith(("out_proj.weight", "fc2.weight")):
            values[width:2 * width] = values[:width]
        elif key.endswith(("out_proj.bias", "fc2.bias")):
            values[1] = values[0]
        return values

    def test_batch_sizes_give_one_update(self):
        draw = random.Random(7)
        source = self.clip("source", self.alike)
        target = self.clip("target", lambda key, one: [
            value + draw.gauss(0, 0.2) for value in one.values()])
        tuned = self.clip("tuned", lambda key, one: [
            value + (draw.gauss(0, 0.01) if "layers" in key and len(one.shape) == 2 else 0)
            for value in self.alike(key, one)])
        ids = [draw.randrange(3, 50) for _ in range(16 * 9)]
        for row in range(16):
            ids[row * 9 + 8] = self.last
        inputs = self.write("inputs.safetensors", {"input_ids": tensor("I64", [16, 9], ids)})
        updates = {}
        for size in (1, 2, 3, 16):
            self.theseus("transport", "--source", source, "--tuned", tuned, "--target", target,
                         "--examples", inputs, "--batch-size", size, "--write", "update",
                         "--partial", "--threads", 1, "--out", self.here / f"of{size}", "--quiet")
            updates[size] = read_safetensors(self.here / f"of{size}" / "update.safetensors")
        for size in (1, 2, 3):
            apart = whole = 0
            for name, one in updates[16].items():
                for ours, theirs in zip(updates[size][name].values(), one.values()):
                    apart += (ours - theirs) ** 2
                    whole += theirs ** 2
            self.assertLess((apart / whole) ** 0.5, 1e-4, size)

    last = 59  # the largest id is where a text ends


if __name__ == "__main__":
    support.main()
