"""What lies at --out: only what theseus wrote is ever replaced, and a finished job is finished."""
import fcntl
import json
import os
import shutil
import signal
import subprocess

import support
from digits import DigitsTest
from pair import PairTest, files_of
from support import BINARY, change_json, listing


class Fresh(PairTest):
    """--fresh takes away what the record lists as written, as it was written, and nothing else."""

    def commands(self):
        maps = self.words("align", "maps")
        self.theseus(*maps, "--quiet")
        transport = self.words()
        self.theseus(*transport, "--quiet")
        imitate = self.words("imitate", "imitated")
        self.theseus(*imitate, "--quiet")
        return [(self.here / "maps", maps, "maps-1.safetensors"),
                (self.here / "out", transport, "model.safetensors"),
                (self.here / "imitated", imitate, "model.safetensors")]

    def keeps(self, out, words, name):
        """The command refuses with the name, and touches nothing."""
        self.refused(*words, "--fresh", says=[name, "--fresh replaces only what theseus wrote"])

    def test_only_what_was_written(self):
        for out, words, weights in self.commands():
            before = files_of(out)
            note = out / "notes.txt"
            note.write_text("keep")
            self.keeps(out, words, "notes.txt")
            note.unlink()
            hidden = out / ".git" / "config"
            hidden.parent.mkdir()
            self.keeps(out, words, ".git")
            hidden.write_text("keep")
            self.keeps(out, words, ".git/config")
            shutil.rmtree(hidden.parent)
            (out / "link").symlink_to(self.models)
            self.keeps(out, words, "link")
            (out / "link").unlink()
            content = bytearray((out / weights).read_bytes())
            content[-1] ^= 1  # of the same size
            (out / weights).write_bytes(content)
            self.keeps(out, words, weights)
            content[-1] ^= 1
            (out / weights).write_bytes(content)
            elsewhere = self.here / "elsewhere"
            shutil.move(out / weights, elsewhere)
            (out / weights).symlink_to(elsewhere)
            self.keeps(out, words, weights)
            (out / weights).unlink()
            shutil.move(elsewhere, out / weights)
            record = next(path for path in (out / "theseus.json", out / "alignment.json") if path.exists())
            text = record.read_text()
            document = json.loads(text)
            document["mine"] = "a remark"
            record.write_text(json.dumps(document))
            self.keeps(out, words, record.name)
            record.write_text(text)
            os.utime(out / weights)  # the same bytes
            (out / "recipe.yaml").unlink()  # what is gone is no loss
            self.theseus(*words, "--fresh", "--quiet")
            self.assertEqual(files_of(out), before)
            self.assertFalse(out.with_name(out.name + ".partial").exists())

    def test_no_output_of_ours(self):
        """Not for a record that lists nothing, nor for one that was copied beside other files."""
        out = self.carry()
        mine = self.here / "mine"
        mine.mkdir()
        (mine / "theseus.json").write_text("{}")
        self.refused(*self.words(out="mine"), "--fresh", says="--fresh replaces only what theseus wrote")
        shutil.copy(out / "theseus.json", mine)
        (mine / "model.safetensors").write_text("precious")
        self.refused(*self.words(out="mine"), "--fresh", says=[
            "model.safetensors", "--fresh replaces only what theseus wrote"])

    def test_a_copy_and_a_link(self):
        """A copy of an output is one, and a link leads to one."""
        out = self.carry()
        copy = self.here / "copy"
        shutil.copytree(out, copy)
        link = self.here / "link"
        link.symlink_to("copy")
        self.theseus(*self.words(out="link"), "--fresh", "--alpha", "2", "--quiet")
        self.assertTrue(link.is_symlink())
        self.assertNotEqual(files_of(copy), files_of(out))
        self.assertEqual(sorted(path.name for path in self.here.iterdir()), ["copy", "link", "out"])

    def test_several(self):
        self.theseus(*self.words("align", "maps"), "--quiet")
        other = self.here / "other"
        shutil.copytree(self.models / "tuned", other)
        words = self.words(out="library", source=None, examples=None, alignment=self.here / "maps")
        words += ["--tuned", str(other)]
        self.theseus(*words, "--quiet")
        (self.here / "library" / "other" / "notes.txt").write_text("keep")
        self.refused(*words, "--fresh", says="notes.txt")
        self.assertEqual(self.theseus(*words).stdout.count("it was there already"), 2)

    def test_partial_of_somebody_else(self):
        partial = self.here / "out.partial"
        for make in (lambda: (partial / "lock").write_text(""),
                     lambda: (partial / "lock").write_text("theseus\n"),
                     lambda: None):
            partial.mkdir()
            (partial / "output").mkdir()
            (partial / "output" / "mine").write_text("keep")
            (partial / "notes.txt").write_text("keep")
            make()
            for more in ([], ["--fresh"]):
                self.refused(*self.words(), *more, says=["out.partial", "notes.txt"])
            shutil.rmtree(partial)
        for name in ("output/mynote", "stages/notes.txt", "replaced/a/b.txt", "output/model.safetensors/x"):
            (partial / name).parent.mkdir(parents=True)
            (partial / name).write_text("keep")
            (partial / "lock").write_text("theseus\n")
            for more in ([], ["--fresh"]):
                self.refused(*self.words(), *more, says=["out.partial", name])
            shutil.rmtree(partial)
        elsewhere = self.here / "elsewhere"
        elsewhere.mkdir()
        partial.symlink_to(elsewhere)
        self.refused(*self.words(), says="out.partial")

    def test_an_empty_directory_keeps_its_access(self):
        out = self.here / "out"
        out.mkdir()
        if os.geteuid() == 0:
            os.chown(out, -1, 1)
        out.chmod(0o2750)
        before = out.stat()
        self.carry()
        after = out.stat()
        self.assertEqual((oct(after.st_mode), after.st_gid), (oct(before.st_mode), before.st_gid))

    def test_refused_at_the_end(self):
        """Nothing is left that could never be finished: the corrected command begins anew."""
        for command, out in (("transport", "out"), ("imitate", "imitated")):
            self.refused(*self.words(command, out), "--alpha", "1e-9", "--save-every", "0", "--quiet",
                         says="nothing of the update arrives")
            self.carry(command=command, out=out)

    def test_an_empty_directory(self):
        for command, out in (("transport", "out"), ("align", "maps"), ("imitate", "imitated")):
            (self.here / out).mkdir()
            self.theseus(*self.words(command, out), "--quiet")
        link = self.here / "link"
        (self.here / "empty").mkdir()
        link.symlink_to("empty")
        self.carry(out="link")
        self.assertTrue((self.here / "empty" / "model.safetensors").exists())
        (self.here / "here").mkdir()
        self.refused(*self.words(out="."), cwd=self.here / "here", says="exists")
        words = self.words()
        words[words.index("--out") + 1] = "."
        self.refused(*words, cwd=self.here / "here", says="runs in it")


