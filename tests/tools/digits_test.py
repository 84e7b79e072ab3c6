"""tools/demo/digits.py draws what it says, the same every time."""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

DEMO = pathlib.Path(__file__).resolve().parents[2] / "tools" / "demo"
sys.dont_write_bytecode = True
sys.path.insert(0, str(DEMO))
import digits  # noqa: E402
import tensors  # noqa: E402


def make(directory):
    subprocess.run([sys.executable, "-B", DEMO / "digits.py", directory], check=True)
    return {path.name: path.read_bytes() for path in pathlib.Path(directory).iterdir()}


class Files(unittest.TestCase):
    def test_shapes_labels_and_the_same_every_time(self):
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            files = make(first)
            self.assertEqual(make(second), files)
            for name, count in (("calibration", 256), ("test", 500)):
                images = tensors.read(pathlib.Path(first, f"{name}.safetensors"))
                self.assertEqual(list(images), ["pixel_values"])
                self.assertEqual(images["pixel_values"].shape, [count, 3, 28, 28])
                self.assertEqual(len(images["pixel_values"].data), count * 3 * 28 * 28 * 4)
        labels = json.loads(files["labels.json"])
        self.assertEqual(len(labels), 500)
        self.assertEqual(set(labels), set(range(10)))

    def test_channels_are_equal_and_pixels_in_range(self):
        with tempfile.TemporaryDirectory() as directory:
            make(directory)
            data = tensors.read(pathlib.Path(directory, "test.safetensors"))["pixel_values"].data
        plane = 28 * 28 * 4
        for begin in range(0, len(data), 3 * plane):
            red, green, blue = (data[begin + i * plane:begin + (i + 1) * plane] for i in range(3))
            self.assertTrue(red == green == blue)
        values = tensors.Tensor("F32", [28, 28], data[:plane]).values()
        self.assertTrue(all(0 <= value <= 1 for value in values))


class Drawing(unittest.TestCase):
    def test_every_digit_has_ink_and_stays_off_the_border(self):
        generator = random.Random(0)
        for digit in range(10):
            for _ in range(20):
                pixels = digits.draw(digit, generator)
                self.assertEqual(len(pixels), 28 * 28)
                self.assertTrue(all(0 <= pixel <= 1 for pixel in pixels))
                self.assertGreater(sum(pixels), 15)
                self.assertLess(sum(pixels), 28 * 28 / 2)
                corners = (pixels[at] for at in (0, 27, 27 * 28, 28 * 28 - 1))
                self.assertFalse(any(corners))

    def test_a_line(self):
        pixels = [0.0] * (28 * 28)
        digits.draw_line(pixels, (5, 10), (20, 10), 1.0)
        rows = [pixels[row * 28 + 12] for row in range(28)]
        self.assertEqual(rows, [0.0] * 9 + [0.5, 1.0, 0.5] + [0.0] * 16)

    def test_noise_keeps_a_part(self):
        black, white = [0.0] * 784, [1.0] * 784
        dark = digits.noisy(black, random.Random(0))
        bright = digits.noisy(white, random.Random(0))
        for low, high in zip(dark, bright):
            self.assertAlmostEqual(high - low, digits.KEPT, delta=1e-12)
        self.assertAlmostEqual(sum(dark) / 784, (1 - digits.KEPT) / 2, delta=0.03)


if __name__ == "__main__":
    unittest.main()
