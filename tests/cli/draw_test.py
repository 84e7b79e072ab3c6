"""How many examples take part: what is drawn where nobody says, what --draw says, and more than there is."""
import json

import support
from digits import DigitsTest
from pair import images
from support import read_safetensors, write_safetensors

ALL = "and all of them were used"


class Draw(DigitsTest):
    def examples(self, out):
        return self.record(out)["examples"]

    def plan(self, *more, **changed):
        done = self.theseus(*self.words("plan", **changed), "--json", "--quiet", *more)
        return json.loads(done.stdout)

    def test_default_is_960(self):
        many = self.models / "many.safetensors"
        write_safetensors(many, {"pixel_values": images(1000)})
        self.assertEqual(self.plan(examples=many)["examples"], {"used": 960, "of": 1000, "seed": 0})
        text = self.theseus(*self.words("plan", examples=many), "--quiet").stdout
        text += self.theseus(*self.words("plan", examples=many)).stdout
        self.assertIn("960 of 1000", text)
        self.assertEqual(self.plan("--draw", "all", examples=many)["examples"]["used"], 1000)
        self.assertEqual(self.plan("--batches", "31", examples=many)["examples"]["used"], 992)
        drawn = self.examples(self.carry(out="default", examples=many))
        self.assertEqual((drawn["sequences"], drawn["available"], drawn["seed"]), (960, 1000, 0))
        self.assert_same_tensors("default", self.carry("--draw", "960", out="same", examples=many))

    def assert_same_tensors(self, left, right):
        self.assertEqual(read_safetensors(self.here / left / "model.safetensors"),
                         read_safetensors(right / "model.safetensors"))

    def test_draw(self):
        """By the seed, from tensors and from data, and a recipe repeats it."""
        for name, data in (("t", self.models / "images.safetensors"), ("d", self.models / "digits")):
            some = self.carry("--draw", "10", out=name, examples=data)
            self.assertEqual(self.examples(some)["sequences"], 10)
            self.theseus("run", some / "recipe.yaml", "--out", self.here / f"{name}-again", "--quiet")
            self.assert_same_files(some, self.here / f"{name}-again")
            other = self.carry("--draw", "10", "--seed", "1", out=f"{name}-other", examples=data)
            self.assertNotEqual(read_safetensors(some / "model.safetensors"),
                                read_safetensors(other / "model.safetensors"))
        for command in ("align", "imitate"):
            out = self.carry("--draw", "12", out=command, command=command,
                             examples=self.models / "digits")
            about = out / ("alignment.json" if command == "align" else "theseus.json")
            self.assertEqual(json.loads(about.read_text())["examples"]["examples"], 12)
        found = json.loads(self.theseus(*self.words("diagnose", examples=self.models / "digits"),
                                        "--draw", "40", "--json", "--quiet").stdout)
        self.assertEqual(found["aligned"] + found["held_out"], 40)

    def test_conflicts(self):
        for more, says in ((["--draw", "5", "--batches", "2"], "--draw and --batches both say"),
                           (["--draw", "all", "--batches", "2"], "--draw and --batches both say"),
                           (["--draw", "5", "--shots", "2"], "--draw and --shots both say"),
                           (["--shots", "5", "--batches", "2"], "--batches has no effect with --shots"),
                           (["--draw", "0"], "'0' is no number of examples"),
                           (["--draw", "-3"], "'-3' is no number of examples"),
                           (["--draw", "some"], "'some' is no number of examples")):
            for command in ("plan", "transport", "align", "diagnose"):
                self.refused(*self.words(command, examples=self.models / "digits"), *more, says=says)
        self.refused(*self.words("imitate"), "--draw", "5", "--batches", "2", says="--draw and --batches")
        self.refused("compare", "--source", self.models / "base", "--target", self.models / "wide",
                     "--setting", "a", self.models / "tuned", self.models / "digits", "--draw", "5",
                     "--batches", "2", "--out", self.here / "c", says="--draw and --batches")
        maps = self.carry(out="maps", command="align")
        self.refused("transport", "--alignment", maps, "--tuned", self.models / "tuned", "--target",
                     self.models / "wide", "--out", self.here / "x", "--draw", "5",
                     says="--draw belongs to the making of the maps")

    def test_more_than_there_is(self):
        """Everywhere all are used, and text and record say so."""
        digits, tensors = self.models / "digits", self.models / "images.safetensors"
        for data, more, says in (
                (tensors, ["--batches", "1000000"], "--batches 1000000 of 32: there are only 16 sequences"),
                (tensors, ["--draw", "17"], "--draw 17: there are only 16 sequences"),
                (digits, ["--batches", "1000000"], "--batches 1000000 of 32: there are only 60 examples"),
                (digits, ["--draw", "61"], "--draw 61: there are only 60 examples"),
                (digits, ["--shots", "50"], "--shots 50: of some classes there are fewer")):
            commands = ("plan", "diagnose", "align", "transport") + (
                () if "--shots" in more else ("imitate",))
            for number, command in enumerate(commands):
                words = [*self.words(command, examples=data, out=f"o{number}"), *more, "--fresh"]
                words = words[:-1] if command in ("plan", "diagnose") else words
                self.assertIn(f"note: {says}", self.theseus(*words).stdout)
                record = json.loads(self.theseus(*words, "--json", "--quiet").stdout)
                self.assertTrue(any(says in note for note in record["notes"]), record["notes"])
        self.assertEqual(self.examples(self.carry("--draw", "61", out="x", examples=digits))["fewer"],
                         f"--draw 61: there are only 60 examples, {ALL}")

    def test_more_to_measure_than_there_is(self):
        digits, says = self.models / "digits", f"--limit 1000: there are only 60 examples, {ALL}"
        update = self.carry("--write", "update", out="u")
        curve = ["--from", "1", "--to", "1", "--limit", "1000", "--data", digits, "--split", "val"]
        probe = ["--task", "probe", "--training", digits / "val", "--training-limit", "900"]
        learnt = f"--training-limit 900: there are only 60 examples to learn from, {ALL}"
        for words, said in (
                (["evaluate", self.models / "tuned", "--data", digits, "--limit", "1000"], says),
                (["evaluate", self.models / "tuned", "--data", digits, *probe], learnt),
                (["sweep", self.models / "wide", "--update", update, *curve], says),
                (["compare", "--source", self.models / "base", "--target", self.models / "wide",
                  "--setting", "d", self.models / "tuned", digits, "--methods", "procrustes", "--alpha",
                  "1", "--limit", "1000", "--batches", "1,90", "--split", "val", "--test", "test",
                  "--out", self.here / "c"], says),
                (["finetune", "--model", self.models / "tuned", "--data", digits, "--split", "val",
                  "--limit", "1000", "--validation", "test", "--validation-limit", "900", "--steps", "1",
                  "--batch-size", "8", "--out", self.here / "f", "--fresh"], says)):
            self.assertIn(said, self.theseus(*words, *(["--quiet"] if words[0] != "finetune" else [])).stdout)
            record = json.loads(self.theseus(*words, "--json", "--quiet").stdout)
            self.assertTrue(any(said in note for note in record["notes"]), record["notes"])
            if words[0] == "compare":
                self.assertTrue(any("--batches 90 of 32: there are only 60" in note
                                    for note in record["notes"]), record["notes"])
            if words[0] == "finetune":
                self.assertTrue(any("--validation-limit 900" in note for note in record["notes"]))
        self.assertEqual(json.loads(self.theseus(
            "evaluate", self.models / "tuned", "--data", digits, "--limit", "60", "--json",
            "--quiet").stdout)["notes"][1:], [])


if __name__ == "__main__":
    support.main()
