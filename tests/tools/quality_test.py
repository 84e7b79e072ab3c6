"""bench/quality.py: what it does to images, and what it makes of results."""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import quality  # noqa: E402

np = quality.np


@unittest.skipIf(np is None, "numpy is not installed, and images are changed by it")
class Changed(unittest.TestCase):
    def changed(self, rows, task, drawn=0.0):
        class Constant:
            def random(self, shape, dtype):
                return np.full(shape, drawn, dtype)

        images = np.array([rows, np.zeros_like(rows)], np.uint8)
        result = quality.changed(images, task, Constant())
        self.assertEqual(result.shape, images.shape)
        return result[0].tolist()

    def test_clean_and_inversion(self):
        self.assertEqual(self.changed([[0, 7], [200, 255]], "clean"), [[0, 7], [200, 255]])
        self.assertEqual(self.changed([[0, 7], [200, 255]], "inversion"), [[255, 248], [55, 0]])

    def test_noise(self):
        rows = [[0, 10], [100, 255]]
        self.assertEqual(self.changed(rows, "noise", 0.0), [[0, 6], [60, 153]])
        self.assertEqual(self.changed(rows, "noise", 0.5), [[51, 57], [111, 204]])
        self.assertEqual(self.changed(rows, "noise", 1.0), [[102, 108], [162, 255]])

    def test_shear(self):
        """The middle row stays; those beside it move half a pixel, in opposite ways."""
        rows = [[100, 20, 40], [10, 20, 30], [100, 20, 40]]
        self.assertEqual(self.changed(rows, "shear"), [[50, 60, 30], [10, 20, 30], [60, 30, 20]])

    def test_rotation(self):
        """By 45 degrees with the clock: what is above the middle comes to the corner on the right."""
        above = [[0, 100, 0], [0, 0, 0], [0, 0, 0]]
        self.assertEqual(self.changed(above, "rotation"), [[0, 21, 59], [0, 0, 21], [0, 0, 0]])
        middle = [[0, 0, 0], [0, 100, 0], [0, 0, 0]]
        turned = self.changed(middle, "rotation")
        self.assertEqual(turned, [[0, 9, 0], [9, 100, 9], [0, 9, 0]])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "images-idx3-ubyte"
            values = np.arange(12).reshape(3, 2, 2)
            quality.write_idx(path, values)
            self.assertEqual(path.read_bytes()[:16], bytes([0, 0, 8, 3, *[0, 0, 0, 3], *[0, 0, 0, 2] * 2]))
            self.assertEqual(quality.read_idx(path).tolist(), values.tolist())


class Table(unittest.TestCase):
    def record(self, before, tuned, one, best, alpha):
        return {"before": before, "tuned": tuned, "source": 0.5, "source tuned": 0.75,
                "rows": {"procrustes": {"value_at_one": one, "value": best, "alpha": alpha}}}

    def test_means_and_spreads(self):
        lines = quality.table("a title", [self.record(0.1, 0.9, 0.5, 0.9, 2),
                                          self.record(0.2, 0.7, 0.3, 0.6, 3)])
        self.assertEqual(lines[0], "### a title")
        self.assertEqual(lines[2], "target before 15.00 ± 7.07 %, fine-tuned 80.00 ± 14.14 %; source "
                                   "50.00 ± 0.00 %, fine-tuned 75.00 ± 0.00 %")
        # Recovered: 0.4 / 0.8 and 0.1 / 0.5 at 1, all and 0.4 / 0.5 at the best.
        self.assertEqual(lines[6], "| procrustes | 40.00 ± 14.14 | 75.00 ± 21.21 | 2.50 ± 0.71 | "
                                   "0.35 ± 0.21 | 0.90 ± 0.14 |")
        self.assertEqual(len(lines), 8)

    def test_summary(self):
        """A column a task, and only what all of them have."""
        noise, other = self.record(0.0, 1.0, 0.25, 0.5, 1.5), self.record(0.2, 0.7, 0.3, 0.6, 3)
        noise["rows"]["imitate"] = other["rows"]["imitate"] = {"value_at_one": 0.7, "value": 0.7, "alpha": 1}
        other["rows"]["pad"] = {"value_at_one": 0.2, "value": 0.2, "alpha": 1}
        lines = quality.summary("both", {"noise": [noise], "rotation": [other]})
        self.assertEqual(lines[2:-1], [
            "| gap recovered | noise | rotation |", "|---|---|---|",
            "| target before, % | 0.0 ± 0.0 | 20.0 ± 0.0 |",
            "| target fine-tuned, % | 100.0 ± 0.0 | 70.0 ± 0.0 |",
            "| procrustes | 0.25, 0.50 ± 0.00 | 0.20, 0.80 ± 0.00 |",
            "| imitate | 0.70 ± 0.00 | 1.00 ± 0.00 |"])

    def test_one_seed_has_no_spread(self):
        lines = quality.table("one", [self.record(0.0, 1.0, 0.25, 0.5, 1.5)])
        self.assertEqual(lines[6], "| procrustes | 25.00 ± 0.00 | 50.00 ± 0.00 | 1.50 ± 0.00 | "
                                   "0.25 ± 0.00 | 0.50 ± 0.00 |")


if __name__ == "__main__":
    unittest.main()
