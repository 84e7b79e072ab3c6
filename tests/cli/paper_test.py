"""Every script of examples/paper, on tiny stand-ins for the paper's models and data."""
import json
import os
import random
import re
import shutil
import subprocess

import support
from digits import DigitsTest
from support import CASES, ROOT, change_json, change_weights, tensor

PAPER = ROOT / "examples" / "paper"
TOKENIZER = ROOT / "tests" / "fixtures" / "data" / "tokenizers" / "t5" / "spiece.model"
VOCABULARY = 400
IMAGES = {"wider", "narrower", "shots", "same_width", "deeper", "ablation", "strengths", "cosine",
          "cost", "bounds", "warm_start"}
TEXTS = {"text_probe", "head_reuse", "summaries"}
NAMES = ["cat", "dog", "house", "garden", "roof", "sea", "shore", "shell", "fox", "people"]


class Paper(DigitsTest):
    def run_script(self, name, *arguments, **environment):
        """Its output; a second run computes nothing anew and says the same."""
        out = self.here / name
        texts = []
        for _ in range(2):
            done = subprocess.run(
                [PAPER / f"{name}.sh", *arguments], capture_output=True, text=True, check=False,
                env={**os.environ, "THESEUS": support.BINARY, "OUT": str(out), "OMP_NUM_THREADS": "1",
                     **{key: str(value) for key, value in environment.items()}})
            self.assertEqual(done.returncode, 0, done.stderr)
            texts.append(done.stdout)
        self.assertEqual(*texts)
        return texts[0], out

    def digits(self, name, *arguments, **environment):
        tuned, data = self.here / "tuned", self.here / "data"
        for place, model in ((tuned, "tuned"), (data, "digits")):
            if not place.exists():
                place.mkdir()
                (place / "digits").symlink_to(self.models / model)
        return self.run_script(name, *arguments, **{
            "SOURCE": self.models / "base", "TARGET": self.models / "wide", "TUNED": tuned,
            "DATA": data, "TASKS": "digits", "LAYOUT": "found", "BATCHES": 1, "SHOTS": 2,
            **environment})

    def table(self, file):
        return {(row["method"], row.get("batches", 0)): row["cells"]["digits"]
                for row in json.loads(file.read_text())["rows"]}

    def test_all_are_run(self):
        scripts = {path.stem for path in PAPER.glob("*.sh")} - {"settings"}
        self.assertEqual(scripts, IMAGES | TEXTS)
        readme = (PAPER / "README.md").read_text()
        for script in scripts:
            self.assertIn(f"`{script}.sh`", readme)

    def test_tables_of_images(self):
        """Scripts that are tables of 'theseus compare'."""
        quick = ["--batch-size", "20", "--quiet", "--to", "1", "--step", "0.5"]
        for script, more in (("wider", {}), ("narrower", {"TOKENS_BATCHES": 1}), ("shots", {}),
                             ("same_width", {"TARGET": self.models / "base"}), ("deeper", {})):
            said, out = self.digits(script, *quick, **more)
            tables = list(out.glob("*/compare.json"))
            self.assertEqual(len(tables), said.count("## "))
            for file in tables:
                cells = self.table(file)
                own = [key for key in cells if key[0] == "procrustes"]
                self.assertTrue(own)
                if file.parent.name not in ("tokens-mean", "tokens-linear"):
                    self.assertGreater(cells[own[0]]["value"], 0.8, file)

    def test_ablation(self):
        said, out = self.digits("ablation", "--batch-size", "20", "--quiet", "--to", "1", "--step",
                                "0.5", BATCHES="1,2")
        cells = self.table(out / "ablation" / "compare.json")
        self.assertEqual(len(cells), 12)
        self.assertLess(abs(cells["procrustes", 2]["norm_error"]), 1e-4)
        self.assertGreater(abs(cells["linear", 2]["norm_error"]), 1e-3)
        self.assertIn("| method | value | norm error |", said)

    def test_strengths(self):
        said, out = self.digits("strengths", "--batch-size", "20", MOST=2, STEP=1)
        record = json.loads((out / "strengths" / "2" / "digits-curve.json").read_text())
        self.assertEqual((record["metric"], [point["alpha"] for point in record["curve"]]),
                         ("accuracy", [0, 1, 2]))
        self.assertEqual(record["best"]["alpha"], 1)
        self.assertNotIn("gradient-mask", said)  # which needs equal shapes
        self.assertIn("<svg", (out / "strengths.html").read_text())

    def test_strengths_of_equal_shapes(self):
        """Also GradFix's curve: what of the update the target's gradients agree with."""
        said, out = self.digits("strengths", "--batch-size", "20", MOST=2, STEP=1, SHOTS=3,
                                TARGET=self.models / "base")
        place = out / "strengths" / "3"
        curve = json.loads((place / "digits-gradient-mask.json").read_text())["curve"]
        self.assertEqual([point["alpha"] for point in curve], [0, 1, 2])
        whole = json.loads((place / "digits-curve.json").read_text())["curve"]
        self.assertEqual(curve[0]["value"], whole[0]["value"])
        self.assertGreater(curve[1]["value"], curve[0]["value"] + 0.05)
        mask = json.loads((place / "digits-masked" / "theseus.json").read_text())["mask"]
        self.assertEqual((mask["mask"], mask["vote"]), ("normal", "majority"))
        self.assertIn("## alpha, gradient-mask, K = 3", said)
        self.assertEqual(len(list(place.glob("*.json"))), 2)

    def test_cosine(self):
        said, out = self.digits("cosine", "--batch-size", "20", BATCHES=2)
        self.assertTrue((out / "cosine.html").exists())
        before, after, centred = map(float, re.search(
            r"\| digits \| (\S+) \| (\S+) \| (\S+) \|", said).groups())
        self.assertLess(before, 0.5)
        self.assertGreater(after, 0.99)
        self.assertGreater(centred, 0.99)

    def test_cost(self):
        said, _ = self.digits("cost", "--batch-size", "20",
                              TARGETS=f"{self.models / 'base'} {self.models / 'wide'}")
        found = re.findall(r"\| (\w+) \| (\d+) \| (\S+) \| (\S+) \| (\S+) \|", said)
        self.assertEqual([row[:3] for row in found], [
            ("base", "48", "procrustes"), ("base", "48", "gradient-mask"),
            ("wide", "96", "procrustes"), ("wide", "96", "procrustes:mask")])
        for *_, seconds, memory in found:
            self.assertGreater(float(memory), 20)
            self.assertLess(float(seconds), 60)

    def test_warm_start(self):
        said, out = self.digits("warm_start", "--batch-size", "20", "--split", "val", "--validation",
                                "test", "--validate-every", "2", "--lr", "1e-4", STEPS=4)
        head, _, *lines = [line for line in said.splitlines() if line.startswith("|")]
        self.assertEqual(head, "| step | cold: accuracy | warm: accuracy | cold: loss | warm: loss |")
        rows = [[float(cell) for cell in line.strip("| ").split("|")] for line in lines]
        self.assertEqual([row[0] for row in rows], [0, 2, 4])
        _, cold, warm, cold_loss, warm_loss = rows[0]
        self.assertGreater(warm, cold + 0.3)
        self.assertLess(warm_loss, cold_loss)
        record = json.loads((out / "warm" / "digits" / "warm" / "theseus.json").read_text())
        self.assertAlmostEqual(record["curve"][0]["value"], warm, places=4)
        self.assertEqual(record["start_from"], str(out / "warm" / "digits" / "update"))
        self.assertIn("Trainings compared", (out / "warm_start.html").read_text())

    def test_bounds(self):
        said, out = self.digits("bounds", TUNED_TARGET=self.here / "tuned")
        self.assertIn("## tuned, old model", said)
        record = json.loads((out / "bounds" / "old" / "digits.json").read_text())
        self.assertEqual(record["value"], self.evaluate(self.models / "tuned")["value"])

    def t5(self, name, seed):
        """A small T5 with the tokenizer's vocabulary; other seeds change every matrix a little."""
        model = self.here / name
        shutil.copytree(CASES / "t5_own_head", model, ignore=shutil.ignore_patterns("golden.*"))
        shutil.copy(TOKENIZER, model / "spiece.model")
        change_json(model / "config.json", {"vocab_size": VOCABULARY})
        words, noise = random.Random(0), random.Random(seed)

        def change(tensors):
            for key, one in tensors.items():
                if key in ("shared.weight", "lm_head.weight"):
                    tensors[key] = tensor("F32", [VOCABULARY, 24],
                                          [words.gauss(0, 1) for _ in range(VOCABULARY * 24)])
                elif seed and len(one.shape) == 2:
                    tensors[key] = tensor("F32", one.shape,
                                          [value + noise.gauss(0, 0.02) for value in one.values()])

        change_weights(model, change)
        return model

    def texts(self, name, task, files, **environment):
        source, target, tuned = (self.t5(word, seed) for seed, word in
                                 enumerate(("t5-source", "t5-target", "t5-tuned")))
        data = self.here / "data" / task
        data.mkdir(parents=True)
        for file, rows in files.items():
            (data / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.here / "tuned").mkdir()
        (self.here / "tuned" / task).symlink_to(tuned)
        return self.run_script(name, "--quiet", SOURCE=source, TARGET=target, TASKS=task,
                               TUNED=self.here / "tuned", DATA=self.here / "data", LAYOUT="task",
                               BATCH_SIZE=8, **environment)

    def inference(self):
        """Whether the second sentence repeats the first: 24 to learn from, 16 to measure on."""
        rows = [{"premise": f"the {NAMES[i % 10]} and the {NAMES[i % 7]}",
                 "hypothesis": f"the {NAMES[i % 10] if i % 2 else NAMES[(i + 3) % 10]}",
                 "label": "entailment" if i % 2 else "not_entailment"} for i in range(40)]
        return {"train.jsonl": rows[:24], "val.jsonl": rows[24:]}

    def test_text_probe(self):
        said, out = self.texts("text_probe", "rte", self.inference(), BATCHES=2)
        record = json.loads((out / "probe-2" / "compare.json").read_text())
        self.assertEqual([row["method"] for row in record["rows"]], ["none", "procrustes"])
        cell = json.loads((out / "probe-2" / "cells" / "rte-procrustes-2.json").read_text())
        self.assertEqual((cell["training"]["examples"], cell["count"]), (16, 16))
        self.assertIn("## the old base, B = 2", said)

    def test_head_reuse(self):
        said, out = self.texts("head_reuse", "rte", self.inference(), BATCHES=2)
        record = json.loads((out / "head" / "2" / "rte.json").read_text())
        self.assertTrue(record["head"]["fitted"])
        self.assertEqual(record["head"]["through"], "encoder.final")
        self.assertEqual([point["alpha"] for point in record["curve"]], [0, 1])
        self.assertIn("alpha 0 is the target alone", said)

    def test_summaries(self):
        articles = [{"article": f"{NAMES[i % 10]} and {NAMES[i % 7]} by the sea",
                     "highlights": NAMES[i % 10], "id": str(i)} for i in range(20)]
        said, out = self.texts("summaries", "cnn_dailymail",
                               {"train.jsonl": articles[:16], "validation.jsonl": articles[16:18],
                                "test.jsonl": articles[18:]}, BATCHES="1,2", ALPHAS="0.5 1")
        self.assertEqual(said.count("## summaries"), 2)
        record = json.loads((out / "summaries-0.5" / "compare.json").read_text())
        self.assertEqual((record["metric"], len(record["rows"])), ("rouge_l", 3))


if __name__ == "__main__":
    support.main()
