"""Jobs in float32 and bfloat16 with every set of kernels that can be had on this machine: none dies, and all agree."""
import pathlib
import subprocess
import unittest

import pair
import support
from support import CASES, PROGRAM, read_safetensors, unprepared


def kernels():
    """Those of OpenBLAS that this processor can run, and None: what is chosen for it."""
    try:
        words = pathlib.Path("/proc/cpuinfo").read_text().split()
    except OSError:
        words = []
    needs = {"Prescott": "pni", "Haswell": "avx2", "SkylakeX": "avx512vl"}
    return [None, *(kernel for kernel, flag in needs.items() if flag in words)]


def environments():
    """(name, program, environment): theseus and the program behind it, with and without a kernel named."""
    for kernel in kernels():
        named = {"OPENBLAS_CORETYPE": kernel} if kernel else {}
        yield f"theseus, {kernel}", support.BINARY, unprepared(**named)
        yield f"the program alone, {kernel}", PROGRAM, unprepared(**named)
    yield "a limit of the user", support.BINARY, unprepared(DNNL_MAX_CPU_ISA="AVX2")


class EnvironmentsTest(pair.PairTest):
    def run_in(self, program, environment, *words):
        done = subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, env=environment, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_job_in_float32_gives_the_same_update_everywhere(self):
        outputs = {}
        for name, program, environment in environments():
            out = self.here / str(len(outputs))
            self.run_in(program, environment, *self.words(out=out.name), "--write", "update", "--quiet")
            outputs[name] = read_safetensors(out / "update.safetensors")
        first = next(iter(outputs.values()))
        for name, update in outputs.items():
            for key, one in first.items():
                # Sums in another order: float32's rounding, through the polar factors.
                size = max(map(abs, one.values()), default=0)
                self.assertLessEqual(support.largest_difference(one, update[key]),
                                     1e-3 * size + 1e-7, f"{name}: {key}")

    def test_a_job_in_bfloat16_ends_everywhere(self):
        for number, (_, program, environment) in enumerate(environments()):
            self.run_in(program, environment, *self.words(out=str(number)), "--quiet",
                        "--dtype", "bfloat16")
            self.assertTrue((self.here / str(number) / "model.safetensors").exists())

    def test_a_forward_pass_in_bfloat16_ends_everywhere(self):
        case = CASES / "llama_bfloat16"
        inputs = self.here / "inputs.safetensors"
        support.write_safetensors(inputs, {name.removeprefix("input/"): one for name, one in
                                           support.inputs_of(case / "golden.safetensors").items()})
        for number, (_, program, environment) in enumerate(environments()):
            self.run_in(program, environment, "forward", case, "--inputs", inputs,
                        "--out", self.here / f"{number}.safetensors", "--dtype", "bfloat16")

    def test_the_launcher_changes_no_byte_where_the_kernels_are_the_same(self):
        for kernel in kernels()[1:]:
            written = []
            for program in (support.BINARY, PROGRAM):
                out = self.here / f"{kernel}{len(written)}"
                # No stand-in for MKL, which only theseus would choose.
                self.run_in(program, unprepared(OPENBLAS_CORETYPE=kernel, LD_PRELOAD=""),
                            *self.words(out=out.name), "--quiet")
                written.append((out / "model.safetensors").read_bytes())
            self.assertTrue(written[0] == written[1], kernel)


if __name__ == "__main__":
    unittest.main()
