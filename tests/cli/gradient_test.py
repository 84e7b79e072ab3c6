"""Methods that learn from labels: gradient-mask, gradient-output, --mask; what is refused, and why."""
import json
import random
import shutil

import support
from pair import KEY, PairTest, images
from support import change_weights, read_safetensors, tensor, write_safetensors


class Gradients(PairTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.labels = [random.Random(7).randrange(10) for _ in range(16)]
        write_safetensors(cls.models / "labelled.safetensors", {
            "pixel_values": images(16), "labels": tensor("I64", [16], cls.labels)})

    def labelled(self, **changed):
        return {"labelled": self.models / "labelled.safetensors", "examples": None, **changed}

    def delta(self, out):
        return read_safetensors(out / "update.safetensors")[KEY].values()

    def test_mask_alone(self):
        """Between equal shapes: the update, or nothing, entry by entry; or with the other sign."""
        plain = self.delta(self.carry("--write", "update", out="plain", method="copy",
                                      examples=None, target=self.models / "base"))
        same = self.labelled(method="gradient-mask", target=self.models / "base")
        out = self.carry("--write", "update", **same)
        kept = self.delta(out)
        self.assertTrue(all(b in (0, a) for a, b in zip(plain, kept)))
        share = sum(b != 0 for b in kept) / sum(a != 0 for a in plain)
        self.assertTrue(0.2 < share < 0.8, share)
        record = self.record(out)
        self.assertEqual({key: record["mask"][key] for key in ("mask", "vote", "asked")},
                         {"mask": "normal", "vote": "mean", "asked": 16})
        row = next(row for row in record["parameters"] if row["parameter"] == KEY)
        self.assertAlmostEqual(row["sign_agreement"], share, places=9)
        self.assertLess(row["norm_error"], 0)
        forced = self.delta(self.carry("--write", "update", "--mask", "force", "--vote", "majority", out="forced", **same))
        self.assertTrue(all(abs(b) in (0, abs(a)) for a, b in zip(plain, forced)))
        self.assertTrue(any(a * b < 0 for a, b in zip(plain, forced)))

    def test_mask_on_top(self):
        plain = self.delta(self.carry("--write", "update", out="plain"))
        kept = self.delta(self.carry("--write", "update", "--mask", "normal", **self.labelled()))
        self.assertTrue(all(b in (0, a) for a, b in zip(plain, kept)))
        self.assertTrue(0.2 < sum(b != 0 for b in kept) / len(kept) < 0.8)

    def test_mask_of_other_examples(self):
        """Maps come from --examples, which need no labels, and the mask from --labelled."""
        few = self.write("few.safetensors", {
            "pixel_values": images(4, seed=5), "labels": tensor("I64", [4], [0, 1, 2, 3])})
        plain = self.delta(self.carry("--write", "update", out="plain"))
        same = self.carry("--write", "update", "--mask", "normal", out="same", labelled=few)
        kept = self.delta(same)
        self.assertTrue(all(b in (0, a) for a, b in zip(plain, kept)))
        self.assertTrue(0.2 < sum(b != 0 for b in kept) / len(kept) < 0.8)
        record = self.record(same)
        self.assertEqual((record["examples"]["sequences"], record["labelled"]["sequences"]), (16, 4))
        self.assertEqual(record["mask"]["asked"], 4)
        self.theseus("run", same / "recipe.yaml", "--out", self.here / "again", "--quiet")
        self.assertEqual(kept, self.delta(self.here / "again"))

    def test_output(self):
        """Also by an alignment, which then needs no labels; and by its own recipe."""
        out = self.carry("--write", "update", method="gradient-output", **self.labelled())
        spaces = [row["space"] for row in self.record(out)["spaces"] if "statistics" in row]
        self.assertEqual(len(spaces), 4 * 6)
        maps = self.carry(command="align", out="maps", method="gradient-output",
                          **self.labelled())
        same = self.carry("--alignment", maps, "--write", "update", out="same", source=None,
                          examples=None)
        self.assertEqual(self.delta(out), self.delta(same))
        self.theseus("run", out / "recipe.yaml", "--out", self.here / "again", "--quiet")
        self.assertEqual(self.delta(out), self.delta(self.here / "again"))

    def test_plan(self):
        for method, says in (("gradient-mask", "the target goes back over 16 examples"),
                             ("gradient-output", "both models go back over 16 examples")):
            done = self.theseus(*self.words("plan", method=method, **self.labelled(
                target=self.models / "base")), "--json")
            self.assertTrue(any(says in note for note in json.loads(done.stdout)["notes"]), done.stdout)

    def test_refused(self):
        words = lambda **changed: self.words(**self.labelled(**changed))  # noqa: E731
        wide = {"method": "gradient-mask", "target": self.models / "base"}
        for method in ("gradient-mask", "gradient-output"):
            self.refused(*self.words(**{**wide, "method": method}), says=[
                f"method {method} learns from labels", "as --labelled"])
            self.refused(*words(**{**wide, "method": method,
                                   "labelled": self.models / "images.safetensors"}),
                         says=["no labels", "labels [n]"])
        self.refused(*self.words(mask="normal"), says=["--mask learns from labels", "as --labelled"])
        self.refused(*words(method="gradient-mask"), says=["needs equal widths", "48", "96"])
        self.refused(*words(), says=["--labelled has no effect with method procrustes", "gradient-mask"])
        self.refused(*self.words(vote="mean"), says="--vote has no effect without --mask")
        self.refused(*self.words(template="a {c}"), says="--template has no effect without --labelled")
        self.refused(*words(mask="soft"), says="'soft' is none of: normal force")
        self.refused(*words(mask="force", vote="max"), says="'max' is none of: mean majority")
        self.refused(*words(mask="force", method="procrustes:mask=normal"),
                     says="--mask and the method procrustes:mask=normal both say the mask")
        self.refused(*words(method="gradient-output", examples=self.models / "images.safetensors"),
                     says="give --labelled alone")
        self.refused(*self.words("diagnose", method="gradient-output"), says="learns from labels")
        self.refused(*self.words("align", method="gradient-mask", **self.labelled(
            target=self.models / "base")), says="'theseus transport'")

    def test_labels_beyond_the_head(self):
        bad = self.here / "bad.safetensors"
        write_safetensors(bad, {"pixel_values": images(4), "labels": tensor("I64", [4], [0, 1, 10, 2])})
        self.refused(*self.words(labelled=bad, examples=None, method="gradient-output"),
                     says="label 10 of the examples is none of 10 classes")


class FromData(support.CommandTest):
    """Labels, class names and answers of examples, through the models' own files."""

    def pair(self, name, key):
        fixture = support.ROOT / "tests" / "fixtures" / "evaluate" / name
        for copy in ("base", "tuned"):
            shutil.copytree(fixture, self.here / copy)
        noise = random.Random(3)

        def tune(tensors):
            values = [value + noise.gauss(0, 0.01) for value in tensors[key].values()]
            tensors[key] = tensor("F32", tensors[key].shape, values)
        change_weights(self.here / "tuned", tune)
        return ["transport", "--source", self.here / "base", "--tuned", self.here / "tuned", "--target",
                self.here / "base", "--write", "update", "--quiet", "--threads", "1"], fixture.parent

    def carried(self, out, key):
        record = json.loads((self.here / out / "theseus.json").read_text())
        row = next(row for row in record["parameters"] if row["parameter"] == key)
        return record, row

    def test_images_with_names(self):
        """CLIP tells classes by their prompts, as `theseus evaluate` does."""
        key = "vision_model.encoder.layers.0.mlp.fc1.weight"
        words, data = self.pair("clip", key)
        words += ["--labelled", data / "images.csv"]
        prompts = ["--template", "a photo of a {c}."]
        self.theseus(*words, *prompts, "--method", "gradient-mask", "--out", self.here / "out")
        record, row = self.carried("out", key)
        measured = json.loads(self.theseus("evaluate", self.here / "base", "--data", data / "images.csv",
                                           *prompts, "--quiet", "--json").stdout)
        self.assertEqual(record["mask"]["asked"], measured["count"])
        self.assertEqual(record["mask"]["right"], round(measured["value"] * measured["count"]))
        self.assertTrue(0.2 < row["sign_agreement"] < 0.8)
        self.theseus(*words, *prompts, "--method", "gradient-output", "--out", self.here / "same")
        record, row = self.carried("same", key)
        self.assertAlmostEqual(row["norm_error"], 0, places=5)
        self.assertTrue(any("statistics" in space for space in record["spaces"]))

    def test_texts(self):
        """A causal model is asked for the text itself, or for the answer behind it."""
        key = "model.layers.0.mlp.up_proj.weight"
        words, data = self.pair("llama", key)
        words += ["--labelled", data / "texts.jsonl"]
        for method in ("gradient-mask", "gradient-output"):
            self.theseus(*words, "--method", method, "--out", self.here / method)
        record, row = self.carried("gradient-mask", key)
        self.assertGreater(record["mask"]["asked"], 4)  # tokens, not texts
        self.assertTrue(0.2 < row["sign_agreement"] < 0.8)
        record, row = self.carried("gradient-output", key)
        self.assertAlmostEqual(row["norm_error"], 0, places=5)


if __name__ == "__main__":
    support.main()
