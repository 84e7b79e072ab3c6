"""theseus imitate: a target fitted to what fine-tuning did to the source's activations."""
import json
import math
import signal
import subprocess
import time

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
        done = self.theseus(*self.command(examples=many))
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
        self.assertNotIn("--familiar", json.dumps(json.loads(done.stdout)["notes"]))
        update = read_safetensors(self.here / "out" / "update.safetensors")
        self.assertEqual(update[KEY].shape, [96, 96])
        self.theseus("run", self.here / "out" / "recipe.yaml", "--out", self.here / "again", "--quiet")
        self.assert_same_files(self.here / "out", self.here / "again")

    def test_report(self):
        out = self.here / "out"
        self.theseus(*self.command(), "--quiet")
        self.theseus("report", out, "-o", self.here / "r.md")
        text = (self.here / "r.md").read_text()
        self.assertIn("wide was fitted", text)
        self.assertIn("Imitation: tuned by wide", text)
        for layer in self.record(out)["layers"]:
            self.assertIn(layer["module"], text)

    def test_interrupted(self):
        """Killed and interrupted, the same command goes on, and ends with the same bytes."""
        many = self.write("many.safetensors", {"pixel_values": images(96)})
        words = [*self.command(examples=many, batch_size=4), "--save-every", "0"]
        whole = self.here / "whole"
        self.theseus(*words, "--quiet")
        (self.here / "out").rename(whole)
        saved = self.here / "out.partial" / "imitated.safetensors"
        killed = []
        for end in (signal.SIGKILL, signal.SIGINT):
            blocks = self.blocks(saved)
            process = subprocess.Popen([support.BINARY, *words], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            while self.blocks(saved) == blocks and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(end)
            _, said = process.communicate(timeout=60)
            if process.returncode == 0:  # it came to its end first
                break
            killed.append(self.blocks(saved))
            if end == signal.SIGINT:
                self.assertIn(f"work in {self.here / 'out.partial'} is kept", said)
        self.assertTrue(killed)
        if not (self.here / "out").exists():
            self.refused(*words, "--alpha", "0.5", says="alpha was not given and is now 0.5")
            self.theseus(*words, "--quiet")
        self.assert_same_files(self.here / "out", whole)

    @staticmethod
    def blocks(saved):
        if not saved.exists():
            return 0
        return json.loads(read_safetensors(saved)["about"].data)["blocks"]

    def test_refusals(self):
        self.refused(*self.command(write="adapter"), says="'adapter' is none of: model update")
        self.refused(*self.command(examples=self.here / "none"), says="none")
        self.refused(*self.command(tuned=self.models / "base"), says="change")
        self.theseus(*self.command(), "--quiet")
        self.refused(*self.command(), "--seed", "9", says=["exists", "--fresh replaces an earlier output"])


if __name__ == "__main__":
    support.main()
