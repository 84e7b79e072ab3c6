"""tools/demo/accuracy.py counts right."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

DEMO = pathlib.Path(__file__).resolve().parents[2] / "tools" / "demo"
sys.dont_write_bytecode = True
sys.path.insert(0, str(DEMO))
import tensors  # noqa: E402

LOGITS = [0.1, 2.0, -1.0, -3.0, -2.0, -1.5, 5.0, 4.0, 4.5, 0.0, 0.5, 1.0]  # 1, 2, 0, 2


def accuracy(labels):
    with tempfile.TemporaryDirectory() as directory:
        here = pathlib.Path(directory)
        tensors.write(here / "out.safetensors", {
            "features": tensors.Tensor.of("F32", [1], [9.0]),
            "logits": tensors.Tensor.of("F32", [4, 3], LOGITS)})
        (here / "labels.json").write_text(json.dumps(labels))
        done = subprocess.run(
            [sys.executable, "-B", DEMO / "accuracy.py", here / "out.safetensors",
             here / "labels.json"], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr


class Accuracy(unittest.TestCase):
    def test_percent(self):
        self.assertEqual(accuracy([1, 2, 0, 2]), (0, "100.0\n", ""))
        self.assertEqual(accuracy([1, 2, 1, 2]), (0, "75.0\n", ""))
        self.assertEqual(accuracy([0, 0, 1, 0]), (0, "0.0\n", ""))

    def test_labels_of_something_else(self):
        status, printed, message = accuracy([1, 2])
        self.assertEqual((status, printed), (1, ""))
        self.assertIn("4 rows of logits, but 2 labels", message)


if __name__ == "__main__":
    unittest.main()
