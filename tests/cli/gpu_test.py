"""The same jobs on a GPU: the CPU's result but for rounding, and the same bytes after an interruption or in
several processes. Skipped where there is none."""
import json
import subprocess
import unittest

import interrupt_test
import processes_test
import support
from support import BINARY


def has_gpu():
    said = subprocess.run([BINARY, "doctor", "--json"], capture_output=True, text=True, check=True)
    return bool(json.loads(said.stdout)["gpus"])


@unittest.skipUnless(has_gpu(), "no CUDA device")
class SameAsOnTheCpu(processes_test.Together):
    def test_methods(self):
        """The largest difference over the largest weight. Two CPUs whose BLAS sums in another order differ as
        much: by 6e-5, and with few rows, which leave more open, by 2e-4."""
        for name, more in (("procrustes", {}), ("few-rows", {"batches": 1, "batch_size": 2}),
                           ("from-moments", {"method": "procrustes:statistics=moments"}),
                           ("whitened", {"method": "procrustes:whiten=0.25"}), ("linear", {"tokens": "linear"}),
                           ("linear-ortho", {"method": "linear-ortho"}),
                           ("pinv-tikhonov", {"method": "pinv-tikhonov"}),
                           ("data-free", {"method": "data-free", "examples": None})):
            with self.subTest(name):
                ours = self.carry(out=f"{name}-gpu", device="cuda", **more)
                theirs = self.carry(out=f"{name}-cpu", **more)
                self.assertEqual(self.record(ours)["device"], "cuda:0")
                self.assert_nearly(ours, theirs, 5e-4)

    def test_dtypes(self):
        """What is rounded on the way changes the maps as much as the rounding, and no more."""
        for dtype, bound in (("tf32", 2e-2), ("bfloat16", 0.3)):  # 0.15: these models are narrow
            ours = self.carry("--dtype", dtype, out=dtype, device="cuda")
            self.assertEqual(self.record(ours)["dtype"], dtype)
            self.assert_nearly(ours, self.carry(out=f"{dtype}-cpu"), bound)

    def test_alignment_of_a_gpu_serves_the_cpu(self):
        alignment = self.carry(out="alignment", command="align", device="cuda")
        ours = self.carry(out="ours", source=None, examples=None, alignment=alignment)
        self.assert_nearly(ours, self.carry(out="theirs"), 5e-4)


@unittest.skipUnless(has_gpu(), "no CUDA device")
class Interrupted(interrupt_test.Interrupted):
    DEVICE = "cuda"

    def test_killed_ten_times(self):
        self.kill_often(4)


@unittest.skipUnless(has_gpu(), "no CUDA device")
class Processes(processes_test.SameResult):
    """On one GPU, or one each where there are more."""
    DEVICE = "cuda"

    def test_methods(self):
        """To rounding only: decompositions there were not the same to the bit in two processes."""
        for name, more in (("whitened", {"method": "procrustes:whiten=0.5"}), ("pinv", {"method": "pinv"}),
                           ("data-free", {"method": "data-free", "examples": None})):
            with self.subTest(name):
                alone = self.carry(out=f"{name}-alone", **more)
                self.together(2, *self.words(out=name, **more), "--quiet")
                self.assert_nearly(self.here / name, alone, 5e-4)


if __name__ == "__main__":
    support.main()
