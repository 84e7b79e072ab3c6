"""Jobs that are killed, interrupted or doubled: the same command gives the same bytes. And what they
print while they run."""
import json
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import time

import support
from digits import DigitsTest
from pair import PairTest, files_of, images
from support import BINARY, read_safetensors, tensor, write_safetensors

SLOW = ["--batch-size", "1", "--save-every", "0"]  # saves as often as it may


class SlowJob(PairTest):
    COUNT = 120

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        few = images(4).values()  # repeated, as drawing many would take long
        write_safetensors(cls.models / "images.safetensors", {
            "pixel_values": tensor("F32", [cls.COUNT, 3, 28, 28], few * (cls.COUNT // 4))})

    def start(self, *more, **options):
        process = subprocess.Popen(
            [BINARY, *self.words(), *SLOW, *more], stdout=options.pop("stdout", subprocess.PIPE),
            stderr=options.pop("stderr", subprocess.PIPE), cwd=self.here, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for stream in (process.stdout, process.stderr):
            if stream:
                self.addCleanup(stream.close)
        return process

    def wait_for_save(self, process):
        """Until it has saved its work, or ended."""
        walk = self.here / "out.partial" / "walk.safetensors"

        def saved():
            try:
                return walk.stat().st_mtime_ns
            except FileNotFoundError:
                return None
        before = saved()
        while saved() in (before, None) and process.poll() is None:
            time.sleep(0.001)

    def stopped_after_save(self):
        """A process that has saved its work and stands still; on a busy machine it may come to its end
        first, and then another one is tried."""
        for _ in range(20):
            process = self.start()
            self.wait_for_save(process)
            process.send_signal(signal.SIGSTOP)
            if process.poll() is None and not (self.here / "out").exists():
                return process
            process.send_signal(signal.SIGCONT)
            process.wait()
            shutil.rmtree(self.here / "out")
        self.fail("never stopped in time")


class Interrupted(SlowJob):
    def uninterrupted(self, *more):
        whole = self.models / " ".join(["whole", *more])
        if not whole.exists():
            shutil.move(self.carry(*SLOW, *more), whole)
        return whole

    def end(self, *more):
        """The same command again, to its end."""
        return self.carry(*SLOW, *more)

    def kill_often(self, times, *more):
        """Kills the command at random moments, each time going on from what the last one left."""
        start = time.monotonic()
        whole = self.uninterrupted(*more)
        took = time.monotonic() - start
        generator = random.Random()
        killed, positions = 0, set()
        # More often where a fast machine gets far between two kills.
        while killed < times or (len(positions) < 2 and killed < 10 * times):
            process = self.start("--quiet", *more)
            if killed % 3 < 2:  # while it works; else while it starts
                self.wait_for_save(process)
            time.sleep(0.2 * took * generator.random())
            process.kill()
            killed += process.wait() == -signal.SIGKILL
            if (self.here / "out").exists():  # it came to its end first
                self.assert_same_files(self.here / "out", whole)
                shutil.rmtree(self.here / "out")
                shutil.rmtree(self.here / "out.partial", ignore_errors=True)
            walk = self.here / "out.partial" / "walk.safetensors"
            if walk.exists():
                positions.add(tuple(read_safetensors(walk)["position"].values()))
        self.assertGreater(len(positions), 1)  # they were killed in the middle of something
        self.assert_same_files(self.end(*more), whole)

    def test_killed_ten_times(self):
        self.kill_often(10)

    def test_killed_in_bfloat16(self):
        """States and what the stream's maps need are saved as they are."""
        self.kill_often(3, "--dtype", "bfloat16", "--method", "stream")

    def test_killed_with_states_in_files(self):
        """Killed in the middle of a group, and again when that group's files are gone: whatever was
        saved must do without them."""
        plan = self.theseus(*self.words("plan", batch_size=1, batches=30), "--json").stdout
        schedule = json.loads(plan)["schedule"]
        memory = schedule["peak_memory_bytes"] - schedule["hidden_state_bytes"] // 2
        more = ["--batches", "30", "--memory", str(memory)]
        whole = self.uninterrupted(*more)
        self.assertEqual(self.record(whole)["schedule"]["hidden_states"], "in files")
        partial = self.here / "out.partial"

        def run_until(happened):
            """Whether it was killed then; on a busy machine it may come to its end first."""
            process = self.start("--quiet", *more)
            while not happened() and process.poll() is None:
                time.sleep(0.001)
            process.kill()
            if process.wait() == -signal.SIGKILL:
                return True
            self.assert_same_files(self.here / "out", whole)
            shutil.rmtree(self.here / "out")
            return False

        def in_a_group():
            try:
                group, batch = read_safetensors(partial / "walk.safetensors")["position"].values()
            except FileNotFoundError:  # not there yet, or gone with the work
                return False
            return group > 0 and batch > 0

        self.addCleanup(SLOW.__setitem__, -1, "0")
        for _ in range(60):
            SLOW[-1] = "0"
            if not run_until(in_a_group) or not in_a_group():  # it went on before it was killed
                continue
            first, _ = read_safetensors(partial / "walk.safetensors")["position"].values()
            self.assertTrue(list(partial.glob(f"states-{first}-*")))
            SLOW[-1] = "1000"  # no save but those that must be
            if run_until(lambda group=first: not list(partial.glob(f"states-{group}-*"))):
                break
        else:
            self.fail("never killed in time")
        self.assert_same_files(self.end(*more), whole)

    def test_control_c(self):
        """A second process is refused, the first is interrupted, the same command ends it."""
        whole = self.uninterrupted()
        process = self.stopped_after_save()
        partial = self.here / "out.partial"
        self.refused(*self.words(), *SLOW, says="another process is working on")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(), 130)
        self.assertEqual(process.stdout.read(), b"")
        self.assertIn(f"work in {partial} is kept: the same command goes on from there",
                      process.stderr.read().decode())
        self.assertFalse((self.here / "out").exists())
        self.assertEqual(list(partial.rglob("*.tmp")), [])
        self.assert_same_files(self.end(), whole)

    def test_nohup(self):
        """A terminal that closes does not end what was started with nohup."""
        process = self.start(
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for_save(process)
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(), 0)

    def test_another_command(self):
        """Unfinished work is for the command that began it, until --fresh."""
        process = self.stopped_after_save()
        process.kill()
        process.wait()
        walk = self.here / "out.partial" / "walk.safetensors"
        self.refused(*self.words(), *SLOW, "--alpha", "2", says=[
            "unfinished work of another command: alpha was not given and is now 2", "--fresh"])
        walk.write_bytes(walk.read_bytes()[:-1])
        done = self.theseus(*self.words(), *SLOW, exit=2)
        self.assertIn("unfinished work", done.stderr)
        self.assertIn("--fresh", done.stderr)
        images_now = self.here / "images.safetensors"
        shutil.copy(self.models / "images.safetensors", images_now)
        content = bytearray(images_now.read_bytes())
        content[-1] ^= 1
        images_now.write_bytes(content)
        self.refused(*self.words(examples=images_now), *SLOW, says=[
            "the set of examples has changed since", "--fresh"])
        self.end("--fresh")
        self.refused(*self.words(), *SLOW, "--alpha", "2", says=[
            "exists", "--fresh replaces an earlier output"])

    def test_other_threads_and_other_places(self):
        """Work is known by what it is made from: not by where that lies, when it was written, or how fast
        the work is done. What may differ is said."""
        whole = self.uninterrupted()
        process = self.stopped_after_save()
        process.kill()
        process.wait()
        job = self.here / "out.partial" / "job.json"
        begun = json.loads(job.read_text())["content"]
        self.assertEqual((begun["devices"], begun["job"].get("device")), ([self.DEVICE or "cpu"], None))
        moved = self.here / "moved"
        shutil.copytree(self.models, moved)
        words = [*self.words(examples="moved/images.safetensors", threads=2,
                             **{name: moved / path for name, path in (
                                 ("source", "base"), ("tuned", "tuned"), ("target", "wide"))}),
                 "--batch-size", "1", "--save-every", "7", "--memory", "8GB"]
        out, partial = self.here / "out", self.here / "out.partial"
        self.assertRegex(
            self.theseus(*words).stdout,
            rf"went on with the work in {partial}, at stage \d of 6\n")
        record = self.record(out)
        self.assertIn("another number of threads ([1,2])", record["notes"][-1])
        self.assertEqual(set(files_of(out)), set(files_of(whole)))
        ours, theirs = (read_safetensors(place / "model.safetensors") for place in (out, whole))
        for name, one in ours.items():
            self.assertLess(support.largest_difference(one, theirs[name]), 1e-5)
        self.assertEqual(record["job"], self.record(whole)["job"])
        os.utime(self.models / "images.safetensors")
        self.assertIn("it was there already", self.theseus(*self.words(), *SLOW).stdout)

    def test_nothing_is_kept(self):
        """What is said is true: nothing was saved yet."""
        process = subprocess.Popen([BINARY, *self.words(), "--batch-size", "1"], cwd=self.here,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not (self.here / "out.partial" / "job.json").exists() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=support.LONGEST)
        if process.returncode != 0:  # else it came to its end first
            self.assertIn("interrupted; nothing is kept", said)
            partial = self.here / "out.partial"
            self.assertEqual(str(partial) in said, partial.exists())
            self.assertEqual("starts anew" in said, partial.exists())
            self.assertNotIn("--alpha", self.theseus(*self.words(), "--alpha", "2").stderr)

    def test_temporaries_of_a_kill(self):
        """What a killed process reserved or half wrote is gone before the next one needs the room."""
        process = self.stopped_after_save()
        process.kill()
        process.wait()
        partial = self.here / "out.partial"
        half = partial / ".walk.safetensors.1234.5.tmp"
        half.write_bytes(bytes(1000))
        again = self.start()
        self.wait_for_save(again)
        self.assertFalse(half.exists())
        again.send_signal(signal.SIGTERM)
        again.wait()
        self.assertEqual(list(self.here.rglob("*.tmp")), [])

    def test_ignored_signals(self):
        """A job that a script started in the background: its Ctrl-C is not for the job."""
        for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
            process = self.start(
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                preexec_fn=lambda number=ignored: signal.signal(number, signal.SIG_IGN))
            self.wait_for_save(process)
            process.send_signal(ignored)
            self.assertEqual(process.wait(), 0)
            shutil.rmtree(self.here / "out")


class Drawn(DigitsTest):
    def kill_after_save(self, words, saved):
        """On a busy machine it may come to its end first, and then another one is tried."""
        for _ in range(20):
            process = subprocess.Popen([BINARY, *words], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, cwd=self.here)
            while not saved.exists() and process.poll() is None:
                time.sleep(0.001)
            process.kill()
            if process.wait() == -signal.SIGKILL and saved.exists():
                return
            shutil.rmtree(saved.parent.with_suffix(""), ignore_errors=True)
        self.fail("never killed in time")

    def test_other_pictures_under_the_same_names(self):
        """Unfinished work is not theirs: it says what it was made from, not only how that was called."""
        data = self.here / "data"
        shutil.copytree(self.models / "digits" / "val", data)
        picture = next(data.rglob("*.ppm"))
        for command, saved in (("transport", "walk.safetensors"), ("imitate", "imitated.safetensors")):
            words = [*self.words(command, command, examples=data, batch_size=1), "--save-every", "0"]
            self.kill_after_save(words, self.here / f"{command}.partial" / saved)
            was = picture.stat()
            content = bytearray(picture.read_bytes())
            content[-1] ^= 255
            picture.write_bytes(content)
            os.utime(picture, ns=(was.st_atime_ns, was.st_mtime_ns))
            self.refused(*words, says=["what was drawn has changed since", "--fresh"])


class Progress(SlowJob):
    COUNT = 1200

    def shown_on_terminal(self, *more, env):
        """What the job, which ends well, writes to a terminal."""
        ours, theirs = pty.openpty()
        process = self.start(*more, stderr=theirs, env=env)
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(ours)
        self.assertEqual(process.wait(), 0)
        return shown

    def test_bar_on_a_terminal(self):
        shown = self.shown_on_terminal(env={**os.environ, "TERM": "xterm"})
        bar = rb"\[#*-*\] +\d+ % walking stage \d of 6, [\d.e+]+ steps/s, \d+ s left"
        self.assertRegex(shown, bar)
        self.assertNotRegex(shown, rb"writing, [^,]* steps/s")
        self.assertTrue(shown.endswith(b"\r\x1b[K"), "the bar goes when the work is done")

    def test_a_terminal_that_clears_no_lines(self):
        for kind in ("dumb", "", None):
            env = {name: value for name, value in os.environ.items() if name != "TERM"}
            shown = self.shown_on_terminal("--alpha", "2" if kind else "3",
                                           env=env if kind is None else {**env, "TERM": kind})
            self.assertRegex(shown, rb"(?m)^ *\d+ % walking stage")
            self.assertNotIn(b"\x1b", shown)
            shutil.rmtree(self.here / "out")

    def test_never_backwards(self):
        """Whatever is done after what: of other depths, from pictures, with a mask."""
        done = self.theseus(*self.words(), *SLOW)
        shares = [int(share) for share in re.findall(r"^ *(\d+) % ", done.stderr, re.M)]
        self.assertEqual(shares, sorted(shares))

    def test_lines_elsewhere(self):
        done = self.theseus(*self.words(), *SLOW)
        self.assertRegex(done.stderr, r"^ *\d+ % walking stage \d of 6(, .* s left)?\n")
        self.assertNotIn("\r", done.stderr)
        self.assertIsNone(re.search(r"\[#", done.stdout))


if __name__ == "__main__":
    support.main()