class Finished(PairTest):
    """A signal that comes when the output is there, and a kill before the rest is tidied up."""

    def jobs(self):
        return [(self.here / "out", self.words()), (self.here / "maps", self.words("align", "maps")),
                (self.here / "imitated", self.words("imitate", "imitated"))]

    def test_interrupted_at_the_end(self):
        for out, words in self.jobs():
            for end in (signal.SIGTERM, signal.SIGINT):
                process = subprocess.Popen([BINARY, *words], cwd=self.here, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True)
                while not out.exists() and process.poll() is None:
                    pass
                process.send_signal(end)
                said, error = process.communicate(timeout=support.LONGEST)
                self.assertEqual(process.returncode, 0, error)
                self.assertIn("written to", said)
                self.assertNotIn("interrupted", error)
                self.assertFalse(out.with_name(out.name + ".partial").exists())
                self.assertIn("there already", self.theseus(*words).stdout)
                shutil.rmtree(out)

    def test_killed_at_the_end(self):
        """However much of it is left, the same command knows its output; another one does not."""
        for out, words in self.jobs():
            partial = out.with_name(out.name + ".partial")
            for _ in range(4):
                process = subprocess.Popen([BINARY, *words, "--quiet"], cwd=self.here)
                while not out.exists() and process.poll() is None:
                    pass
                process.kill()
                process.wait()
                before = listing(out)
                left = partial.exists()
                self.refused(*words, "--seed", "7", says=[
                    "exists and is another command's: seed was not given and is now 7"])
                said = self.theseus(*words).stdout
                self.assertIn("it was there already", said)
                self.assertEqual(f"removed {partial}" in said, left)
                self.assertFalse(partial.exists())
                self.assertEqual(listing(out), before)
                shutil.rmtree(out)

    def test_left_behind(self):
        """As a kill leaves it when the output has just appeared."""
        out = self.carry()
        partial = self.here / "out.partial"
        partial.mkdir()
        (partial / "lock").write_text("theseus\n")
        (partial / "carried-0.json").write_text("[]")
        (partial / ".walk.safetensors.7.0.tmp").write_bytes(bytes(1 << 20))
        (partial / "output").mkdir()
        names = ("LICENSE", "model.safetensors", "vocab.txt")
        (partial / "made.txt").write_text("".join(f"output/{name}\n" for name in names))
        for name in (*names, ".LICENSE.7.0.tmp"):
            (partial / "output" / name).write_text("half")
        printed = json.loads(self.theseus(*self.words(), "--json").stdout)
        self.assertTrue(printed["there_before"])
        self.assertEqual(printed["removed"], str(partial))
        self.assertFalse(partial.exists())

    def test_changed_beside_the_target(self):
        target = self.here / "target"
        shutil.copytree(self.models / "wide", target)
        (target / "preprocessor_config.json").write_text('{"size": 28}')
        (target / "chat_template.jinja").write_text("one")
        words = self.words(target=target)
        self.theseus(*words, "--quiet")
        for name, text in (("chat_template.jinja", "two"), ("merges.txt", "new")):
            (target / name).write_text(text)
            self.refused(*words, says="what lies beside the target has changed since")
            self.theseus(*words, "--fresh", "--quiet")
            self.assertEqual((self.here / "out" / name).read_text(), text)
        (target / "README.md").write_text("not copied")
        self.assertIn("it was there already", self.theseus(*words).stdout)

    def test_another_job_there(self):
        out = self.carry()
        self.refused(*self.words(), "--alpha", "2", says=[
            "exists and is another command's: alpha was not given and is now 2",
            "--fresh replaces an earlier output"])
        (out / "notes.txt").write_text("mine")
        self.assertIn("there already", self.theseus(*self.words()).stdout)
        weights = out / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
        self.refused(*self.words(), says=["is not as this command wrote it", "model.safetensors"])


