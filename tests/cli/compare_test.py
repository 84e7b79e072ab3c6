"""theseus compare: data that are not divided, commands that failed, imitation among the methods."""
import json
import shutil
import signal
import subprocess
import time

import support
from digits import DigitsTest


class Compare(DigitsTest):
    def compare(self, *more, data=None, methods="none,procrustes", tuned=None, out="c", alphas=True):
        return ["compare", "--source", self.models / "base", "--target", self.models / "wide",
                "--setting", "digits", tuned or self.models / "tuned", data or self.models / "digits",
                "--methods", methods, *(["--step", "1", "--to", "2"] if alphas else []), "--out", self.here / out, "--quiet",
                "--threads", "1", *more]

    def table(self, *words):
        done = self.theseus(*words, "--json")
        record = json.loads(done.stdout)
        return {row["method"]: row["cells"]["digits"] for row in record["rows"]}, record["notes"]

    def whole(self):
        """All digits in one folder of class folders."""
        whole = self.here / "whole"
        for split in ("val", "test"):
            shutil.copytree(self.models / "digits" / split, whole, dirs_exist_ok=True)
        return whole

    def drawn(self, name):
        place = self.here / name / "cells" / "digits-procrustes-0.json"
        return json.loads(place.read_text())

    def test_undivided(self):
        """A part each for maps, strengths and scores; none is in two of them."""
        rows, notes = self.table(*self.compare(data=self.whole()))
        self.assertGreater(rows["procrustes"]["value"], 0.9)
        self.assertIn("strengths were chosen on the [60:80] split, scores are of the [80:100] split",
                      notes)
        self.assertTrue(any("is not divided: scores are of 20 % of it" in note for note in notes))
        cell = self.drawn("c")
        self.assertEqual((cell["count"], cell["split"]), (24, "[80:100]"))
        self.assertEqual((cell["examples"]["examples"], cell["examples"]["split"]),
                         (72, "[0:60]"))
        test = self.theseus("evaluate", self.models / "wide", "--data", self.here / "whole", "--split",
                            "[80:100]", "--json", "--quiet")
        self.assertEqual(json.loads(test.stdout)["value"], rows["none"]["value"])
        self.table(*self.compare("--alpha", "1", data=self.here / "whole", out="fixed", alphas=False))
        self.assertEqual(self.drawn("fixed")["examples"]["examples"], 96)

    def test_without_val(self):
        """Strengths are chosen on part of the train split, which the maps do not see."""
        data = self.here / "data"
        shutil.copytree(self.models / "digits" / "test", data / "test")
        shutil.copytree(self.models / "digits" / "val", data / "train")
        rows, notes = self.table(*self.compare(data=data))
        self.assertGreater(rows["procrustes"]["value"], 0.9)
        self.assertIn("strengths were chosen on the train[80:100] split, scores are of the test split",
                      notes)
        self.assertEqual(self.drawn("c")["examples"]["examples"], 48)
        self.refused(*self.compare("--split", "train", data=data, out="x"),
                     says=["no val split to choose strengths on", "--validation"])

    def test_nothing_is_measured_that_was_used(self):
        """However its split is named."""
        whole = self.whole()
        self.refused(*self.compare("--test", "[80:100]", data=whole),
                     says=["is not divided", "--split, --validation and --test"])
        self.refused(*self.compare("--test", "[80:100]", "--validation", "[70:90]", "--split", "[0:60]",
                                   data=whole), says=["12 examples", "used to choose strengths"])
        self.refused(*self.compare("--familiar", whole, data=whole, methods="imitate"),
                     says=["24 examples", "give others as --familiar"])
        _, notes = self.table(*self.compare("--test", "[80:100]", "--validation", "[60:80]", "--split",
                                            "[0:90]", data=whole))
        self.assertTrue(any("12 of the examples that are measured on were used to make maps" in note
                            for note in notes), notes)

    def test_data_that_changed(self):
        whole = self.whole()
        self.table(*self.compare(data=whole, methods="none"))
        picture = next(whole.rglob("*.png"), None) or next(path for path in whole.rglob("*") if path.is_file())
        picture.unlink()
        self.refused(*self.compare(data=whole, methods="none"), says="holds a comparison of something else")
        (self.here / "c" / "comparison.json").unlink()
        self.refused(*self.compare(data=whole, methods="none"), says="without the record")

    def test_what_lies_elsewhere_changed(self):
        """Pictures that a table names, and what lies beside the models."""
        pictures, table = self.here / "pictures", self.here / "table.csv"
        shutil.copytree(self.models / "digits" / "test", pictures)
        table.write_text("path,label\n" + "".join(
            f"{path},{path.parent.name}\n" for path in sorted(pictures.rglob("*.ppm"))))
        target = self.here / "wide"
        shutil.copytree(self.models / "wide", target)
        words = [target if word == self.models / "wide" else word
                 for word in self.compare(data=table, methods="none")]
        self.theseus(*words)
        self.theseus(*words)
        picture = sorted(pictures.rglob("*.ppm"))[0]
        was = picture.read_bytes()
        picture.write_bytes(was[:-1] + b"x")
        self.refused(*words, says="holds a comparison of something else")
        picture.write_bytes(was)
        self.theseus(*words)
        (target / "tokenizer_config.json").write_text("{}")
        self.refused(*words, says="holds a comparison of something else")

    def test_names(self):
        for name in ("../x", "", ".", "a|b", "a/b"):
            words = self.compare(methods="none")
            words[words.index("digits")] = name
            self.refused(*words, says="cannot name a column")

    def test_failed_command(self):
        """What is wrong is said before any work, and leaves nothing that is in the way."""
        self.refused(*self.compare(methods="none", tuned=self.here / "nowhere"), says="nowhere")
        self.refused(*self.compare(data=self.here / "nowhere"), says="nowhere")
        self.refused(*self.compare("--test", "train"), says="no train split")
        self.refused(*self.compare("--wording", "{text}"), says="--wording is for texts")
        self.refused(*self.compare("--pack", "12"), says="--pack is for the task perplexity")
        self.refused(*self.compare("--template", "a {c}"), says="--template is for the task zero-shot")
        _, notes = self.table(*self.compare(methods="none"))
        self.assertEqual(notes[0], "scores are of the test split")
        self.assertEqual(len(notes), 2)
        self.assertIn("the head has no names for its classes", notes[1])
        # Another command: only what measured something is in the way.
        self.refused(*self.compare("--seed", "5"), says=["holds a comparison of something else", "--fresh"])
        (self.here / "c" / "cells" / "digits-none-0.json").unlink()
        (self.here / "c" / "cells" / "digits-pad-0.partial").mkdir()
        mine = ["cells/notes.txt", "cells/digits.csv", "examples-plan.txt", "cells/mine/a.txt"]
        for name in mine:
            (self.here / "c" / name).parent.mkdir(exist_ok=True)
            (self.here / "c" / name).write_text("of somebody else")
        self.table(*self.compare("--seed", "5", methods="none"))
        self.assertFalse((self.here / "c" / "cells" / "digits-pad-0.partial").exists())
        alike = self.here / "c" / "cells" / "digits-notes-3.json"
        alike.write_text("precious")
        self.refused(*self.compare("--seed", "6", "--fresh", methods="none"), says=[
            alike, "--fresh replaces only what theseus wrote"])
        alike.unlink()
        examples = self.here / "c" / "examples-digits-3.safetensors"
        note = self.here / "c" / "cells" / "digits-pad-0.partial" / "notes.txt"
        note.parent.mkdir()
        for path in (examples, note):
            path.write_text("precious")
            self.refused(*self.compare("--seed", "6", "--fresh", methods="none"), says=[
                path.parent if path == note else path, "--fresh replaces only what theseus wrote"])
            path.unlink()
        note.parent.rmdir()
        for name in ("compare.json", "cells/digits-none-0.json"):
            record = self.here / "c" / name
            before = record.read_text()
            record.write_text(before.replace("{", '{"mine": 1,', 1))
            self.refused(*self.compare("--seed", "6", "--fresh", methods="none"), says=[
                record, "--fresh replaces only what theseus wrote"])
            record.write_text(before)
        self.table(*self.compare("--seed", "6", "--fresh", methods="none"))
        for name in mine:
            self.assertEqual((self.here / "c" / name).read_text(), "of somebody else")
        self.refused(*self.compare("--fresh", out=".", methods="none"), says="holds no comparison")

    def test_faults_of_later_settings(self):
        """Found before the first cell is measured: the corrected command has nothing in its way."""
        nine, one = self.here / "nine", self.here / "one"
        shutil.copytree(self.models / "digits", nine)
        for split in ("val", "test"):
            shutil.rmtree(nine / split / "digit 9")
        self.refused(*self.compare("--setting", "nine", self.models / "tuned", nine),
                     says=["opening the setting nine", "the head has 10 classes and the data 9"])
        for split, part in (("train", "val"), ("test", "test"), ("val/digit 3", "val/digit 3")):
            shutil.copytree(self.models / "digits" / part, one / split)
        self.refused(*self.compare("--setting", "one", self.models / "tuned", one),
                     says=["opening the setting one", "are of one class, 'digit 3'"])
        self.assertFalse((self.here / "c").exists())

    def test_without_effect(self):
        alpha = ["--alpha", "1"]
        for more, says in [
                ([*alpha, "--step", "0.5"], "--step is for choosing a strength"),
                ([*alpha, "--to", "2"], "--to is for choosing a strength"),
                ([*alpha, "--validation", "val"], "--validation is for choosing a strength"),
                (["--shots", "1", "--batches", "2"], "--batches has no effect with --shots"),
                (["--test", "not test"], "unknown split 'not test'"),
                (["--validation", "not test[0:50]"], "unknown split 'not test[0:50]'")]:
            self.refused(*self.compare(*more, alphas=False), says=says)
        for option, value in [("--tokens", "cls"), ("--batches", "2"), ("--split", "val")]:
            self.refused(*self.compare(option, value, methods="none,pad"),
                         says=f"{option} has no effect: none of these methods looks at examples")

    def test_interrupted(self):
        """What is kept is said; --fresh measures it anew."""
        words = [str(word) for word in self.compare(methods="none,pad,procrustes,pinv")]
        words[words.index("--step") + 1] = "0.01"  # so that it takes a while
        process = subprocess.Popen([support.BINARY, *words], stderr=subprocess.PIPE, text=True)
        first = self.here / "c" / "cells" / "digits-none-0.json"
        while not first.exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assertIn(f"{self.here}/c/cells: the same command goes on from there", said)
        self.assertNotIn(".partial", said)
        before = first.stat().st_mtime_ns
        self.theseus(*self.compare("--fresh", methods="none"))
        self.assertNotEqual(before, first.stat().st_mtime_ns)

    def test_again(self):
        """The same command, or one with more methods, measures what is missing and nothing else."""
        cells = self.here / "c" / "cells"
        first = self.table(*self.compare(methods="none,pad"))
        before = support.listing(cells)
        self.assertEqual(self.table(*self.compare(methods="none,pad")), first)
        self.assertEqual(support.listing(cells), before)
        record = cells / "digits-none-0.json"
        whole = record.read_bytes()
        for place in (len(whole) // 2, -3):
            damaged = bytearray(whole)
            damaged[place] ^= 1
            record.write_bytes(damaged)
            said = self.theseus(*self.compare(methods="none,pad"), exit=2).stderr
            for part in (str(record), "damaged", "measured anew"):
                self.assertIn(part, said)
        record.unlink()  # as the message says
        self.assertEqual(self.table(*self.compare(methods="none,pad")), first)
        before = support.listing(cells)
        identity = self.here / "c" / "comparison.json"
        of_what = identity.read_text()
        identity.write_text(of_what.replace("digits", "digitz", 1))
        self.refused(*self.compare(methods="none,pad"), says=[identity, "damaged"])
        identity.write_text(of_what)
        (cells / "digits-pad-0.json").unlink()  # as if it had been interrupted there
        rows, _ = self.table(*self.compare(methods="none,pad,procrustes"))
        self.assertEqual({method: rows[method] for method in ("none", "pad")}, first[0])
        self.assertIn("value", rows["procrustes"])
        after = support.listing(cells)
        measured = {"digits-pad-0.json", *(name for name, _, _ in after if "procrustes" in name)}
        self.assertEqual([row for row in after if row[0] not in measured],
                         [row for row in before if row[0] not in measured])

    def test_imitate(self):
        """Beside the others, from the same examples; strengths are chosen for it, too."""
        familiar = self.models / "digits" / "val"
        rows, _ = self.table(*self.compare("--familiar", familiar, methods="none,imitate,procrustes"))
        self.assertGreater(rows["imitate"]["value"], rows["none"]["value"] + 0.3)
        self.assertIn("alpha", rows["imitate"])
        self.assertNotIn("norm_error", rows["imitate"])
        cell = json.loads((self.here / "c" / "cells" / "digits-imitate-0.json").read_text())
        self.assertEqual(cell["examples"], self.drawn("c")["examples"])
        self.assertEqual([path.name for path in (self.here / "c").glob("*.safetensors*")], [])
        self.refused(*self.compare(methods="imitate", out="x"), says="give --familiar DATA")
        self.refused(*self.compare("--familiar", familiar, out="x"), says="--familiar is for the method")


if __name__ == "__main__":
    support.main()
