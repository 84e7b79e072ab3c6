"""theseus imitate: a target fitted to what fine-tuning did to the source's activations."""
import json
import math

import support
from pair import KEY, PairTest, images
from support import read_safetensors


class Imitate(PairTest):
    def command(self, out="out", **changed):
        return self.words("imitate", out, **changed)

    def features(self, model):
        return self.forward(model, {"pixel_values": images(8, seed=5)})["logits"].values()

    def test_model(self):
        """The wide model computes what the base does; fitted, it does as the tuned one does, or nearly."""
        many = self.write("many.safetensors", {"pixel_values": images(96)})
        done = self.theseus(*self.command(calibration=many))
        self.assertRegex(done.stdout, r"blocks.3.mlp.fc2 +change wanted [\d.]+ of the stream")
        self.assertIn("note: no --familiar examples", done.stdout)
        tuned, base, fitted = (self.features(model) for model in (
            self.models / "tuned", self.models / "wide", self.here / "out"))
        self.assertLess(math.dist(fitted, tuned), 0.5 * math.dist(base, tuned))
        record = self.record(self.here / "out")
        self.assertEqual(len(record["layers"]), 8)
        self.assertEqual(record["method"], "imitate")
        changed = read_safetensors(self.here / "out" / "model.safetensors")
        kept = read_safetensors(self.models / "wide" / "model.safetensors")
        self.assertEqual({name for name in kept if kept[name] != changed[name]}, {
            f"blocks.{block}.{layer}.{part}" for block in range(4)
            for layer in ("attn.proj", "mlp.fc2") for part in ("weight", "bias")})

    def test_update_and_recipe(self):
        given = dict(write="update", familiar=self.models / "images.safetensors")
        done = self.theseus(*self.command(**given), "--json")
        self.assertEqual(json.loads(done.stdout)["notes"], [])
        update = read_safetensors(self.here / "out" / "update.safetensors")
        self.assertEqual(update[KEY].shape, [96, 96])
        self.theseus("run", self.here / "out" / "recipe.yaml", "--out", self.here / "again", "--quiet")
        self.assert_same_files(self.here / "out", self.here / "again")

    def test_refusals(self):
        self.refused(*self.command(write="adapter"), says="'adapter' is none of: model update")
        self.refused(*self.command(calibration=self.here / "none"), says="none")
        self.refused(*self.command(tuned=self.models / "base"), says="change")
        self.theseus(*self.command(), "--quiet")
        self.refused(*self.command(), says=["exists", "--fresh replaces an earlier output"])


if __name__ == "__main__":
    support.main()
