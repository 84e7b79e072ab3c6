"""theseus finetune: on pictures of digits, and on texts for small language models."""
import json
import shutil
import signal
import subprocess
import time

import support
from digits import DigitsTest
from support import (
    PROGRAM, CommandTest, change_json, change_weights, read_safetensors, tensor, unprepared)

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz",
         *(f"##{letter}" for letter in "abcdefghijklmnop"), "good", "bad", "day", "night", "the"]


class Digits(DigitsTest):
    """Models that read clean digits learn to read noisy ones."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.write_pictures(cls.models / "noisy", lambda i: "val" if i % 3 == 0 else "train")

    def finetune(self, *more, model="base", out="out", rate="3e-3", steps=30, validation="val",
                 batch="16"):
        done = self.theseus(
            "finetune", "--model", self.models / model, "--data", self.models / "noisy",
            "--validation", validation, "--out", self.here / out, "--steps", steps, "--batch-size",
            batch, "--lr", rate, "--threads", "1", "--json", "--quiet", *more)
        return json.loads(done.stdout)

    def value(self, model, *more):
        done = self.theseus("evaluate", model, "--data", self.models / "noisy", "--split", "val",
                            "--json", "--quiet", "--threads", "1", *more)
        return json.loads(done.stdout)["value"]

    def test_full(self):
        record = self.finetune()
        out = self.here / "out"
        seconds = record.pop("seconds")  # of this run, and so in no file
        self.assertGreater(seconds["learning"], 0)
        self.assertGreater(seconds["measuring"], 0)
        self.assertAlmostEqual(record.pop("examples_per_second") * seconds["learning"], 30 * 16)
        self.assertEqual(record, json.loads((out / "theseus.json").read_text()))
        curve = {point["step"]: point["value"] for point in record["curve"]}
        self.assertEqual(curve[0], self.value(self.models / "base"))
        self.assertEqual(record["best"]["value"], self.value(out))
        self.assertGreater(record["best"]["value"], curve[0] + 0.1)
        self.assertEqual(record["best"]["value"],
                         max(value for step, value in curve.items() if step > 0))
        lines = [json.loads(line) for line in (out / "losses.jsonl").read_text().splitlines()]
        steps = [line for line in lines if "loss" in line]
        self.assertEqual([line["step"] for line in steps], list(range(1, 31)))
        self.assertAlmostEqual(steps[2]["rate"], 3e-3)  # a tenth of 30 steps to rise
        self.assertLess(steps[-1]["loss"], 0.7 * steps[0]["loss"])
        base, tuned = self.base(), read_safetensors(out / "model.safetensors")
        self.assertEqual({name: one.shape for name, one in base.items()},
                         {name: one.shape for name, one in tuned.items()})
        self.assertFalse((self.here / "out.partial").exists())

    def test_measuring_is_a_fraction(self):
        """A short training is measured at its start, at its end, and as often as it pays for."""
        record = self.finetune(steps=10, batch="2", validation="val[0:30]")
        self.assertEqual([point["step"] for point in record["curve"]], [0, 8, 10])
        record = self.finetune("--validate-every", "3", steps=10, batch="2", validation="val[0:30]",
                               out="often")
        self.assertEqual([point["step"] for point in record["curve"]], [0, 3, 6, 9, 10])
        text = self.theseus("finetune", "--model", self.models / "base", "--data",
                            self.models / "noisy", "--steps", "2", "--batch-size", "4", "--out",
                            self.here / "text").stdout
        self.assertRegex(text, r"(?m)^time +[0-9.]+ s of learning \([0-9.e+]+ examples/s\), [0-9.]+ s of measuring$")

    def test_warm_start(self):
        """Carried over and trained on: fewer steps to what the model alone comes to."""
        update = self.carry("--write", "update", out="u")
        merged = self.carry(out="m")
        cold = self.finetune("--validate-every", "1", model="wide", out="cold")
        warm = self.finetune("--validate-every", "1", "--start-from", update, model="wide",
                             out="warm")
        self.assertEqual(warm["curve"][0]["value"], self.value(merged))
        self.assertGreater(warm["curve"][0]["value"], cold["curve"][0]["value"] + 0.3)
        none = self.finetune("--start-from", update, "--alpha", "0", model="wide", out="none", steps=1)
        self.assertEqual(none["curve"][0]["value"], cold["curve"][0]["value"])
        for name in ("report.md", "report.html"):
            self.theseus("report", self.here / "warm", self.here / "cold", "-o", self.here / name)
        text = (self.here / "report.md").read_text()
        self.assertIn("## Trainings compared", text)
        table = text[text.index("### Steps to the same accuracy"):].splitlines()
        self.assertEqual(table[2], "| accuracy | cold | warm (from u) |")
        last = [cell.strip() for cell in table[7].strip("|").split("|")]
        self.assertLess(float(last[2]), float(last[1]))
        self.assertIn("<svg", (self.here / "report.html").read_text())

    def test_what_was_learnt_is_not_lost_to_rounding(self):
        """A base in float16, and steps that are too small for it: what is written is float32."""
        half = self.here / "half"
        shutil.copytree(self.models / "base", half)
        change_weights(half, lambda tensors: tensors.update(
            {name: tensor("F16", one.shape, one.values()) for name, one in tensors.items()}))
        change_json(half / "config.json", {"torch_dtype": "float16"})
        for more, dtype in (([], "F32"), (["--output-dtype", "target"], "F16")):
            out = f"of_{dtype}"
            record = self.finetune("--validate-every", "3", *more, model=half, out=out, rate="1e-6",
                                   steps=3)
            tensors = read_safetensors(self.here / out / "model.safetensors")
            self.assertEqual({one.dtype for one in tensors.values()}, {dtype})
            word = {"F32": "float32", "F16": "float16"}[dtype]
            config = json.loads((self.here / out / "config.json").read_text())
            self.assertEqual(config["torch_dtype"], word)
            self.assertEqual(record["output_dtype"]["written"], word)
            lost = record["output_dtype"]["lost"]
            self.assertTrue(lost < 1e-3 if dtype == "F32" else lost > 0.05, lost)
            self.assertIn("of the update's square", json.dumps(record["notes"]))
            self.assertIn("of the update's square", (self.here / out / "README.md").read_text())
        coarse = self.finetune(model=half, out="coarse")  # the same base, and steps it can hold
        self.assertEqual(coarse["output_dtype"]["written"], "float16")
        self.assertIn("in the base's float16", json.dumps(self.record_of("of_F32")["notes"]))
        # A head that begins anew says nothing of what the rest learnt.
        record = self.finetune("--head", "new", model=half, out="head", rate="1e-6", steps=3)
        self.assertEqual(record["output_dtype"]["written"], "float32")

    def record_of(self, out):
        return json.loads((self.here / out / "theseus.json").read_text())

    def test_nothing_learnt(self):
        """Steps that are lost in the weights are no training, also of a new head or of factors."""
        words = ["finetune", "--model", self.models / "base", "--data", self.models / "noisy",
                 "--validation", "val", "--steps", "2", "--batch-size", "4", "--quiet"]
        half = ["--output-dtype", "float16", "--lr", "1e-9"]
        for more in (["--lr", "1e-30"], half, [*half, "--head", "new"],
                     ["--lr", "1e-30", "--head", "new"], ["--lr", "1e-30", "--lora", "2"],
                     ["--lr", "1e-30", "--lora", "2", "--head", "new"]):
            done = self.theseus(*words, *more, "--out", self.here / "none", exit=2)
            for part in ("nothing of what was learnt arrives", "--lr", "--steps"):
                self.assertIn(part, done.stderr)
            rounded = "rounding to" in done.stderr  # then a wider dtype may hold it
            self.assertEqual("--output-dtype" in done.stderr, rounded)
            self.assertFalse((self.here / "none").exists())
            self.assertEqual((self.here / "none.partial").exists(), rounded)
            shutil.rmtree(self.here / "none.partial", ignore_errors=True)
        self.theseus(*words, "--lr", "1e-3", "--head", "new", "--out", self.here / "head")

    def test_what_was_learnt_outlasts_a_narrow_output(self):
        """Rounding takes it all: the training stays, and the same command with a wider dtype writes it."""
        words = ["finetune", "--model", self.models / "base", "--data", self.models / "noisy",
                 "--steps", "3", "--batch-size", "4", "--lr", "1e-6", "--threads", "1", "--quiet",
                 "--out", self.here / "out"]
        said = self.theseus(*words, "--output-dtype", "bfloat16", exit=2).stderr
        partial = self.here / "out.partial"
        for part in ("rounding to bfloat16 takes all of its square", "--output-dtype",
                     f"is kept in {partial}", "--fresh"):
            self.assertIn(part, said)
        self.assertTrue((partial / "training.safetensors").exists())
        words[words.index("1e-6")] = "1e-5"
        said = self.theseus(*words, exit=2).stderr
        self.assertIn("unfinished work of another command: lr was", said)
        words[words.index("1e-5")] = "1e-6"
        wide = json.loads(self.theseus(*words, "--output-dtype", "float32", "--json").stdout)
        self.assertEqual(wide["resumed"]["at"], "step 4 of 3")
        self.assertFalse(partial.exists())

    def test_what_was_learnt_outlasts_a_step_that_overflows(self):
        """The weights grow a hundred times a step, until a gradient is no number."""
        words = ["finetune", "--model", self.models / "base", "--data", self.models / "noisy",
                 "--validation", "val[0:30]", "--validate-every", "1", "--steps", "40", "--warmup", "0",
                 "--batch-size", "4", "--lr", "1", "--weight-decay", "100", "--save-every", "0",
                 "--threads", "1", "--quiet", "--out", self.here / "out"]
        partial = self.here / "out.partial"
        for _ in range(2):  # nor does the next attempt take it away
            said = self.theseus(*words, exit=3).stderr
            self.assertRegex(said, "while training, step [2-9]")
            self.assertIn(f"is kept in {partial}", said)
            for name in ("training.safetensors", "best.safetensors", "losses.jsonl"):
                self.assertTrue((partial / name).exists(), name)

    def test_a_process_that_nobody_prepared(self):
        """Whatever runs models says so in its record."""
        jobs = {"finetune": ["finetune", "--model", self.models / "base", "--data", self.models / "noisy",
                             "--steps", "1", "--batch-size", "4", "--out", self.here / "finetune"],
                "align": self.words("align", "align", tuned=None),
                "imitate": self.words("imitate", "imitate", examples=self.models / "digits")}
        for name, words in jobs.items():
            done = subprocess.run([PROGRAM, *map(str, words), "--quiet", "--json"], text=True,
                                  env=unprepared(), capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            record = self.here / name / ("alignment.json" if name == "align" else "theseus.json")
            notes = json.loads(record.read_text())["notes"]
            self.assertEqual(sum("was not started by the program theseus" in note for note in notes), 1,
                             (name, notes))

    def test_recipe(self):
        """What was written says how, and 'run' repeats it from anywhere, to the same bytes."""
        self.finetune("--freeze", "mlp", "--freeze", "*.bias", "--freeze=cls_token", steps=3)
        recipe = self.here / "out" / "recipe.yaml"
        text = recipe.read_text()
        self.assertIn("command: finetune", text)
        self.assertNotIn("json", text)
        self.assertNotIn("out:", text)
        elsewhere = self.here / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "val").mkdir()  # no reason to take the split for a path
        self.refused("run", recipe, says="--out is required")
        self.theseus("run", recipe, "--out", self.here / "again", "--quiet", cwd=elsewhere)
        self.assert_same_files(self.here / "out", self.here / "again")
        record = json.loads((self.here / "again" / "theseus.json").read_text())
        self.assertEqual(record["options"]["freeze"], ["mlp", "*.bias", "cls_token"])
        self.assertEqual(record["options"]["validation"], "val")
        self.theseus("run", recipe, "--freeze", "*.bias", "--out", self.here / "less", "--quiet")
        record = json.loads((self.here / "less" / "theseus.json").read_text())
        self.assertEqual(record["options"]["freeze"], "*.bias")

    def test_validation_data(self):
        """Which split of other data is measured on, and that nothing is learnt from it."""
        data = self.here / "data"
        shutil.copytree(self.models / "noisy" / "val", data / "val")
        record = self.finetune(steps=1, validation=data)
        self.assertEqual(record["held_out"]["split"], "val")
        self.assertEqual(record["validation"], f"{data} (val)")
        shutil.copytree(data / "val", data / "train")
        record = self.finetune("--validation-limit", "20", steps=1, validation=data, out="limited")
        self.assertEqual((record["held_out"]["split"], record["held_out"]["examples"]), ("val", 20))
        (data / "val").rename(data / "test")
        words = ["finetune", "--model", self.models / "base", "--data", self.models / "noisy",
                 "--out", self.here / "x", "--quiet", "--validation"]
        self.refused(*words, data, says=["--validation", "no val split", "say which one"])
        record = self.finetune("--validation-split", "test", steps=1, validation=data, out="test")
        self.assertEqual(record["held_out"]["split"], "test")
        self.refused(*words, "val", "--validation-split", "test", says="is for --validation DATA")
        self.refused(*words, "none", "--validation-limit", "5", says="--validation-limit is for")
        part = self.finetune(steps=1, validation="train[80:100]", out="part")
        self.assertEqual(part["held_out"]["split"], "train[80:100]")
        self.assertEqual(part["data"]["examples"], record["data"]["examples"] - part["held_out"]["examples"])
        self.assertRegex(part["validation"], r"noisy \(train\[80:100\]\)")
        # Pictures that are measured on are not learnt from.
        shared = self.models / "noisy" / "train"
        few = self.here / "few.csv"
        paths = sorted(shared.rglob("*.ppm"))
        few.write_text("\n".join(["path,label"] + [f"{one},{one.parent.name}" for one in paths[::3]])
                       + "\n")
        record = self.finetune(steps=1, validation=few, out="apart")
        self.assertEqual(record["data"]["examples"], len(paths) - len(paths[::3]))
        self.assertIn(f"{len(paths[::3])} examples were not learnt from",
                      " ".join(record["notes"]))

    def test_lora(self):
        record = self.finetune("--lora", "4", "--lora-on", "mlp", rate="1e-2")
        out = self.here / "out"
        self.assertEqual(record["write"], "adapter")
        config = json.loads((out / "adapter_config.json").read_text())
        self.assertEqual((config["r"], config["lora_alpha"], config["peft_type"]), (4, 8, "LORA"))
        self.assertEqual(set(config["target_modules"]),
                         {f"blocks.{i}.mlp.{name}" for i in range(4) for name in ("fc1", "fc2")})
        self.assertEqual(record["best"]["value"],
                         self.value(self.models / "base", "--adapter", out))
        self.assertGreater(record["best"]["value"], record["curve"][0]["value"])

    def test_new_head(self):
        """The classes of the data instead of the model's ten; the config says so."""
        few = self.here / "few"
        for split in ("train", "val"):
            for label in (1, 7, 8):
                shutil.copytree(self.models / "noisy" / split / f"digit {label}",
                                few / split / f"digit {label}")
        words = ["finetune", "--model", self.models / "tuned", "--data", few, "--validation", "val",
                 "--out", self.here / "out", "--threads", "1", "--steps", "30", "--batch-size", "8",
                 "--lr", "1e-3", "--quiet", "--json"]
        self.refused(*words, says=["head has 10 classes and the data 3", "--head new"])
        self.refused(*words, "--head", "new", "--lora", "2", says="train without --lora")
        record = json.loads(self.theseus(*words, "--head", "new").stdout)
        out = self.here / "out"
        self.assertEqual(json.loads((out / "config.json").read_text())["num_classes"], 3)
        self.assertEqual(read_safetensors(out / "model.safetensors")["head.weight"].shape, [3, 48])
        done = self.theseus("evaluate", out, "--data", few, "--split", "val", "--json", "--quiet",
                            "--threads", "1")
        self.assertEqual(json.loads(done.stdout)["value"], record["best"]["value"])
        self.assertGreater(record["best"]["value"], 0.8)

    def test_interrupted(self):
        """Ctrl-C, then the same command: the same bytes as without."""
        words = ["finetune", "--model", self.models / "base", "--data", self.models / "noisy",
                 "--validation", "val", "--steps", "60", "--batch-size", "16", "--threads", "1",
                 "--save-every", "0", "--quiet"]
        self.theseus(*words, "--out", self.here / "whole")
        out = self.here / "parts"
        for attempt in range(20):
            process = subprocess.Popen([support.BINARY, *map(str, words), "--out", out],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                if (self.here / "parts.partial" / "training.safetensors").exists():
                    time.sleep(0.05 * (attempt + 1))
                    break
                time.sleep(0.005)
            if attempt == 0 and process.poll() is None:
                second = self.theseus(*words, "--out", out, exit=2)
                self.assertIn("another process is working on", second.stderr)
            process.send_signal(signal.SIGINT)
            message = process.communicate()[1].decode()
            if process.returncode != 0:
                break
            shutil.rmtree(out)  # it was faster than we are
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted", message)
        self.assertFalse(out.exists())
        self.refused(*words[:-1], "--lr", "1", "--quiet", "--out", out,
                     says=["unfinished work of another command", "lr was not given and is now 1"])
        self.theseus(*words, "--resume", "--out", out)
        self.assert_same_files(self.here / "whole", out)

    def test_refused(self):
        words = ["finetune", "--model", self.models / "base", "--data", self.models / "noisy",
                 "--out", self.here / "out", "--quiet"]
        self.refused(*words, "--lr", "0", says="--lr 0 is not positive")
        self.refused(*words, "--lr", "-1", says="--lr -1 is not positive")
        self.refused(*words, "--steps", "0", says="--steps 0")
        self.refused(*words, "--batch-size", "500", says=["--batch-size 500", "examples"])
        self.refused(*words, "--steps", "5", "--warmup", "6", says="more than all 5 steps")
        self.refused(*words, "--freeze", "decoder", says=["nothing is named like 'decoder'", "there"])
        self.refused(*words, "--freeze", "*", says="everything is frozen")
        self.refused(*words, "--head", "zero-shot", says="such as CLIP")
        self.refused(*words, "--head", "other", says="none of: new zero-shot keep")
        self.refused(*words, "--lora-on", "mlp", says="are for --lora")
        self.refused(*words, "--resume", says="no unfinished work")
        self.refused(*words, "--validation", "train", says="that are learnt from")
        self.refused(*words, "--validation", "test", says="test")
        self.refused(*words, "--start-from", self.models / "base", says="")
        self.refused(*words, "--start-from", self.models / "wide", says="wide")
        self.refused(*words[:-2], self.models / "base", says="an input")
        self.refused(*words[:-2], self.here / "no" / "out", says="there is no directory")
        empty = self.here / "empty"
        empty.mkdir()
        self.refused("finetune", "--model", self.models / "base", "--data", empty, "--out",
                     self.here / "out", says="empty")
        many = self.here / "many.csv"
        rows = [f"{path},digit {i % 12}" for i, path in enumerate(
            sorted((self.models / "noisy" / "train").rglob("*.ppm")))]
        many.write_text("\n".join(["path,label", *rows]) + "\n")
        self.refused("finetune", "--model", self.models / "base", "--data", many, "--out",
                     self.here / "out", says=["head has 10 classes and the data 12"])


class Texts(CommandTest):
    """Tiny language models with a vocabulary of letters."""

    def model_with_words(self, case):
        model = self.model(case)
        (model / "vocab.txt").write_text("\n".join(WORDS) + "\n")
        (model / "tokenizer_config.json").write_text(json.dumps(
            {"tokenizer_class": "BertTokenizer", "do_lower_case": True}))
        return model

    def data(self, rows):
        path = self.here / "data.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def finetune(self, model, data, *more, out="out"):
        done = self.theseus("finetune", "--model", model, "--data", data, "--out", self.here / out,
                            "--validation", "none", "--batch-size", "8", "--threads", "1", "--quiet",
                            "--json", *more)
        return json.loads(done.stdout)

    def moods(self):
        return self.data([{"text": f"the {word} {time} {letter}", "label": word}
                          for word in ("good", "bad") for time in ("day", "night")
                          for letter in "abcd"])

    def test_new_head_on_an_encoder(self):
        """A bare BERT becomes one with a head, under the names that transformers gives it."""
        model, data = self.model_with_words("bert_bare"), self.moods()
        record = self.finetune(model, data, "--steps", "40", "--lr", "1e-2")
        self.assertEqual(record["head"], "new")
        self.assertLess(record["losses"][-1]["value"], 0.1)
        out = self.here / "out"
        config = json.loads((out / "config.json").read_text())
        self.assertEqual(config["architectures"], ["BertForSequenceClassification"])
        self.assertEqual(sorted(config["label2id"]), ["bad", "good"])
        names = set(read_safetensors(out / "model.safetensors"))
        self.assertEqual({name.split(".")[0] for name in names}, {"bert", "classifier"})
        done = self.theseus("evaluate", out, "--data", data, "--json", "--quiet")
        self.assertEqual(json.loads(done.stdout)["value"], 1)
        # The same as an adapter that brings the head with it.
        self.finetune(model, data, "--steps", "60", "--lr", "3e-2", "--lora", "2", out="adapter")
        config = json.loads((self.here / "adapter" / "adapter_config.json").read_text())
        self.assertEqual((config["modules_to_save"], config["task_type"]),
                         (["classifier"], "SEQ_CLS"))
        done = self.theseus("evaluate", model, "--adapter", self.here / "adapter", "--task",
                            "classify", "--data", data, "--json", "--quiet")
        self.assertEqual(json.loads(done.stdout)["value"], 1)

    def bare(self):
        """A BERT without pooler, as encoders of sentences are."""
        model = self.model_with_words("bert_bare")
        change_weights(model, lambda tensors: [tensors.pop(name) for name in list(tensors)
                                               if "pooler" in name])
        return model

    def value(self, model, data, *more):
        done = self.theseus("evaluate", model, "--data", data, "--json", "--quiet", *more)
        record = json.loads(done.stdout)
        self.assertEqual(record["task"], "classify")
        return record["value"]

    def test_head_on_a_bare_encoder(self):
        """The head lies beside the encoder, as a module of sentence-transformers, and reads the mean."""
        model, data, out = self.bare(), self.moods(), self.here / "out"
        record = self.finetune(model, data, "--steps", "40", "--lr", "1e-2")
        self.assertEqual(record["head"], "new")
        self.assertIn("mean", record["head_reads"])
        self.assertLess(record["losses"][-1]["value"], 0.1)
        self.assertEqual(set(read_safetensors(model / "model.safetensors")),
                         set(read_safetensors(out / "model.safetensors")))
        config = json.loads((out / "config.json").read_text())
        self.assertEqual(config["architectures"], ["BertModel"])
        modules = json.loads((out / "modules.json").read_text())
        self.assertEqual([(one["path"], one["type"].split(".")[-1]) for one in modules],
                         [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense")])
        about = json.loads((out / "2_Dense" / "config.json").read_text())
        self.assertEqual((about["in_features"], about["out_features"]), (24, 2))
        self.assertEqual(self.value(out, data), 1)
        # What it computes, by hand.
        ids, mask = [[2, 5, 7, 3], [2, 9, 3, 0]], [[1, 1, 1, 1], [1, 1, 1, 0]]
        found = self.forward(out, {
            "input_ids": tensor("I64", [2, 4], sum(ids, [])),
            "attention_mask": tensor("I64", [2, 4], sum(mask, []))})
        dense = read_safetensors(out / "2_Dense" / "model.safetensors")
        hidden = found["last_hidden_state"].values()
        weight, bias = dense["linear.weight"].values(), dense["linear.bias"].values()
        for i, count in enumerate((4, 3)):
            mean = [sum(hidden[(i * 4 + t) * 24 + d] for t in range(count)) / count
                    for d in range(24)]
            for c in range(2):
                logit = bias[c] + sum(weight[c * 24 + d] * mean[d] for d in range(24))
                self.assertAlmostEqual(found["logits"].values()[2 * i + c], logit, places=4)
        # Going on with it begins where it ended; as an adapter the head lies beside that.
        more = self.finetune(out, data, "--steps", "2", "--lr", "1e-5", out="more")
        self.assertEqual(more["head"], "keep")
        self.assertLess(more["losses"][0]["value"], 0.1)
        self.assertEqual(self.value(self.here / "more", data), 1)
        self.finetune(model, data, "--steps", "60", "--lr", "3e-2", "--lora", "2", out="adapter")
        adapter = json.loads((self.here / "adapter" / "adapter_config.json").read_text())
        self.assertEqual(adapter["task_type"], "FEATURE_EXTRACTION")
        self.assertEqual(self.value(model, data, "--adapter", self.here / "adapter"), 1)

    def test_carried_head_beside_an_encoder(self):
        """Through an alignment the head comes with the update; of the same encoder it is the same head."""
        model, data, tuned = self.bare(), self.moods(), self.here / "out"
        self.finetune(model, data, "--steps", "40", "--lr", "1e-2")
        words = ["--target", model, "--quiet"]
        self.theseus("align", "--source", model, *words, "--examples", data, "--out", self.here / "maps")
        for write in ("model", "update"):
            out = self.here / f"carried {write}"
            self.theseus("transport", "--alignment", self.here / "maps", "--tuned", tuned, *words,
                         "--write", write, "--out", out)
            notes = json.loads((out / "theseus.json").read_text())["notes"]
            self.assertTrue(any("the head that lies beside the tuned encoder comes with it" in note
                                for note in notes))
            heads = [read_safetensors(place / "2_Dense" / "model.safetensors")
                     for place in (tuned, out)]
            self.assertLess(support.largest_difference(*(one["linear.weight"] for one in heads)), 1e-4)
        self.assertEqual(self.value(self.here / "carried model", data), 1)
        swept = json.loads(self.theseus("sweep", model, "--update", self.here / "carried update", "--data", data,
                                        "--step", "1", "--to", "1", "--json", "--quiet").stdout)
        self.assertEqual((swept["task"], swept["best"]["value"]), ("classify", 1))
        # Maps that are made on the way are those that the update needs.
        self.theseus("transport", "--source", model, "--tuned", tuned, *words, "--examples", data,
                     "--out", self.here / "alone")
        self.assertFalse((self.here / "alone" / "2_Dense").exists())
        notes = json.loads((self.here / "alone" / "theseus.json").read_text())["notes"]
        self.assertTrue(any("is not carried: that needs an --alignment" in note for note in notes))

    def test_bad_head_beside_an_encoder(self):
        model, data = self.bare(), self.moods()
        self.finetune(model, data, "--steps", "1")
        out, dense = self.here / "out", self.here / "out" / "2_Dense" / "model.safetensors"
        words = ["evaluate", out, "--data", data, "--task", "classify", "--quiet"]
        whole = read_safetensors(dense)
        for tensors, says in [
                ({"linear.weight": tensor("F32", [2, 23], 0)}, ["reads 23", "gives 24"]),
                ({"linear.weight": tensor("F32", [48], 0)}, "has shape [48]"),
                ({"linear.weight": whole["linear.weight"], "linear.bias": tensor("F32", [3], 0)},
                 "linear.bias has shape [3]"),
                ({"linear.weight": tensor("F32", [2, 24], float("nan"))}, "NaN"),
                ({"weight": whole["linear.weight"]}, "linear.weight")]:
            support.write_safetensors(dense, tensors)
            self.refused(*words, says=says)
        support.write_safetensors(dense, whole)
        change_json(out / "2_Dense" / "config.json", {"activation_function": "torch.nn.Tanh"})
        self.refused(*words, says="activation_function")
        change_json(out / "2_Dense" / "config.json", {"activation_function":
                                                      "torch.nn.modules.linear.Identity"})
        change_json(out / "1_Pooling" / "config.json", {"pooling_mode_cls_token": True})
        self.refused(*words, says=["pooling_mode_cls_token", "expected the mean"])
        change_json(out / "1_Pooling" / "config.json", {"pooling_mode_cls_token": False})
        shutil.rmtree(out / "2_Dense")
        self.refused(*words, says="2_Dense")
        for text in ("[", "{}", "[1]", '[{"name": "classifier", "path": "../model"}]'):
            (out / "modules.json").write_text(text)
            self.refused(*words, says="modules.json" if "model" in text else "no classification head")

    def test_encoder_decoder(self):
        model = self.model_with_words("t5_own_head")
        data = self.data([{"text": f"{a} {b}", "answer": b} for a in "abcd" for b in "efgh"])
        words = ["--wording", "{text}", "--answer", "{answer}"]
        record = self.finetune(model, data, "--steps", "30", "--lr", "1e-2", *words)
        self.assertEqual((record["head"], record["metric"]), ("keep", "loss"))
        losses = [point["value"] for point in record["losses"]]
        self.assertLess(losses[-1], 0.6 * losses[0])
        adapter = self.finetune(model, data, "--steps", "30", "--lr", "3e-2", "--lora", "3",
                                "--lora-on", "SelfAttention", *words, out="adapter")
        self.assertLess(adapter["losses"][-1]["value"], adapter["losses"][0]["value"])
        config = json.loads((self.here / "adapter" / "adapter_config.json").read_text())
        self.assertEqual(config["task_type"], "SEQ_2_SEQ_LM")
        self.refused("finetune", "--model", model, "--data", data, "--out", self.here / "x",
                     "--head", "new", *words, says="--head new")

    def test_texts_that_are_measured_are_not_learnt(self):
        """The same text in another line is the same example, also where a tenth is held out."""
        model, rows = self.model_with_words("bert_bare"), [
            {"text": f"the {word} day {letter}", "label": word}
            for word in ("good", "bad") for letter in "abcdefghij"]
        data = self.data(rows + rows)
        done = self.theseus("finetune", "--model", model, "--data", data, "--out", self.here / "out",
                            "--steps", "1", "--batch-size", "4", "--threads", "1", "--quiet", "--json")
        record = json.loads(done.stdout)
        held_out = record["held_out"]["examples"]
        self.assertEqual(held_out, 4)
        self.assertLess(record["data"]["examples"], 36)
        self.assertGreaterEqual(record["data"]["examples"], 32)
        self.assertIn("were not learnt from", record["notes"][0])

    def test_causal(self):
        model = self.model_with_words("mistral")
        data = self.data([{"text": f"the {letter} good day", "answer": letter} for letter in "abcdefgh"])
        whole = self.finetune(model, data, "--steps", "20", "--lr", "1e-2")
        self.assertLess(whole["losses"][-1]["value"], 0.5 * whole["losses"][0]["value"])
        before = self.theseus("evaluate", model, "--data", data, "--json", "--quiet").stdout
        after = self.theseus("evaluate", self.here / "out", "--data", data, "--json", "--quiet").stdout
        self.assertLess(json.loads(after)["value"], 0.5 * json.loads(before)["value"])
        # Only the answer is learnt, after the text.
        answers = self.finetune(model, data, "--steps", "2", "--answer", "{answer}", out="answers")
        self.assertNotEqual(answers["losses"][0]["value"], whole["losses"][0]["value"])
        # A text with another answer is another example.
        same = self.data([{"text": "the good day", "answer": f"{a} {b}"} for a in "abcd" for b in "abcde"])
        done = self.theseus("finetune", "--model", model, "--data", same, "--out", self.here / "same",
                            "--steps", "1", "--batch-size", "4", "--threads", "1", "--quiet", "--json",
                            "--answer", "{answer}")
        self.assertEqual(json.loads(done.stdout)["data"]["examples"], 18)

    def test_refused(self):
        model = self.model_with_words("bert_bare")
        data = self.data([{"text": "the day"}, {"text": "the night"}])
        words = ["finetune", "--model", model, "--data", data, "--out", self.here / "out",
                 "--batch-size", "2", "--validation", "none", "--steps", "2", "--quiet"]
        self.refused(*words, says="no labels to learn from")
        self.refused(*words, "--head", "keep", says=["no head to keep", "--head new"])
        self.data([])
        self.refused(*words, says="data.jsonl")
        change_json(model / "config.json", {"hidden_act": "magic"})
        self.refused(*words, says="magic")


if __name__ == "__main__":
    support.main()
