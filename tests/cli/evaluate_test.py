"""theseus evaluate and sweep on pictures of digits, and calibration from them."""
import json
import os
import shutil
import subprocess
import sys

import support
from pair import DEMO, PairTest
from support import ROOT, change_json, read_safetensors, tensor, write_safetensors

SIZE = 28


class Digits(PairTest):
    """Noisy digits of the demo as PPM files in class folders; the models' configs say how they are read."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([sys.executable, "-B", DEMO / "digits.py", cls.models], check=True,
                       stdout=subprocess.DEVNULL)
        for name in ("base", "tuned", "wide"):
            change_json(cls.models / name / "config.json", {"pretrained_cfg": {
                "input_size": [3, SIZE, SIZE], "mean": [0, 0, 0], "std": [1, 1, 1],
                "interpolation": "bicubic", "crop_pct": 1.0}})
        labels = json.loads((cls.models / "labels.json").read_text())
        pixels = read_safetensors(cls.models / "test.safetensors")["pixel_values"].values()
        area = SIZE * SIZE
        cls.bytes, cls.labels = [], labels[:120]
        for i, label in enumerate(cls.labels):
            planes = pixels[i * 3 * area:(i + 1) * 3 * area]
            picture = bytes(round(min(max(planes[channel * area + place], 0), 1) * 255)
                            for place in range(area) for channel in range(3))
            cls.bytes.append(picture)
            folder = cls.models / "digits" / ("val" if i % 2 else "test") / f"digit {label}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{i}.ppm").write_bytes(b"P6 %d %d 255\n" % (SIZE, SIZE) + picture)

    def expected(self, model, split):
        """Right answers, from the same 8-bit pixels through theseus forward."""
        chosen = [i for i in range(len(self.labels)) if i % 2 == (split == "val")]
        values = [self.bytes[i][place * 3 + channel] / 255 for i in chosen for channel in range(3)
                  for place in range(SIZE * SIZE)]
        inputs = self.here / "inputs.safetensors"
        write_safetensors(inputs, {"pixel_values": tensor("F32", [len(chosen), 3, SIZE, SIZE],
                                                          values)})
        logits = self.forward(model, inputs)["logits"].values()
        return sum(max(range(10), key=lambda c, n=n: logits[n * 10 + c]) == self.labels[i]
                   for n, i in enumerate(chosen))

    def evaluate(self, model, *more):
        done = self.theseus("evaluate", model, "--data", self.models / "digits", "--json", "--quiet",
                            "--threads", "1", *more)
        return json.loads(done.stdout)

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
        self.assertEqual(record, json.loads((self.here / "curve.json").read_text()))
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
        self.refused("sweep", self.models / "wide", "--update", update, *short, "--scale", "x=1",
                     says="no tensor of the update has 'x'")
        self.refused("sweep", self.models / "base", "--update", update, "--data",
                     self.models / "digits", says=["in the update and", "in the model"])

    def test_compare(self):
        """The baseline is the target as it is; the cell of a method is its sweep and its score."""
        words = ["compare", "--source", self.models / "base", "--target", self.models / "wide",
                 "--setting", "digits", self.models / "tuned", self.models / "digits", "--split",
                 "val", "--step", "1", "--to", "2", "--out", self.here / "c", "--quiet"]
        done = self.theseus(*words, "--methods", "none,identity,procrustes")
        self.assertIn("| method | digits |", done.stdout)
        self.assertIn("needs equal widths: identity", done.stdout)
        record = json.loads((self.here / "c" / "compare.json").read_text())
        rows = {row["method"]: row["cells"]["digits"] for row in record["rows"]}
        self.assertEqual(rows["none"]["value"], self.evaluate(self.models / "wide")["value"])
        self.assertGreater(rows["procrustes"]["value"], 0.9)
        out = self.carry("--split", "val", "--alpha", str(rows["procrustes"]["alpha"]),
                         calibration=self.models / "digits")
        self.assertEqual(rows["procrustes"]["value"], self.evaluate(out)["value"])
        again = self.theseus(*words, "--methods", "procrustes,none,pad")
        self.assertIn("| pad |", again.stdout)
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
        self.theseus(*words, "--methods", ",".join(methods), "--labels")
        record = json.loads((self.here / "c" / "compare.json").read_text())
        rows = {row["method"]: row["cells"]["digits"]["value"] for row in record["rows"]}
        self.assertEqual(list(rows), methods[:-1])  # the last one needs equal widths
        self.assertGreater(rows["gradient-output"], rows["none"] + 0.5)
        self.assertGreater(rows["procrustes:mask"], rows["none"])
        self.refused(*words, "--methods", "procrustes:mask", says=["learns from labels", "--labels"])
        self.refused(*words, "--methods", "procrustes:magic", says="'magic' is none of: center")

    def test_paper(self):
        """Every script of examples/paper that measures images, on the demo's pair instead."""
        tuned, data = self.here / "tuned", self.here / "data"
        for place, model in ((tuned, "tuned"), (data, "digits")):
            place.mkdir()
            (place / "digits").symlink_to(self.models / model)
        scripts = sorted((ROOT / "examples" / "paper").glob("*.sh"))
        self.assertEqual(len(scripts), 8)
        for script in scripts:
            target = {"same_width": "base"}.get(script.stem, "wide")
            if script.stem in ("settings", "text_probe", "summaries"):
                continue
            out = self.here / script.stem
            environment = dict(os.environ, THESEUS=support.BINARY, SOURCE=str(self.models / "base"),
                               TARGET=str(self.models / target), TUNED=str(tuned),
                               DATA=str(data), OUT=str(out), TASKS="digits", LAYOUT="found",
                               BATCHES="1", SHOTS="2")
            done = subprocess.run([script, "--batch-size", "20", "--threads", "1", "--quiet", "--to",
                                   "1", "--step", "0.5"] if script.stem != "strengths" else
                                  [script, "--batch-size", "20", "--threads", "1", "--quiet"],
                                  env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            tables = list(out.glob("*/compare.json"))
            self.assertTrue(tables)
            for table in tables:
                rows = {row["method"]: row["cells"]["digits"]["value"]
                        for row in json.loads(table.read_text())["rows"]}
                self.assertIn("procrustes", rows)

    def test_calibration(self):
        """From pictures: the same maps as from their tensors, and the same digits are read."""
        out = self.carry("--split", "val", calibration=self.models / "digits")
        record = self.record(out)["calibration"]
        self.assertEqual((record["sequences"], record["source"], record["split"]),
                         (60, "folders", "val"))
        self.assertGreater(self.evaluate(out)["value"], 0.9)
        # Without a word it is not the test split.
        shots = self.carry("--shots", "2", out="k", calibration=self.models / "digits")
        self.assertEqual(self.record(shots)["calibration"]["split"], "val")
        self.assertEqual(self.record(shots)["calibration"]["sequences"], 20)

    def test_refused(self):
        digits = self.models / "digits"
        self.refused("evaluate", self.models / "base", "--data", self.here / "nowhere",
                     says="nowhere")
        self.refused("evaluate", self.models / "base", "--data", digits, "--task", "magic",
                     says=["unknown task 'magic'", "classify"])
        self.refused("evaluate", self.models / "base", "--data", digits, "--task", "zero-shot",
                     says="takes no text")
        self.refused("evaluate", self.models / "base", "--data", digits, "--task", "perplexity",
                     says="perplexity needs a language model")
        self.refused(*self.words(calibration=digits), "--split", "val", "--shots", "50",
                     says=["digit", "50"])
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


if __name__ == "__main__":
    support.main()
