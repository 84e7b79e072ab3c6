"""Pictures of digits for the demo's models; made once for a test file."""
import json
import subprocess
import sys

from pair import DEMO, PairTest
from support import change_json, read_safetensors, tensor, write_safetensors

SIZE = 28


class DigitsTest(PairTest):
    """Noisy digits of the demo as PPM files in class folders; the models' configs say how they are read."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([sys.executable, "-B", DEMO / "digits.py", cls.models], check=True,
                       stdout=subprocess.DEVNULL)
        for name in ("base", "tuned", "wide"):
            change_json(cls.models / name / "config.json", {"pretrained_cfg": {
                "input_size": [3, SIZE, SIZE], "mean": [0, 0, 0], "std": [1, 1, 1],
                "interpolation": "bicubic", "crop_pct": 1.0}})
        labels = json.loads((cls.models / "labels.json").read_text())
        pixels = read_safetensors(cls.models / "test.safetensors")["pixel_values"].values()
        area = SIZE * SIZE
        cls.bytes, cls.labels = [], labels[:120]
        for i in range(len(cls.labels)):
            planes = pixels[i * 3 * area:(i + 1) * 3 * area]
            cls.bytes.append(bytes(round(min(max(planes[channel * area + place], 0), 1) * 255)
                                   for place in range(area) for channel in range(3)))
        cls.write_pictures(cls.models / "digits", lambda i: "val" if i % 2 else "test")

    @classmethod
    def write_pictures(cls, folder, split_of):
        for i, label in enumerate(cls.labels):
            place = folder / split_of(i) / f"digit {label}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{i}.ppm").write_bytes(b"P6 %d %d 255\n" % (SIZE, SIZE) + cls.bytes[i])

    def expected(self, model, split):
        """Right answers, from the same 8-bit pixels through theseus forward."""
        chosen = [i for i in range(len(self.labels)) if i % 2 == (split == "val")]
        values = [self.bytes[i][place * 3 + channel] / 255 for i in chosen for channel in range(3)
                  for place in range(SIZE * SIZE)]
        inputs = self.here / "inputs.safetensors"
        write_safetensors(inputs, {"pixel_values": tensor("F32", [len(chosen), 3, SIZE, SIZE],
                                                          values)})
        logits = self.forward(model, inputs)["logits"].values()
        return sum(max(range(10), key=lambda c, n=n: logits[n * 10 + c]) == self.labels[i]
                   for n, i in enumerate(chosen))

    def evaluate(self, model, *more):
        done = self.theseus("evaluate", model, "--data", self.models / "digits", "--json", "--quiet",
                            "--threads", "1", *more)
        return json.loads(done.stdout)