class Left(PairTest):
    """What a killed process left beside a file, or where the system keeps temporary files: ours goes."""

    def test_beside_a_file(self):
        dead = subprocess.Popen(["true"])
        dead.wait()
        inputs = self.models / "images.safetensors"
        ours = self.here / f".out.safetensors.{dead.pid}.0.tmp"
        alive = self.here / f".out.safetensors.{os.getpid()}.0.tmp"
        others = [self.here / name for name in (
            f".out.safetensors.{dead.pid}.tmp", f".other.safetensors.{dead.pid}.0.tmp",
            ".out.safetensors.x.0.tmp", f"out.safetensors.{dead.pid}.0.tmp")]
        locked = self.here / f".out.safetensors.{dead.pid}.1.tmp"
        for path in (ours, alive, locked, *others):
            path.write_bytes(bytes(100))
        with locked.open("r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.forward(self.models / "base", inputs)
        self.assertFalse(ours.exists())
        for path in (alive, locked, *others):
            self.assertTrue(path.exists(), path)

    def test_temporary_directories(self):
        dead = subprocess.Popen(["true"])
        dead.wait()
        place = self.here / "tmp"
        ours = place / f"theseus-calibration-{dead.pid}-aBc123"
        others = [place / name for name in (
            f"theseus-calibration-{os.getpid()}-aBc123", "theseus-calibration-x-aBc123",
            f"theseus-calibration-{dead.pid}-mine-and-longer", f"theseus-{dead.pid}-aBc123")]
        for path in (ours, *others):
            path.mkdir(parents=True)
            (path / "calibration.safetensors").write_bytes(bytes(100))
        folder = self.here / "images"
        (folder / "a").mkdir(parents=True)
        for i in range(4):
            (folder / "a" / f"{i}.ppm").write_bytes(b"P6 28 28 255\n" + bytes([i * 9]) * (28 * 28 * 3))
        for name in ("base", "tuned", "wide"):
            shutil.copytree(self.models / name, self.here / name)
            change_json(self.here / name / "config.json", {"pretrained_cfg": {
                "input_size": [3, 28, 28], "mean": [0, 0, 0], "std": [1, 1, 1],
                "interpolation": "bicubic", "crop_pct": 1.0}})
        self.theseus(*self.words(source="base", tuned="tuned", target="wide", examples=folder,
                                 method="procrustes"),
                     "--quiet", env={**os.environ, "TMPDIR": str(place)})
        self.assertEqual(sorted(place.iterdir()), sorted(others))

    def test_nowhere_for_temporary_files(self):
        (self.here / "file").write_text("")
        (self.here / "shut").mkdir(mode=0o555)
        for name in ("base", "tuned", "wide"):
            shutil.copytree(self.models / name, self.here / name)
        shutil.copy(self.models / "images.safetensors", self.here)
        words = self.words("diagnose", source=self.here / "base", tuned=self.here / "tuned",
                           target=self.here / "wide", examples=self.here / "images.safetensors")
        nobody = self.as_nobody()
        for name, says in (("none", "it does not exist"), ("file", "it is no directory"),
                           ("shut", "Permission denied")):
            place = self.here / name
            for variable in ("TMPDIR", "TEMP"):
                env = {key: value for key, value in os.environ.items()
                       if key not in ("TMPDIR", "TMP", "TEMP", "TEMPDIR")}
                self.refused(
                    *words, env={**env, variable: str(place)}, **(nobody if name == "shut" else {}),
                    says=[f"in {place}, which the variable {variable} names: {says}",
                          f"set {variable} to a directory"])


class Finetuned(DigitsTest):
    def test_finished(self):
        words = ["finetune", "--model", self.models / "base", "--data", self.models / "digits", "--out",
                 self.here / "out", "--steps", "2", "--validation", "none",
                 "--batch-size", "8"]
        (self.here / "out").mkdir()
        self.theseus(*words, "--quiet")
        self.assertIn("there already", self.theseus(*words, "--threads", "2").stdout)
        self.refused(*words, "--seed", "3", says="another command's: seed")
        (self.here / "out" / "notes.txt").write_text("keep")
        self.refused(*words, "--fresh", says="notes.txt")
        (self.here / "out" / "notes.txt").unlink()
        self.theseus(*words, "--fresh", "--quiet")

    def test_other_bytes(self):
        """Images, and what the model's tokenizer reads, are known by their bytes; where they lie does not matter."""
        data, model = self.here / "digits", self.here / "base"
        shutil.copytree(self.models / "digits", data)
        shutil.copytree(self.models / "base", model)

        def words(place):
            return ["finetune", "--model", model, "--data", f"{place}/val", "--out", self.here / "out", "--steps",
                    "2", "--validation", f"{place}/test", "--batch-size", "8"]

        self.theseus(*words(data), "--quiet")
        moved = data.rename(self.here / "moved")
        self.assertIn("there already", self.theseus(*words(moved)).stdout)
        for split, what in (("val", "what is learnt from"), ("test", "what is measured on")):
            image = next((moved / split).rglob("*.ppm"))
            content = image.read_bytes()
            image.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))  # one bit, and the name is the same
            self.refused(*words(moved), says=f"{what} has changed since")
            image.write_bytes(content)
        (model / "merges.txt").write_text("new")
        self.refused(*words(moved), says="what lies beside the model has changed since")


if __name__ == "__main__":
    support.main()
