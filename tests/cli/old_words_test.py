"""Words of an earlier theseus: they still work, print a note, and no help names them."""
import json

import support
from digits import DigitsTest
from pair import KEY, images
from support import CASES, read_safetensors, tensor


class OldWords(DigitsTest):
    def run_old(self, *words, exit=0, **options):
        """What it wrote on standard error."""
        return self.theseus(*words, exit=exit, **options).stderr

    def old_words(self, command="transport", calibration=None, **changed):
        """The command with --calibration."""
        return [*self.words(command, examples=None, **changed), "--calibration",
                str(calibration or self.models / "images.safetensors")]

    def update(self, out):
        return read_safetensors(self.here / out / "update.safetensors")[KEY].values()

    def test_transport(self):
        """Each old word says the new one, and gives what the new one gives."""
        for number, (old, new) in enumerate([
                ([], []),
                (["--match", "mean"], ["--tokens", "mean"]),
                (["--match=mean"], ["--tokens", "mean"]),
                (["--stream"], ["--method", "stream"]),
                (["--center", "--whiten", "0.2"], ["--method", "procrustes:center:whiten=0.2"]),
                (["--method=pinv-tikhonov", "--ridge", "0.1"], ["--method", "pinv-tikhonov:ridge=0.1"]),
                (["--rank", "truncate"], ["--method", "procrustes:rank=truncate"]),
                (["--statistics", "rows"], ["--method", "procrustes:statistics=rows"]),
                (["--method", "pinv", "--stream"], ["--method", "pinv:stream"]),
                (["--heads"], ["--head", "carry"]),
                (["--depth", "repeat"], ["--depth", "whole"])]):
            with self.subTest(old=old):
                said = self.run_old(*self.old_words(out=f"old{number}", write="update"), *old)
                self.assertIn("note: --calibration is an old word and still works; it is now --examples", said)
                self.assertIn(" ".join(new if "--tokens" not in new else new[:1]), said)
                done = self.theseus(*self.words(out=f"new{number}", write="update"), *new)
                self.assertNotIn("old word", done.stderr)
                self.assertEqual(self.update(f"old{number}"), self.update(f"new{number}"))
                options = json.loads((self.here / f"old{number}" / "theseus.json").read_text())["options"]
                self.assertEqual(options, self.record(self.here / f"new{number}")["options"])
        quiet = self.theseus(*self.old_words(out="quiet"), "--quiet", "--center=false")
        self.assertEqual(quiet.stdout + quiet.stderr, "")
        self.assertNotIn("method", self.record(self.here / "quiet")["options"])

    def test_values(self):
        said = self.run_old(*self.old_words(out="c", target=self.models / "base"), "--method", "identity")
        self.assertIn("the method identity is an old word and still works; it is now copy", said)
        self.assertIn("--tokens", self.run_old(*self.old_words("plan", calibration="nowhere.safetensors"),
                                               "--match", "tokens", exit=2))
        for old, new in (("match", "divided"), ("repeat", "whole"), ("interpolate", "stretch")):
            self.assertIn(f"--depth {new}", self.run_old(*self.old_words("plan"), "--depth", old))

    def test_labels(self):
        labelled = self.write("labelled.safetensors", {
            "pixel_values": images(16), "labels": tensor("I64", [16], [i % 10 for i in range(16)])})
        said = self.run_old(*self.old_words(calibration=labelled), "--labels", "--mask", "normal")
        self.assertIn("--labelled DATA", said)
        self.assertIn("labelled", self.record(self.here / "out")["options"])
        said = self.run_old(
            "compare", "--source", self.models / "base", "--target", self.models / "base", "--setting",
            "digits", self.models / "tuned", self.models / "digits", "--split", "val", "--alpha", "1",
            "--methods", "identity,gradient-mask", "--labels", "--out", self.here / "c", "--threads", "1")
        self.assertIn("--labels is an old word and not needed", said)
        rows = json.loads((self.here / "c" / "compare.json").read_text())["rows"]
        self.assertEqual([row["method"] for row in rows], ["copy", "gradient-mask"])

    def test_head(self):
        maps = self.carry(out="maps", command="align")
        for command in ("evaluate", "sweep"):
            more = [] if command == "evaluate" else ["--tuned", self.models / "tuned", "--to", "0.1"]
            said = self.run_old(command, self.models / "wide", "--data", self.models / "digits", "--split",
                                "val", "--head", self.models / "tuned", "--alignment", maps, *more)
            self.assertIn("note: --head is an old word and still works; it is now --head-from", said)

    def test_verify(self):
        golden = CASES / "bert_bare" / "golden.safetensors"
        done = self.theseus("verify", CASES / "bert_bare", "--golden", golden)
        self.assertIn("forward --golden", done.stderr)
        self.assertIn("tensors within 1e-05", done.stdout)
        self.assertIn("Usage: theseus forward", self.theseus("verify", "--help").stdout)

    def test_recipe(self):
        """Also with words of today beside it, and with old ones."""
        lines = {"command": "transport", "source": self.models / "base", "tuned": self.models / "tuned",
                 "target": self.models / "wide", "calibration": self.models / "images.safetensors",
                 "center": "true", "stream": "false", "match": "mean", "depth": "match"}
        recipe = self.here / "old.yaml"
        recipe.write_text("".join(f"{name}: {value}\n" for name, value in lines.items()))
        said = self.run_old("run", recipe, "--out", self.here / "a", "--whiten", "0.2", "--threads", "1")
        for note in ("--examples", "--tokens", "--depth divided", "--method procrustes:center:whiten=0.2"):
            self.assertIn(note, said)
        options = self.record(self.here / "a")["options"]
        self.assertEqual(options["method"], "procrustes:center:whiten=0.2")
        self.assertEqual(options["tokens"], "mean")
        other = self.write("other.safetensors", {"pixel_values": images(8)})
        self.run_old("run", recipe, "--out", self.here / "b", "--examples", other)
        self.assertEqual(self.record(self.here / "b")["options"]["examples"], str(other))
        self.refused("run", recipe, "--stream=maybe", says="--stream is 'maybe'; expected true or false")
        recipe.write_text(f"command: verify\ngolden: {CASES / 'bert_bare' / 'golden.safetensors'}\n")
        self.assertIn("forward --golden", self.run_old("run", recipe, CASES / "bert_bare"))

    def test_alignments(self):
        """One that an earlier theseus wrote carries as one of today."""
        for number, (method, old) in enumerate([("stream", {"method": "procrustes", "stream": True}),
                                                ("procrustes", {"stream": False})]):
            maps = self.carry("--method", method, out=f"maps{number}", command="align")
            about = json.loads((maps / "alignment.json").read_text())
            about["calibration"] = about.pop("examples")
            about["match"] = about.pop("tokens")
            (maps / "alignment.json").write_text(json.dumps({**about, **old}))
            out = self.here / f"carried{number}"
            self.theseus("transport", "--alignment", maps, "--tuned", self.models / "tuned", "--target",
                         self.models / "wide", "--out", out, "--quiet")
            record = self.record(out)
            self.assertEqual(record["method"], method)
            self.assertEqual(record["examples"]["sequences"], 16)
            record["calibration"] = record.pop("examples")
            (out / "theseus.json").write_text(json.dumps(record))
            self.theseus("report", out, "-o", self.here / f"r{number}.html")
            page = (self.here / f"r{number}.html").read_text()
            self.assertRegex(page, "The maps come from 16 inputs of [^ ]*images.safetensors")

    def test_help_names_none(self):
        for command in ("align", "plan", "transport", "diagnose", "compare", "imitate", "evaluate", "sweep"):
            text = self.theseus(command, "--help").stdout
            for word in ("--calibration", "--match", "--stream", "--center", "--whiten", "--ridge", "--rank",
                         "--statistics", "--labels", "--heads", "--head ", "identity", "interpolate"):
                known = word == "--head " and command in ("plan", "transport", "diagnose")
                self.assertTrue(known or word not in text, f"{command}: {word}")
        self.assertNotIn("verify", self.theseus("--help").stdout)


if __name__ == "__main__":
    support.main()
