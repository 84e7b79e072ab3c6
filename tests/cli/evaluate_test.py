"""theseus evaluate and sweep on pictures of digits, and examples from them."""
import json
import shutil

import support
from digits import DigitsTest
from support import (ROOT, CommandTest, change_json, change_weights, read_safetensors, tensor,
                     write_safetensors)

FIXTURES = ROOT / "tests" / "fixtures" / "evaluate"


class Evaluate(DigitsTest):
    def test_classify(self):
        for name in ("base", "tuned"):
            for split in ("test", "val"):
                record = self.evaluate(self.models / name, "--split", split)
                self.assertEqual((record["task"], record["count"]), ("classify", 60))
                self.assertEqual(round(record["value"] * 60),
                                 self.expected(self.models / name, split))
        few = self.evaluate(self.models / "tuned", "--limit", "10", "--batch-size", "3")
        self.assertEqual(few["count"], 10)
        text = self.theseus("evaluate", self.models / "tuned", "--data", self.models / "digits")
        self.assertIn("accuracy", text.stdout)
        self.assertIn("60 test examples", text.stdout)

    def test_sweep(self):
        """At a strength of 1 it is the transported model, at 0 the target itself."""
        update = self.carry("--write", "update", out="u")
        carried = self.carry(out="m")
        done = self.theseus("sweep", self.models / "wide", "--update", update, "--data",
                            self.models / "digits", "--split", "val", "--step", "0.5", "--to", "2",
                            "--json", "--quiet", "--out", self.here / "curve.json")
        record = json.loads(done.stdout)
        written = json.loads((self.here / "curve.json").read_text())
        self.assertEqual({**written, **record}, written)
        curve = {row["alpha"]: row["value"] for row in record["curve"]}
        self.assertEqual(set(curve), {0, 0.5, 1, 1.5, 2})
        self.assertEqual(curve[0], record["base"]["value"])
        self.assertEqual(curve[1], self.evaluate(carried, "--split", "val")["value"])
        self.assertEqual(record["best"]["value"], max(curve.values()))
        self.assertGreater(curve[1], curve[0] + 0.5)
        maps = self.carry(out="maps", command="align")
        short = ["--data", self.models / "digits", "--split", "val", "--from", "1", "--to", "1",
                 "--json", "--quiet"]
        same = json.loads(self.theseus("sweep", "--target", self.models / "wide", "--alignment", maps,
                                       "--tuned", self.models / "tuned", *short).stdout)
        self.assertEqual(same["curve"][0]["value"], curve[1])
        none = json.loads(self.theseus("sweep", self.models / "wide", "--update", update, *short,
                                       "--scale", "mlp=0", "--scale", "attn=0").stdout)
        self.assertEqual(none["curve"][0]["value"], curve[0])
        away = self.theseus("sweep", self.models / "wide", "--update", update, "--data",
                            self.models / "digits", "--split", "val", "--scale", "blocks=-1", "--step",
                            "1", "--to", "2", "--quiet").stdout
        self.assertIn("best: --alpha 0\n", away)
        self.assertIn("note: the update did not help: no strength from 0 to 2 is better than the "
                      "target alone, which has accuracy", away)
        self.assertIn("accuracy in %", away)
        self.assertNotIn("did not help", done.stdout)
        self.refused("sweep", self.models / "wide", "--update", update, *short, "--scale", "x=1",
                     says="no tensor of the update has 'x'")
        self.refused("sweep", self.models / "wide", "--update", carried, *short,
                     says=["there is none in it", "'transport --write update'"])
        self.refused("sweep", self.models / "wide", "--update", carried / "model.safetensors", *short,
                     says="it is a model and no update")
        self.refused("sweep", self.models / "base", "--update", update, "--data",
                     self.models / "digits", says=["in the update and", "in the model"])

    def test_head(self):
        """The tuned source's head, carried, reads the digits as the target's own copy of it does."""
        maps = self.carry(out="maps", command="align")
        carried = self.carry(out="m")
        head = ["--head-from", self.models / "tuned", "--alignment", maps]
        for model in (self.models / "wide", carried):
            own, other = self.evaluate(model), self.evaluate(model, *head)
            self.assertEqual(other["task"], "classify")
            self.assertAlmostEqual(other["value"], own["value"], delta=0.1)
            self.assertEqual((other["head"]["space"], other["head"]["through"],
                              other["head"]["fitted"]), ("visual.final", "visual.final", False))
        self.assertGreater(other["value"], 0.9)
        swept = json.loads(self.theseus(
            "sweep", self.models / "wide", "--tuned", self.models / "tuned", *head, "--data",
            self.models / "digits", "--split", "test", "--from", "1", "--to", "1", "--json",
            "--quiet").stdout)
        self.assertEqual(swept["best"]["value"], other["value"])
        digits = self.models / "digits"
        self.refused("evaluate", carried, "--data", digits, *head[:2], says="--head-from needs --alignment")
        self.refused("evaluate", carried, "--data", digits, *head[2:], says="there is no --head-from")
        self.refused("evaluate", carried, "--data", digits, *head, "--task", "probe",
                     says="--head-from is for the task classify")
        fewer = self.here / "fewer"
        shutil.copytree(digits / "test", fewer)
        shutil.rmtree(fewer / "digit 9")
        self.refused("evaluate", carried, "--data", fewer, *head,
                     says="the head has 10 classes and the data 9")
        about = json.loads((maps / "alignment.json").read_text())
        about["spaces"] = [row for row in about["spaces"] if row["space"] != "visual.final"]
        (maps / "alignment.json").write_text(json.dumps(about))
        self.refused("evaluate", carried, "--data", digits, *head,
                     says=["no map of visual.final", "theseus align"])

    def test_fitted_head(self):
        """A tuned source without a head: a probe on its features takes its place."""
        maps = self.carry(out="maps", command="align")
        headless = self.here / "headless"
        shutil.copytree(self.models / "tuned", headless)
        change_weights(headless, lambda tensors: [tensors.pop(name) for name in
                                                  ("head.weight", "head.bias")])
        change_json(headless / "config.json", {"num_classes": 0, "model_args.num_classes": 0})
        record = self.evaluate(self.carry(out="m"), "--head-from", headless, "--alignment", maps,
                               "--training", self.models / "digits" / "val")
        self.assertTrue(record["head"]["fitted"])
        self.assertEqual(record["head"]["training"]["examples"], 60)
        self.assertGreater(record["value"], 0.5)
        self.assertIn("a linear probe was fitted", record["notes"][0])

    def test_decay_of_a_probe(self):
        """C is said with the probe: a small one is much decay, so the probe is another."""
        def lost(*more):
            record = self.evaluate(self.models / "tuned", "--task", "probe", "--training",
                                   self.models / "digits" / "val", *more)
            return record["value"]

        self.assertEqual(lost("--probe", "logistic:C=1"), lost())
        self.assertEqual(lost("--probe", "ridge:C=1"), lost("--probe", "ridge"))
        self.assertLess(lost("--probe", "ridge:C=1e-12"), lost("--probe", "ridge"))
        for probe, says in (("ridge:C=x", "--probe: C 'x' is not a number"),
                            ("ridge:C=0", "'0' is not from 1e-12 to 1e+12"),
                            ("ridge:c=1", "'c=1' is not C=NUMBER, as in ridge:C=10"),
                            ("ridge:", "'' is not C=NUMBER"), ("rigde:C=1", "did you mean 'ridge'")):
            self.refused("evaluate", self.models / "tuned", "--data", self.models / "digits",
                         "--task", "probe", "--probe", probe, says=says)

    def test_an_earlier_curve_stays(self):
        """Unless --fresh says so; and what is no curve stays in any case."""
        update, out = self.carry(out="u", write="update"), self.here / "curve.json"
        words = ["sweep", self.models / "wide", "--update", update, "--data", self.models / "digits",
                 "--from", "1", "--to", "1", "--quiet", "--out", out]
        self.theseus(*words)
        self.refused(*words, "--split", "test", says=["curve.json holds an earlier curve", "--fresh"])
        self.theseus(*words, "--split", "test", "--fresh")
        out.write_text("mine")
        self.refused(*words, "--fresh", says="is no curve of 'theseus sweep'")

    def test_notes_on_splits(self):
        """However the split is named: a test split flatters."""
        maps = self.carry(out="maps", command="align", examples=self.models / "digits", split="val")
        words = ["sweep", self.models / "wide", "--alignment", maps, "--tuned", self.models / "tuned",
                 "--from", "1", "--to", "1", "--json", "--quiet", "--threads", "1"]

        def notes(*more):
            return " ".join(json.loads(self.theseus(*words, *more).stdout)["notes"])

        digits = ["--data", self.models / "digits"]
        for more in (["--split", "test"], ["--split", "test[0:80]@3"]):
            self.assertIn("so its score there flatters", notes(*digits, *more))
        self.assertIn("so its score there flatters", notes("--data", self.models / "digits" / "test"))
        self.assertNotIn("flatters", notes(*digits, "--split", "val[0:80]"))

    def test_without_effect(self):
        """Also what is the default, if it is said."""
        update = self.carry(out="u", write="update")
        words = ["sweep", self.models / "wide", "--update", update, "--data", self.models / "digits"]
        self.refused(*words, "--tuned", self.models / "tuned", says="--tuned has no effect with --update")
        self.refused(*words, "--alignment", update, says="--alignment has no effect with --update")
        self.refused(*words, "--source", self.models / "base", says="--source has no effect")
        for option, value, task in [("--new-tokens", "64", "summarise"), ("--probe", "logistic", "probe"),
                                    ("--probe", "ridge:C=2", "probe")]:
            self.refused("evaluate", self.models / "wide", "--data", self.models / "digits", option, value,
                         says=f"{option} is for the task {task}, and the task is classify")
        for split in ("not test", "held out", "not test[0:50]", "validation where there is one"):
            self.refused("evaluate", self.models / "wide", "--data", self.models / "digits", "--split",
                         split, says=[f"unknown split '{split}'", "train[0:80]"])

    def test_compare(self):
        """The baseline is the target as it is; the cell of a method is its sweep and its score."""
        words = ["compare", "--source", self.models / "base", "--target", self.models / "wide",
                 "--setting", "digits", self.models / "tuned", self.models / "digits", "--split",
                 "val", "--step", "1", "--to", "2", "--out", self.here / "c", "--quiet"]
        done = self.theseus(*words, "--methods", "none,copy,procrustes")
        self.assertIn("| method | digits |", done.stdout)
        self.assertIn("needs equal widths: copy", done.stdout)
        record = json.loads((self.here / "c" / "compare.json").read_text())
        rows = {row["method"]: row["cells"]["digits"] for row in record["rows"]}
        self.assertEqual(rows["none"]["value"], self.evaluate(self.models / "wide")["value"])
        self.assertGreater(rows["procrustes"]["value"], 0.9)
        self.assertLess(abs(rows["procrustes"]["norm_error"]), 1e-4)  # isometries
        self.assertEqual([path.name for path in (self.here / "c").glob("examples*")], [])
        out = self.carry("--split", "val", "--alpha", str(rows["procrustes"]["alpha"]),
                         examples=self.models / "digits")
        self.assertEqual(rows["procrustes"]["value"], self.evaluate(out)["value"])
        again = self.theseus(*words, "--methods", "procrustes,none,pad")
        self.assertIn("| pad |", again.stdout)
        self.assertIn("accuracy in percent", again.stdout)
        rows = json.loads((self.here / "c" / "compare.json").read_text())["rows"]
        helpless = [row["method"] for row in rows if row["cells"]["digits"].get("alpha") == 0]
        self.assertEqual(bool(helpless), "the update did not help" in again.stdout)
        self.refused(*words, "--seed", "5", says="holds a comparison of something else")
        self.theseus("report", self.here / "c" / "compare.json", "-o", self.here / "r.html")
        self.assertIn("procrustes", (self.here / "r.html").read_text())

    def test_compare_with_labels(self):
        """Methods that learn from the labels of the pictures, and methods with options."""
        words = ["compare", "--source", self.models / "base", "--target", self.models / "wide",
                 "--setting", "digits", self.models / "tuned", self.models / "digits", "--split",
                 "val", "--alpha", "1", "--out", self.here / "c", "--quiet", "--threads", "1"]
        methods = ["none", "procrustes", "procrustes:mask", "procrustes:center", "gradient-output",
                   "gradient-mask"]
        self.theseus(*words, "--methods", ",".join(methods))
        record = json.loads((self.here / "c" / "compare.json").read_text())
        rows = {row["method"]: row["cells"]["digits"]["value"] for row in record["rows"]}
        self.assertEqual(list(rows), methods[:-1])  # the last one needs equal widths
        self.assertGreater(rows["gradient-output"], rows["none"] + 0.5)
        self.assertGreater(rows["procrustes:mask"], rows["none"])
        self.refused(*words, "--methods", "procrustes:magic", says="'magic' is none of: center")

    def test_examples(self):
        """From pictures: the same maps as from their tensors, and the same digits are read."""
        out = self.carry("--split", "val", examples=self.models / "digits")
        record = self.record(out)["examples"]
        self.assertEqual((record["sequences"], record["source"], record["split"]),
                         (60, "folders", "val"))
        self.assertGreater(self.evaluate(out)["value"], 0.9)
        # Without a word it is not the test split.
        shots = self.carry("--shots", "2", out="k", examples=self.models / "digits")
        self.assertEqual(self.record(shots)["examples"]["split"], "val")
        self.assertEqual(self.record(shots)["examples"]["sequences"], 20)

    def test_refused(self):
        digits = self.models / "digits"
        self.refused("evaluate", self.models / "base", "--data", self.here / "nowhere",
                     says="nowhere")
        self.refused("evaluate", self.models / "base", "--data", digits, "--task", "magic",
                     says=["unknown task 'magic'", "classify", "zero-shot"])
        self.refused("evaluate", self.models / "base", "--data", digits, "--task", "zero-shot",
                     says="takes no text")
        self.refused("evaluate", self.models / "base", "--data", digits, "--task", "perplexity",
                     says="perplexity needs a language model")
        self.refused(*self.words(), "--shots", "2", says="holds tensors")
        empty = self.here / "empty"
        shutil.copytree(digits, empty)
        (empty / "test" / "nothing here").mkdir()
        self.refused("evaluate", self.models / "base", "--data", empty, says="nothing here")

    def test_broken_pictures(self):
        """A few are left out and named; many are an error."""
        broken = self.here / "broken"
        folders = [(broken / f"digit {label}") for label in range(10)]
        for folder in folders:
            folder.mkdir(parents=True)
        for i, label in enumerate(self.labels):
            (folders[label] / f"{i}.ppm").write_bytes(b"P6 28 28 255\n" + self.bytes[i])
        (folders[3] / "torn.ppm").write_bytes(b"P6 28 28 255\nshort")
        done = self.theseus("evaluate", self.models / "tuned", "--data", broken, "--quiet")
        self.assertIn("1 images could not be decoded", done.stdout)
        self.assertIn("torn.ppm", done.stdout)
        self.assertIn(" 120 examples", done.stdout)
        for i in range(5):
            (folders[4] / f"torn{i}.ppm").write_bytes(b"P6 28 28 255\nshort")
        self.refused("evaluate", self.models / "tuned", "--data", broken, "--quiet", says="torn")


