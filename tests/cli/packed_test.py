"""Texts of causal models end to end in rows (--pack), and texts from fields (--wording, --answer)."""
import json
import random
import shutil

import support
from support import CommandTest, change_json, change_weights, read_safetensors, tensor, write_safetensors

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", "good", "bad",
         "day", "night", "the"]
BEGIN, END = WORDS.index("[CLS]"), WORDS.index("[SEP]")
KEY = "model.layers.1.self_attn.q_proj.weight"
ROW = 12
FIELDS = ["--wording", "the {ask}", "--answer", "{reply}"]


class Packed(CommandTest):
    def setUp(self):
        super().setUp()
        generator = random.Random(5)
        self.source, self.tuned, self.target = (
            self.language_model(name, generator, change)
            for name, change in (("source", None), ("tuned", KEY), ("target", "")))
        self.data = self.here / "data"
        self.data.mkdir()
        self.rows = {split: [{"ask": " ".join(generator.choices("abcdefgh", k=4)),
                              "reply": generator.choice(["good day", "bad night"])}
                             for _ in range(count)]
                     for split, count in (("train", 48), ("val", 20), ("test", 20))}
        for split, rows in self.rows.items():
            (self.data / f"{split}.jsonl").write_text(
                "".join(json.dumps(row) + "\n" for row in rows))

    def language_model(self, name, generator, change):
        """`change`: matrices with this in their names get noise."""
        model = self.model("mistral", name)
        (model / "vocab.txt").write_text("\n".join(WORDS) + "\n")
        (model / "tokenizer_config.json").write_text(json.dumps(
            {"tokenizer_class": "BertTokenizer", "do_lower_case": True}))

        def add_noise(tensors):
            for key, one in tensors.items():
                if change is not None and change in key and len(one.shape) == 2:
                    tensors[key] = tensor("F32", one.shape, [value + generator.gauss(0, 0.1)
                                                             for value in one.values()])
        change_weights(model, add_noise)
        return model

    def words(self, command, *more):
        return [command, "--source", self.source, "--target", self.target, "--tuned", self.tuned,
                "--examples", f"jsonl:{self.data}", "--wording", "the {ask}", "--threads", "1",
                "--quiet", *more]

    def json(self, *words):
        return json.loads(self.theseus(*words, "--json").stdout)

    def ids(self, split, answers):
        ids, asked = [], []
        for row in self.rows[split]:
            text = [BEGIN, *map(WORDS.index, ["the", *row["ask"].split()])]
            answer = [*map(WORDS.index, row["reply"].split()), END] if answers else [END]
            ids += text + answer
            asked += [False] * len(text) + [True] * len(answer)
        return ids, asked

    def tail(self, split, answers=False):
        ids, _ = self.ids(split, answers)
        return ids[len(ids) // ROW * ROW:]

    def packed(self, split, answers=False):
        """Rows of ids, and which of them are an answer's; every row has some."""
        ids, asked = self.ids(split, answers)
        count = len(ids) // ROW
        return [[part[i * ROW:(i + 1) * ROW] for i in range(count)] for part in (ids, asked)]

    def test_examples(self):
        """The maps are those of the rows, given as tensors; a part of a row at the end is left out."""
        out = self.here / "out"
        self.theseus(*self.words("transport", "--pack", ROW, "--write", "update", "--out", out))
        record = json.loads((out / "theseus.json").read_text())["examples"]
        rows, _ = self.packed("train")
        self.assertEqual((record["pack"], record["sequences"], record["examples"]),
                         (ROW, len(rows), 48))
        file = self.here / "rows.safetensors"
        shape = [len(rows), ROW]
        write_safetensors(file, {
            "input_ids": tensor("I64", shape, sum(rows, [])),
            "attention_mask": tensor("I64", shape, [1] * (len(rows) * ROW))})
        same = self.here / "same"
        self.theseus("transport", "--source", self.source, "--target", self.target, "--tuned",
                     self.tuned, "--examples", file, "--write", "update", "--out", same,
                     "--threads", "1", "--quiet")
        updates = [read_safetensors(place / "update.safetensors")[KEY].data for place in (out, same)]
        self.assertEqual(*updates)
        self.refused("transport", "--source", self.source, "--target", self.target, "--tuned",
                     self.tuned, "--examples", file, "--pack", ROW, "--out", self.here / "x",
                     says="--pack and --wording are for images and texts")
        self.refused(*self.words("transport", "--pack", ROW, "--max-length", 10, "--out",
                                 self.here / "x"), says="rows of 12 ids are longer than --max-length 10")

    def test_with_labels(self):
        """What learns from labels is asked for answers alone."""
        out = self.here / "out"
        self.theseus(*self.words("transport", "--pack", ROW, "--write", "update", "--out", out,
                                 "--labelled", f"jsonl:{self.data}", "--mask", "normal", "--answer", "{reply}"))
        _, asked = self.packed("train", answers=True)
        mask = json.loads((out / "theseus.json").read_text())["mask"]
        self.assertEqual(mask["asked"], sum(sum(row[1:]) for row in asked))

    def test_diagnose_and_align(self):
        rows, _ = self.packed("train")
        record = self.json(*self.words("diagnose", "--pack", ROW))
        self.assertEqual(record["aligned"] + record["held_out"], len(rows))
        words = self.words("align", "--pack", ROW, "--out", self.here / "maps")
        del words[words.index("--tuned"):words.index("--tuned") + 2]
        self.theseus(*words)
        sweep = ["sweep", "--target", self.target, "--alignment", self.here / "maps", "--tuned",
                 self.tuned, "--data", f"jsonl:{self.data}", "--split", "val", "--step", "1", "--to",
                 "1", "--pack", ROW, "--quiet", *FIELDS]
        curve = self.json(*sweep)
        self.assertEqual((curve["metric"], curve["base"]["count"]),
                         ("perplexity", len(self.packed("val", answers=True)[0])))
        self.refused("transport", "--alignment", self.here / "maps", "--target", self.target,
                     "--tuned", self.tuned, "--out", self.here / "x", "--pack", ROW,
                     says="--pack belongs to the making of the maps")

    def evaluate(self, *more):
        return self.json("evaluate", self.target, "--data", f"jsonl:{self.data}", "--quiet", *more)

    def test_answers(self):
        """Perplexity of answers alone, packed or not; what is cut is counted once."""
        plain = self.evaluate(*FIELDS)
        self.assertEqual((plain["count"], plain["notes"]), (20, []))
        cut = self.evaluate(*FIELDS, "--max-length", "6")
        self.assertEqual(cut["notes"], ["20 texts were longer than --max-length 6 and were cut"])
        rows, asked = self.packed("test", answers=True)
        packed = self.evaluate(*FIELDS, "--pack", ROW)
        self.assertEqual(packed["count"], sum(any(row[1:]) for row in asked))
        self.assertEqual((packed["notes"], self.tail("test", answers=True)), ([], []))
        self.assertEqual(packed["pack"], {"length": ROW, "texts": 20})
        said = self.theseus("evaluate", self.target, "--data", f"jsonl:{self.data}", "--quiet", *FIELDS,
                            "--pack", ROW).stdout
        self.assertIn(f"{packed['count']} test rows of 12 tokens, of 20 texts", said)
        texts = self.evaluate(*FIELDS[:2], "--pack", ROW)
        self.assertEqual(texts["count"], len(self.packed("test")[0]))
        dropped = len(self.tail("test"))
        self.assertEqual(texts["notes"], [f"{dropped} tokens at the end of the packed texts fill no row "
                                          "and were left out"])
        self.assertNotAlmostEqual(packed["value"], texts["value"], places=3)

    def test_context(self):
        """A text is cut where the model's own context ends, or its window, and the reason is said."""
        data = self.here / "long.jsonl"
        data.write_text(json.dumps({"text": " ".join("abcdefgh" * 5)}) + "\n")  # 42 ids with the ends

        def notes(changes, *more):
            change_json(self.target / "config.json", changes)
            return self.json("evaluate", self.target, "--data", data, "--quiet", *more)["notes"]
        self.assertEqual(notes({"max_position_embeddings": 42}), [])
        cut = "1 texts were longer than the {} tokens that the model takes and were cut"
        self.assertEqual(notes({"max_position_embeddings": 41}), [cut.format(41)])
        self.assertEqual(notes({"sliding_window": 24}), [cut.format(24)])
        self.refused("evaluate", self.target, "--data", data, "--max-length", "25",
                     says="--max-length 25: the model takes at most 24 tokens")
        change_json(self.target / "config.json", {"max_position_embeddings": 9000,
                                                  "sliding_window": None})
        data.write_text(json.dumps({"text": " ".join("abcdefgh" * 300), "reply": "good"}) + "\n")
        self.assertEqual(notes({}), [])  # 2402 ids
        change_json(self.target / "config.json", {"max_position_embeddings": 64})
        trained = self.json("finetune", "--model", self.target, "--data", data, "--wording", "{text}",
                            "--validation", "none", "--steps", "1", "--batch-size", "1", "--out",
                            self.here / "out", "--quiet", "--threads", "1")
        self.assertIn("some texts are longer than the 64 tokens that the model takes, and were cut",
                      trained["notes"])
        out = self.here / "carried"
        self.theseus("transport", "--source", self.source, "--target", self.target, "--tuned",
                     self.tuned, "--examples", data, "--max-length", "30", "--quiet", "--out", out)
        self.assertIn("2 texts were longer than --max-length 30 and were cut",
                      json.loads((out / "theseus.json").read_text())["notes"])
        more = [f"word{i}" for i in range(60 - len(WORDS))]  # a name for whatever is written
        (self.target / "vocab.txt").write_text("\n".join([*WORDS, *more]) + "\n")
        written = notes({}, "--answer", "{reply}", "--task", "summarise",
                        "--new-tokens", "14")
        self.assertEqual(written, ["1 texts were longer than the 50 tokens that leave the model room "
                                   "for 14 new ones and were cut"])

    def test_some_answers(self):
        file = self.here / "some.jsonl"
        file.write_text('{"text": "a b", "reply": "good"}\n{"text": "c", "reply": ""}\n')
        self.refused("evaluate", self.target, "--data", file, "--quiet", "--answer", "{reply}",
                     says="1 of 2 texts have no answer; all of them need one, or none")

    def test_compare(self):
        """Fields and rows for maps and measuring; the target's cell is what evaluate says."""
        words = ["compare", "--source", self.source, "--target", self.target, "--setting", "t",
                 self.tuned, f"jsonl:{self.data}", "--methods", "none,procrustes", "--alpha", "1",
                 "--quiet", "--threads", "1"]
        plain = self.json(*words, "--out", self.here / "plain", *FIELDS)
        cell = {row["method"]: row["cells"]["t"]["value"] for row in plain["rows"]}
        self.assertEqual(cell["none"], self.evaluate(*FIELDS)["value"])
        packed = self.json(*words, "--out", self.here / "packed", *FIELDS, "--pack", ROW)
        cell = {row["method"]: row["cells"]["t"]["value"] for row in packed["rows"]}
        self.assertEqual(cell["none"], self.evaluate(*FIELDS, "--pack", ROW)["value"])
        place = self.here / "packed" / "cells" / "t-procrustes-0.json"
        drawn = json.loads(place.read_text())["examples"]
        self.assertEqual((drawn["pack"], drawn["examples"]), (ROW, 48))
        self.refused(*words, "--out", self.here / "plain", "--wording", "{ask}",
                     says="with other options")

    def test_short_training_measures_few_rows(self):
        (self.data / "val.jsonl").write_text("".join(
            json.dumps(row) + "\n" for row in self.rows["val"] * 20))
        words = ["finetune", "--model", self.target, "--data", f"jsonl:{self.data}", "--split", "train",
                 "--validation", "val", "--pack", ROW, *FIELDS, "--steps", "1", "--batch-size", "2",
                 "--threads", "1", "--quiet", "--out"]
        record = self.json(*words, self.here / "few")
        said = "of the packed texts that are measured on the first 100 of "
        self.assertTrue(any(note.startswith(said) for note in record["notes"]), record["notes"])
        record = self.json(*words, self.here / "all", "--validation-limit", "400")
        self.assertFalse(any(note.startswith(said) for note in record["notes"]), record["notes"])

    def test_finetune(self):
        out = self.here / "out"
        words = ["finetune", "--model", self.target, "--data", f"jsonl:{self.data}", "--split",
                 "train", "--validation", "val", "--steps", "12", "--lr", "1e-2", "--threads",
                 "1", "--quiet", "--pack", ROW, *FIELDS]
        record = self.json(*words, "--batch-size", "4", "--out", out)
        rows, _ = self.packed("train", answers=True)
        self.assertEqual(record["pack"], {"length": ROW, "rows": len(rows)})
        self.assertLess(record["best"]["value"], record["curve"][0]["value"])
        again = self.json(*words, "--batch-size", "4", "--out", self.here / "again")
        self.assertEqual([point["value"] for point in record["losses"]],
                         [point["value"] for point in again["losses"]])
        self.refused(*words, "--out", self.here / "x", "--batch-size", "400",
                     says=f"there are only {len(rows)} rows")
        words[words.index("--pack") + 1] = 10  # 432 and 180 ids
        tails = self.json(*words, "--batch-size", "4", "--out", self.here / "tails")["notes"]
        self.assertIn("2 tokens at the end of the packed texts fill no row and were left out", tails)
        done = self.theseus("finetune", "--model", self.target, "--data", f"jsonl:{self.data}", "--split",
                            "train", "--pack", 60, "--batch-size", "1", "--out", self.here / "x",
                            *FIELDS, exit=2)
        self.assertIn("less than one row of 60; give more texts, or shorter rows", done.stderr)
        self.assertIn("--validation names more of them, or none", done.stderr)

    def test_options_that_do_not_apply(self):
        words = ["evaluate", self.target, "--data", f"jsonl:{self.data}", *FIELDS]
        for more, says in ((["--template", "a {c}"], "--template is for the task zero-shot"),
                           (["--new-tokens", "5"], "--new-tokens is for the task summarise"),
                           (["--training", self.data], "--training is for the task probe"),
                           (["--probe", "ridge"], "--probe is for the task probe")):
            self.refused(*words, *more, says=[says, "the task is perplexity"])
        self.refused("finetune", "--model", self.target, "--data", f"jsonl:{self.data}", *FIELDS,
                     "--template", "a {c}", "--out", self.here / "x",
                     says="--template is for models of images and text")
        self.refused(*self.words("transport", "--labelled", f"jsonl:{self.data}", "--mask", "normal", "--answer", "{reply}",
                                 "--template", "a {c}", "--out", self.here / "x"),
                     says="--template is for images")

    def test_refused(self):
        """Models that read texts one by one, and rows that would hold other texts."""
        bert = self.model("bert_bare", "bert")
        (bert / "vocab.txt").write_text("\n".join(WORDS) + "\n")
        data = ["--examples", f"jsonl:{self.data}", "--wording", "{ask}", "--pack", ROW]
        self.refused("align", "--source", bert, "--target", bert, *data, "--out", self.here / "x",
                     says="packed for causal models only")
        (self.target / "vocab.txt").write_text("\n".join([*WORDS[:5], *reversed(WORDS[5:])]) + "\n")
        self.refused("align", "--source", self.source, "--target", self.target, *data, "--out",
                     self.here / "x", says=["--pack", "tokenizers of the two models differ"])
        self.refused("finetune", "--model", self.model("t5_own_head", "t5"), "--data",
                     f"jsonl:{self.data}", "--out", self.here / "x", "--pack", ROW,
                     says="--pack is for causal models")


if __name__ == "__main__":
    support.main()
