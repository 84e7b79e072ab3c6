"""One job in several processes, as a launcher starts them: the result of one process, and a clear end when
one of them is lost, fails, or was told something else."""
import json
import os
import shutil
import signal
import socket
import subprocess
import time

import support
from pair import PairTest, files_of, images
from support import BINARY, read_safetensors, tensor, write_safetensors

WAIT = "30"  # seconds until a test gives up on processes that hang


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Together(PairTest):
    def environment(self, rank, size, port, **changed):
        variables = {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": port, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size,
                     "THESEUS_MEET_SECONDS": WAIT, "THESEUS_WAIT_SECONDS": WAIT, **changed}
        return {**os.environ, **{name: str(value) for name, value in variables.items()
                                 if value is not None}}

    def start(self, size, *words, port=None, ranks=None, own=None, cwd=None, **changed):
        """The processes; `own`: more words for the one of that rank."""
        port = port or free_port()
        processes = []
        for rank in ranks if ranks is not None else range(size):
            more = (own or {}).get(rank, [])
            process = subprocess.Popen(
                [BINARY, *(str(word) for word in words), *more], cwd=cwd or self.here, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=self.environment(rank, size, port, **changed))
            self.addCleanup(self.end, process)
            processes.append(process)
        return processes

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def ended(self, processes, seconds=60):
        """(exit status, standard output, standard error) of each."""
        results = []
        for process in processes:
            out, err = process.communicate(timeout=seconds)
            results.append((process.returncode, out, err))
        return results

    def together(self, size, *words, **options):
        """Runs to a good end: what the first process printed, and nothing elsewhere."""
        results = self.ended(self.start(size, *words, **options))
        for status, _, err in results:
            self.assertEqual(status, 0, err)
        for _, out, err in results[1:]:
            self.assertEqual(out + err, "")
        return results[0][1]

    def assert_refused(self, results, says):
        """All end with 2: who knows why says it, and the others say that somebody has ended."""
        self.assertEqual([result[0] for result in results], [2] * len(results), results)
        says = [says] if isinstance(says, str) else says
        knowing = [err for _, _, err in results if all(words in err for words in says)]
        self.assertTrue(knowing, results)
        for _, out, err in results:
            self.assertEqual(out, "")
            self.assertEqual(err.count("error: "), 1)
            self.assertTrue(err in knowing or "another process has ended" in err, err)

    def assert_nearly(self, left, right, tolerance):
        """Tensors of the model agree but for rounding; the largest difference over the largest value."""
        ours = read_safetensors(left / "model.safetensors")
        theirs = read_safetensors(right / "model.safetensors")
        self.assertEqual(set(ours), set(theirs))
        worst = 0
        for name, one in ours.items():
            a, b = one.values(), theirs[name].values()
            worst = max(worst, max(abs(x - y) for x, y in zip(a, b)) / max(map(abs, b)))
        self.assertLess(worst, tolerance)

    def assert_same_but_processes(self, left, right, size):
        """Every byte, but that the record says how many processes there were."""
        ours, theirs = files_of(left), files_of(right)
        self.assertEqual(set(ours), set(theirs))
        for name, content in ours.items():
            if name == "theseus.json":
                record = json.loads(content)
                self.assertEqual(record.pop("processes"), size)
                other = json.loads(theirs[name])
                for each in (record, other):
                    each.pop("schedule")  # groups are for as many blocks as there are processes
                    each.pop("job")  # which knows how many there were
                    each.pop("written", None)  # hashes of the files, README.md among them
                self.assertEqual(record, other)
            elif name != "README.md":
                self.assertTrue(content == theirs[name], f"{name} differs")