class Prompts(CommandTest):
    """CLIP on pictures that bring no prompts: which were used is said, everywhere."""

    def setUp(self):
        super().setUp()
        self.clip = FIXTURES / "clip"
        self.pictures = self.here / "pictures"
        self.pictures.mkdir()
        head, *rows = (FIXTURES / "images.csv").read_text().splitlines()
        lines = [f"{head},split", *(f"{FIXTURES / row},{('val', 'test')[i % 2]}"
                                    for i, row in enumerate(rows))]
        (self.pictures / "images.csv").write_text("\n".join(lines) + "\n")
        self.data = ["--data", self.pictures / "images.csv"]

    def test_evaluate_and_sweep(self):
        said = self.theseus("evaluate", self.clip, *self.data, "--quiet").stdout
        self.assertIn("prompts      a photo of a {c}.\n", said)
        several = [word for i in range(5) for word in ("--template", f"{i} {{c}}")]
        said = self.theseus("evaluate", self.clip, *self.data, "--quiet", *several).stdout
        self.assertIn("prompts      0 {c}, 1 {c}, 2 {c} and 2 more\n", said)
        key = "vision_model.encoder.layers.0.mlp.fc1.weight"
        whole = read_safetensors(self.clip / "model.safetensors")[key]
        update = self.here / "update.safetensors"
        write_safetensors(update, {key: whole})
        words = ["sweep", self.clip, "--update", update, *self.data, "--to", "1", "--step", "1",
                 "--quiet"]
        self.assertIn("prompts      a photo of a {c}.\n", self.theseus(*words).stdout)
        record = json.loads(self.theseus(*words, "--json", *several[:4]).stdout)
        self.assertEqual(record["prompts"], ["0 {c}", "1 {c}"])
        self.assertEqual(record["update"], str(update))

    def test_compare(self):
        tuned = self.here / "tuned"
        shutil.copytree(self.clip, tuned)

        def tune(tensors):
            key = "vision_model.encoder.layers.0.mlp.fc1.weight"
            tensors[key] = tensor("F32", tensors[key].shape,
                                  [1.01 * value for value in tensors[key].values()])
        change_weights(tuned, tune)
        said = self.theseus("compare", "--source", self.clip, "--target", self.clip, "--setting",
                            "shapes", tuned, self.data[1], "--methods", "none,identity", "--alpha",
                            "1", "--out", self.here / "c", "--quiet").stdout
        self.assertIn("prompts of shapes: a photo of a {c}.\n", said)
        record = json.loads((self.here / "c" / "compare.json").read_text())
        self.assertEqual(record["prompts"], {"shapes": ["a photo of a {c}."]})


if __name__ == "__main__":
    support.main()
