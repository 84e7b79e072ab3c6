"""Unfinished work that was damaged is refused: it would go on to a wrong model."""
import json
import shutil
import subprocess
import time

import support
from digits import DigitsTest
from interrupt_test import SLOW, SlowJob
from pair import PairTest, images
from support import BINARY, read_safetensors, tensor, write_safetensors


class Damage:
    """For tests of commands: jobs are killed in the middle, and what they left is changed."""

    def kill_when(self, ready, words, out="out"):
        """On a busy machine it may come to its end first, and then another one is tried."""
        for _ in range(20):
            process = subprocess.Popen([BINARY, *map(str, words)], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, cwd=self.here)
            while not ready() and process.poll() is None:
                time.sleep(0.001)
            process.kill()
            process.wait()
            if not (self.here / out).exists() and ready():
                return self.here / f"{out}.partial"
            shutil.rmtree(self.here / out, ignore_errors=True)
            shutil.rmtree(self.here / f"{out}.partial", ignore_errors=True)
        self.fail("never killed in time")

    def refused_when_damaged(self, words, names, out="out", may_be_gone=()):
        """Each file with one byte changed, without its end, empty, and gone; then the job as it was goes on."""
        partial, pristine = self.here / f"{out}.partial", self.here / "pristine"
        shutil.copytree(partial, pristine)
        self.assertTrue(names)
        for name in names:
            whole = (pristine / name).read_bytes()
            for damaged in (flipped(whole, 20), flipped(whole, len(whole) // 2), flipped(whole, -2),
                            whole[:-5], b"", None):
                if damaged is None and name in may_be_gone:
                    continue
                shutil.rmtree(partial)
                shutil.copytree(pristine, partial)
                (partial / name).unlink()
                if damaged is not None:
                    (partial / name).write_bytes(damaged)
                said = self.theseus(*words, exit=2).stderr
                self.assertIn(str(partial / name), said)
                self.assertIn("--fresh", said)
                self.assertEqual(said.count("the unfinished work is damaged"), 1)
                self.assertNotIn("json.exception", said)
                for other in names:
                    self.assertTrue((partial / other).exists() or (other, damaged) == (name, None))
        shutil.rmtree(partial)
        pristine.rename(partial)
        self.theseus(*words)


def flipped(content, place):
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


class Walks(Damage, SlowJob):
    def position(self):
        try:
            return tuple(read_safetensors(self.here / "out.partial" / "walk.safetensors")
                         ["position"].values())
        except FileNotFoundError:
            return (0, 0)

    def later(self):
        return self.position()[0] > 1

    def files(self, partial, *names):
        """Those that are there, of groups that are done."""
        first, _ = self.position()
        done = [file.name for file in partial.glob("carried-*")
                if int(file.name.split("-")[1].split(".")[0]) < first]
        self.assertTrue(done)
        return [*done, "job.json", "walk.safetensors", "schedule.safetensors", "memory.json", *names]

    def test_transport(self):
        words = [*self.words(), *SLOW]
        partial = self.kill_when(self.later, words)
        self.refused_when_damaged(words, self.files(partial), may_be_gone=["memory.json"])

    def test_align(self):
        words = [*self.words("align"), *SLOW]
        partial = self.kill_when(self.later, words)
        first, _ = self.position()
        stages = [f"stages/{file.name}" for file in (partial / "stages").glob("*.safetensors")
                  if int(file.stem.split("-")[1]) < first]
        self.assertTrue(stages)
        self.refused_when_damaged(
            words, [*self.files(partial), *stages], may_be_gone=["memory.json"])

    def test_states_in_files(self):
        plan = self.theseus(*self.words("plan", batch_size=1, batches=30), "--json").stdout
        schedule = json.loads(plan)["schedule"]
        memory = schedule["peak_memory_bytes"] - schedule["hidden_state_bytes"] // 2
        words = [*self.words(), *SLOW, "--batches", "30", "--memory", str(memory)]
        self.kill_when(lambda: self.position()[0] > 0, words)
        first, _ = self.position()
        self.refused_when_damaged(words, [f"states-{first}-29.safetensors"])


class Labelled(Damage, PairTest):
    """What was computed from labels before the walk."""

    def test_gradients_and_signs(self):
        write_safetensors(self.here / "labelled.safetensors", {
            "pixel_values": images(16), "labels": tensor("I64", [16], [i % 10 for i in range(16)])})
        for more, name in ((["--method", "gradient-output"], "gradients.safetensors"),
                           (["--mask", "normal"], "signs.safetensors")):
            words = [*self.words(examples=None, labelled=self.here / "labelled.safetensors", out=name),
                     *SLOW, *more]
            self.kill_when((self.here / f"{name}.partial" / name).exists, words, out=name)
            self.refused_when_damaged(words, [name], out=name, may_be_gone=[name])


class Others(Damage, DigitsTest):
    def test_finetune(self):
        self.write_pictures(self.models / "noisy", lambda i: "val" if i % 3 == 0 else "train")
        words = ["finetune", "--model", self.models / "base", "--data", self.models / "noisy",
                 "--validation", "val", "--validate-every", "10", "--save-every", "0", "--steps",
                 "60", "--batch-size", "2", "--lr", "3e-3", "--threads", "1", "--out",
                 self.here / "out"]
        partial = self.here / "out.partial"
        self.kill_when((partial / "training.safetensors").exists, words)
        losses = partial / "losses.jsonl"
        whole = losses.read_text()
        losses.write_text(whole.replace("validation_loss", "validation_lost", 1))
        said = self.theseus(*words, exit=2).stderr
        self.assertIn(str(losses), said)
        self.assertIn("--fresh", said)
        losses.write_text(whole)
        self.refused_when_damaged(
            words, ["training.safetensors", "job.json"], may_be_gone=["training.safetensors"])

    def test_imitate(self):
        words = [*self.words("imitate", examples=self.models / "digits" / "val", batch_size=1),
                 "--save-every", "0"]
        saved = self.here / "out.partial" / "imitated.safetensors"
        self.kill_when(saved.exists, words)
        self.refused_when_damaged(
            words, ["imitated.safetensors", "job.json"], may_be_gone=["imitated.safetensors"])


del SlowJob, DigitsTest, PairTest  # their own tests run where they are

if __name__ == "__main__":
    support.main()