class SameResult(Together):
    def alone(self, **changed):
        """What one process gives; computed once for all tests."""
        kept = self.models / "-".join(["alone", *(f"{name}={changed[name]}" for name in sorted(changed))])
        if not kept.exists():
            shutil.move(self.carry(out="once", **changed), kept)
        return kept

    def test_two_batches_to_the_bit(self):
        """Sums of two batches are the same in any order: so is everything else."""
        alone = self.alone(batch_size=8)
        for size in (2, 4):
            out = f"of{size}"
            self.together(size, *self.words(out=out, batch_size=8), "--quiet")
            self.assert_same_but_processes(self.here / out, alone, size)
            self.assertFalse((self.here / f"{out}.partial").exists())

    def test_many_batches_to_rounding(self):
        """Eight batches: float64 sums in another order. Weights are float32, eps 1.2e-7."""
        alone = self.alone(batch_size=2)
        for size in (2, 4):
            out = f"of{size}"
            said = self.together(size, *self.words(out=out, batch_size=2), "--json")
            self.assertEqual(json.loads(said)["processes"], size)
            self.assert_nearly(self.here / out, alone, 5e-7)
            rows = [row["rows"] for row in self.record(self.here / out)["spaces"] if "rows" in row]
            others = [row["rows"] for row in self.record(alone)["spaces"] if "rows" in row]
            self.assertEqual(rows, others)

    def test_align(self):
        alone = self.carry(out="alone", command="align", batch_size=8)
        self.together(2, *self.words("align", out="pair", batch_size=8), "--quiet")
        for name, content in files_of(alone).items():
            if name.endswith(".safetensors"):
                self.assertTrue((self.here / "pair" / name).read_bytes() == content, name)
        carried = self.carry(out="carried", source=None, examples=None,
                             alignment=self.here / "pair")
        self.assertEqual((carried / "model.safetensors").read_bytes(),
                         (self.alone(batch_size=8) / "model.safetensors").read_bytes())

    def test_methods(self):
        """With Grams of both sides, with one Gram, and from weights, without data."""
        for name, more in (("whitened", {"method": "procrustes:whiten=0.5", "batch_size": 8}),
                           ("pinv", {"method": "pinv", "batch_size": 8}),
                           ("data-free", {"method": "data-free", "examples": None})):
            alone = self.carry(out=f"{name}-alone", **more)
            self.together(2, *self.words(out=name, **more), "--quiet")
            self.assert_same_but_processes(self.here / name, alone, 2)
        alone = self.carry("--method", "stream", out="stream-alone", batch_size=8)
        self.together(2, *self.words(out="stream", batch_size=8), "--method", "stream", "--quiet")
        self.assert_same_but_processes(self.here / "stream", alone, 2)

    def test_states_in_files(self):
        plan = self.theseus(*self.words("plan", batch_size=1), "--json").stdout
        schedule = json.loads(plan)["schedule"]
        memory = schedule["peak_memory_bytes"] - schedule["hidden_state_bytes"] * 15 // 16
        alone = self.carry("--memory", str(memory), out="alone", batch_size=1)
        self.together(2, *self.words(out="two", batch_size=1, memory=memory), "--quiet")
        for out in (alone, self.here / "two"):
            self.assertEqual(self.record(out)["schedule"]["hidden_states"], "in files")
        self.assert_nearly(self.here / "two", alone, 5e-7)

    def test_torchrun(self):
        torchrun = shutil.which("torchrun")
        if torchrun is None or subprocess.run(
                [torchrun, "--no_python", "--nproc_per_node", "1", "true"],
                capture_output=True, check=False).returncode != 0:
            self.skipTest("there is no torchrun, or none that works with this Python")
        alone = self.alone(batch_size=8)
        done = subprocess.run(
            [torchrun, "--no_python", "--nproc_per_node", "2", "--master_port", str(free_port()),
             BINARY, *self.words(out="two", batch_size=8), "--quiet"],
            cwd=self.here, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same_but_processes(self.here / "two", alone, 2)


class Lost(Together):
    SLOW = ["--batch-size", "1", "--quiet"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        few = images(4).values()
        write_safetensors(cls.models / "images.safetensors", {
            "pixel_values": tensor("F32", [240, 3, 28, 28], few * 60)})

    def killed_in_the_middle(self, size, rank):
        """Kills one when a group is done: what the others say, or None when all came to their end."""
        processes = self.start(size, *self.words(), *self.SLOW)
        walk = self.here / "out.partial" / "walk.safetensors"
        while not walk.exists() and processes[0].poll() is None:
            time.sleep(0.001)
        processes[rank].kill()
        results = self.ended(processes)
        if (self.here / "out").exists():
            shutil.rmtree(self.here / "out")
            return None
        self.assertEqual(results[rank][0], -signal.SIGKILL)
        return [result for other, result in enumerate(results) if other != rank]

    def lose(self, size, rank):
        for _ in range(20):
            others = self.killed_in_the_middle(size, rank)
            if others is not None:
                return others
        self.fail("never killed in time")

    def go_on(self, size):
        """The same command, to the bytes of one that was never interrupted."""
        whole = self.models / f"whole{size}"
        if not whole.exists():
            self.together(size, *self.words(out="whole"), *self.SLOW)
            shutil.move(self.here / "whole", whole)
        walk = self.here / "out.partial" / "walk.safetensors"
        first, batch = read_safetensors(walk)["position"].values()
        self.assertGreater(first, 0)
        self.assertEqual(batch, 0)
        self.refused(*self.words(), *self.SLOW, says="processes was 2 and is now not given"
                     if size == 2 else "processes was 4 and is now not given")
        self.together(size, *self.words(), *self.SLOW)
        self.assert_same_files(self.here / "out", whole)

    def test_one_of_two(self):
        self.assert_refused(self.lose(2, 1), ["another process has ended", "the same command goes on"])
        self.go_on(2)

    def test_the_first(self):
        self.assert_refused(self.lose(2, 0), ["another process has ended", "the same command goes on"])
        self.go_on(2)

    def test_one_of_four(self):
        self.assert_refused(self.lose(4, 2), "another process has ended")
        self.go_on(4)

    def test_one_that_hangs(self):
        processes = self.start(2, *self.words(), *self.SLOW, THESEUS_WAIT_SECONDS=2)
        walk = self.here / "out.partial"
        while not walk.exists() and processes[0].poll() is None:
            time.sleep(0.001)
        processes[1].send_signal(signal.SIGSTOP)
        status, _, err = self.ended(processes[:1])[0]
        if status != 0:  # else it was too late
            self.assertEqual(status, 2)
            self.assertIn("did not answer within 2 s", err)

    def test_control_c(self):
        processes = self.start(4, *self.words(), *self.SLOW)
        walk = self.here / "out.partial"
        while not walk.exists() and processes[0].poll() is None:
            time.sleep(0.001)
        for process in processes:
            process.send_signal(signal.SIGINT)
        results = self.ended(processes)
        self.assertEqual([result[0] for result in results], [130] * 4)
        self.assertIn("interrupted", results[0][2])
        self.assertEqual([result[2] for result in results[1:]], [""] * 3)
        self.assertEqual(list(self.here.rglob("*.tmp")), [])


class Refused(Together):
    def refuse(self, says, size=2, words=None, **options):
        self.assert_refused(self.ended(self.start(size, *(words or self.words()), **options)), says)
        self.assertFalse((self.here / "out").exists())
        self.assertFalse((self.here / "out.partial").exists())

    def test_environment(self):
        def refuse(says, **changed):
            status, out, err = self.ended(self.start(2, *self.words(), ranks=[0], **changed))[0]
            self.assertEqual((status, out), (2, ""))
            self.assertIn(says, err)
        refuse("RANK is 'one' in the environment; expected a number", RANK="one")
        refuse("RANK is 2 in the environment, and WORLD_SIZE is 2", RANK=2)
        refuse("RANK is not set", RANK="")
        refuse("MASTER_ADDR is not set", MASTER_ADDR="")
        refuse("MASTER_PORT is not set", MASTER_PORT="")
        refuse("MASTER_PORT is '70000'", MASTER_PORT=70000)
        refuse("WORLD_SIZE is 0", WORLD_SIZE=0)
        refuse("WORLD_SIZE is '-1'", WORLD_SIZE=-1)
        with socket.socket() as taken:
            taken.bind(("", 0))
            taken.listen()
            refuse("is taken", MASTER_PORT=taken.getsockname()[1])

    def test_others_never_come(self):
        first = self.ended(self.start(4, *self.words(), ranks=[0, 2], THESEUS_MEET_SECONDS=8))
        for status, out, err in first:
            self.assertEqual((status, out), (2, ""))
        self.assertIn("of 4 processes these did not come", first[0][2])
        self.assertIn("within 8 s: 1, 3", first[0][2])
        # Who has more patience than process 0 loses it, and the store with it.
        port = free_port()
        patient = self.start(4, *self.words(), port=port, ranks=[2], THESEUS_MEET_SECONDS=25)
        self.ended(self.start(4, *self.words(), port=port, ranks=[0], THESEUS_MEET_SECONDS=6))
        status, _, err = self.ended(patient)[0]
        self.assertEqual(status, 2)
        self.assertIn("process 0, where the processes meet, is gone", err)
        status, _, err = self.ended(
            self.start(2, *self.words(), ranks=[1], THESEUS_MEET_SECONDS=1))[0]
        self.assertEqual(status, 2)
        self.assertIn("process 1 of 2 did not reach process 0 at 127.0.0.1", err)

    def test_disagreement(self):
        self.refuse('--method is "not given" for process 0 and ', own={1: ["--method", "procrustes:center"]})
        # The same words, other files.
        words = self.words(examples="images.safetensors")
        port, processes = free_port(), []
        for rank, seed in enumerate((1, 2)):
            directory = self.here / str(rank)
            directory.mkdir()
            write_safetensors(directory / "images.safetensors",
                              {"pixel_values": images(16, seed=seed)})
            processes += self.start(2, *words, port=port, ranks=[rank], cwd=directory)
        self.assert_refused(self.ended(processes), "the set of examples is ")

    def test_wrong_input_is_said(self):
        self.refuse("no-such", size=4, words=self.words(target=self.models / "no-such"))
        self.refuse("is none of", words=[*self.words(), "--depth", "deep"])
        (self.here / "out").mkdir()
        (self.here / "out" / "mine").write_text("x")
        results = self.ended(self.start(2, *self.words()))
        self.assert_refused(results, "exists; choose another name")

    def test_one_process_only(self):
        alone = "runs as one process: start it without a launcher (WORLD_SIZE is 2)"
        self.refuse(["theseus plan", alone], words=self.words("plan"))
        self.refuse(["theseus inspect", alone], words=["inspect", self.models / "base"])
        recipe = self.here / "recipe.yaml"
        recipe.write_text(f"command: inspect\npath: {self.models / 'base'}\n")
        self.refuse(["theseus inspect", alone], words=["run", recipe])
        pair = self.carry(out="pair", command="align")
        self.refuse(["--alignment", alone], words=self.words(
            source=None, examples=None, alignment=pair))


if __name__ == "__main__":
    support.main()
