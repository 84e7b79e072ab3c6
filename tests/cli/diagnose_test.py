"""theseus diagnose: the verdict on a wider copy, on the same model and on a target of noise."""
import json
import random
import shutil
import statistics

import support
from digits import DigitsTest
from pair import PairTest, images
from support import change_json, read_safetensors, tensor, write_safetensors


class Diagnose(PairTest):
    def diagnose(self, *more, **changed):
        done = self.theseus(*self.words("diagnose", **changed), *more)
        self.assertEqual(list(self.here.iterdir()), self.there)
        return done.stdout

    def setUp(self):
        super().setUp()
        self.there = list(self.here.iterdir())

    def test_text(self):
        text = self.diagnose()
        for line in ("visual.*.attn_in", "12 to align on, 4 held out", "verdict      works",
                     "|A - B| / |A|"):
            self.assertIn(line, text)
        self.assertEqual(self.diagnose("--quiet"), "")

    def test_json(self):
        found = json.loads(self.diagnose("--json"))
        self.assertEqual((found["kind"], found["verdict"]), ("diagnose", "works"))
        self.assertEqual({space["space"].split(".")[1] for space in found["spaces"]}, set("0123"))
        for space in found["spaces"]:
            self.assertGreater(space["after"], 0.99)
            self.assertLessEqual(space["rank"], space["of"])
            self.assertTrue(0 < space["energy"] < 1 + 1e-9)

    def test_same_model(self):
        found = json.loads(self.diagnose("--json", target=self.models / "base"))
        self.assertEqual(found["verdict"], "just copy")
        self.assertEqual(found["distance"]["equal_bytes"], 1)
        self.assertIn("identity", found["reasons"][0])

    def test_target_of_noise(self):
        noise = self.here / "noise"
        shutil.copytree(self.models / "wide", noise)
        self.there = list(self.here.iterdir())
        generator = random.Random(3)

        def drawn(one):
            deviation = statistics.pstdev(one.values())
            return tensor(one.dtype, one.shape,
                          [generator.gauss(0, deviation) for _ in one.values()])

        weights = read_safetensors(noise / "model.safetensors")
        write_safetensors(noise / "model.safetensors", {
            name: drawn(one) if len(one.shape) > 1 else one for name, one in weights.items()})
        found = json.loads(self.diagnose("--json", target=noise))
        self.assertNotEqual(found["verdict"], "works")
        mean = statistics.mean(space["centred"] for space in found["spaces"])
        self.assertLess(mean, 0.8)

    def test_tuned_of_noise(self):
        """Whatever carries it over, random weights are no fine-tune; and who named the source is said."""
        noise = self.here / "noise"
        shutil.copytree(self.models / "tuned", noise)
        change_json(noise / "config.json", {"_name_or_path": str(self.models / "base")})
        self.there = list(self.here.iterdir())
        generator = random.Random(3)
        weights = read_safetensors(noise / "model.safetensors")
        write_safetensors(noise / "model.safetensors", {
            name: tensor(one.dtype, one.shape, [generator.gauss(0, 0.1) for _ in one.values()])
            if len(one.shape) > 1 else one for name, one in weights.items()})
        found = json.loads(self.diagnose("--json", tuned=noise, source=None))
        self.assertIn(found["verdict"], ("may work", "will not work"))
        notes = json.dumps(found["notes"])
        self.assertIn("the tuned model hardly looks like a tune of this source", notes)
        self.assertIn(str(self.models / "base"), notes)
        self.assertIn("hardly looks like a tune", json.dumps(found["reasons"]))

    def test_constant_inputs(self):
        same = images(1)
        for one in (tensor("F32", [8, 3, 28, 28], 0.0),
                    tensor("F32", [8, 3, 28, 28], same.values() * 8)):
            write_safetensors(self.here / "same.safetensors", {"pixel_values": one})
            self.refused(*self.words("diagnose", examples=self.here / "same.safetensors"),
                         says="all 8 sequences of the examples are the same")

    def test_refused(self):
        self.refused(*self.words("diagnose", tuned=None), says=["--tuned is required"])
        self.refused(*self.words("diagnose", source=None), says=["--source is required"])
        write_safetensors(self.here / "one.safetensors", {"pixel_values": images(1)})
        self.refused(*self.words("diagnose", examples=self.here / "one.safetensors"),
                     says=["one sequence cannot be split"])


class Agreement(DigitsTest):
    def diagnose(self, *more):
        done = self.theseus(*self.words("diagnose", examples=self.models / "digits"), "--json", *more)
        return json.loads(done.stdout)

    def test_verdict(self):
        """Whether the target comes to say what the tuned source says. With the update turned round it does not."""
        found = self.diagnose()
        agreement = found["agreement"]
        self.assertEqual((found["verdict"], agreement["rows"]), ("works", found["held_out"]))
        self.assertLess(agreement["before"], 0.5)
        self.assertGreater(agreement["after"], 0.95)
        self.assertIn("the target says what the tuned source says in", found["reasons"][0])
        away = self.diagnose("--alpha", "-1")
        self.assertEqual(away["verdict"], "will not work")
        self.assertIn("does not carry over", away["reasons"][0])


if __name__ == "__main__":
    support.main()
