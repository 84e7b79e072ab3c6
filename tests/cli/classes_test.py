"""Heads whose classes are the data's, in another order, without names, and others altogether."""
import json
import shutil

import support
from digits import DigitsTest
from support import change_json, change_weights, tensor

ORDER = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
OTHERS = ["cat", "dog", *(f"digit {i}" for i in range(2, 10))]


def permuted(one):
    """The rows of a head in ORDER."""
    width = len(one.values()) // 10
    values = one.values()
    return tensor("F32", one.shape, [value for row in ORDER
                                     for value in values[row * width:(row + 1) * width]])


class Classes(DigitsTest):
    def head(self, name, names, order=False, model="tuned"):
        """A copy of the model, with these names and, where `order`, its head's rows in ORDER."""
        copy = self.here / name
        shutil.copytree(self.models / model, copy)
        change_json(copy / "config.json", {"label_names": names})
        if order:
            change_weights(copy, lambda tensors: tensors.update(
                {key: permuted(tensors[key]) for key in ("head.weight", "head.bias")}))
        return copy

    def measure(self, model, *more):
        done = self.theseus("evaluate", model, "--data", self.models / "digits", "--json", "--quiet",
                            *more)
        return json.loads(done.stdout)

    def test_names(self):
        same = self.head("same", [f"THE_Digit-{i}" for i in range(10)])
        record = self.measure(same)
        self.assertGreater(record["value"], 0.9)
        self.assertEqual(record["notes"], [])
        other = self.head("order", [f"digit {i}" for i in ORDER], order=True)
        paired = self.measure(other)
        self.assertEqual(paired["value"], record["value"])
        self.assertIn("paired by their names", paired["notes"][0])
        text = self.theseus("evaluate", other, "--data", self.models / "digits", "--quiet").stdout
        self.assertIn("note: the classes of the data stand in another order", text)

    def test_numbers(self):
        for name, names in (("labels", [f"LABEL_{i}" for i in range(10)]),
                            ("bare", [str(i) for i in range(10)]), ("none", ...)):
            record = self.measure(self.head(name, names))
            self.assertGreater(record["value"], 0.9)
            self.assertIn("paired by their numbers", record["notes"][0])

    def test_others_are_refused_everywhere(self):
        wrong = self.head("wrong", OTHERS)
        digits = self.models / "digits"
        says = ["cat, dog, digit 2", "digit 0, digit 1, digit 2", "not the same classes"]
        self.refused("evaluate", wrong, "--data", digits, "--quiet", says=says)
        few = self.head("few", ["zero", "one"])
        change_weights(few, lambda tensors: tensors.update(
            {"head.weight": tensor("F32", [2, 48], 0.5), "head.bias": tensor("F32", [2], 0)}))
        change_json(few / "config.json", {"num_classes": 2, "model_args.num_classes": 2})
        self.refused("evaluate", few, "--data", digits, "--quiet",
                     says="the head has 2 classes and the data 10")
        self.refused("finetune", "--model", wrong, "--data", digits, "--out", self.here / "x",
                     "--steps", "1", "--batch-size", "8", "--quiet", says=[*says, "--head new"])
        target = self.head("target", OTHERS, model="wide")
        update = self.carry("--write", "update", out="u")
        self.refused("sweep", target, "--update", update, "--data", digits, "--split", "val", "--quiet",
                     says=says)
        maps = self.carry(out="maps", command="align")
        self.refused("evaluate", self.models / "wide", "--data", digits, "--head-from", wrong, "--alignment",
                     maps, "--quiet", says=says)
        done = self.theseus("compare", "--source", self.models / "base", "--target", target, "--setting",
                            "digits", self.models / "tuned", digits, "--methods", "pad", "--out",
                            self.here / "c", "--quiet", exit=2)
        self.assertIn("not the same classes", done.stderr)
        self.refused(*self.words(examples=None, labelled=digits, target=target), "--mask", "normal",
                     says=says)

    def test_another_order_everywhere(self):
        """Whatever goes by labels gives what it gave with the data's own order."""
        digits = self.models / "digits"
        names = [f"digit {i}" for i in ORDER]
        plain = self.head("plain", [f"digit {i}" for i in range(10)], model="wide")
        other = self.head("other", names, order=True, model="wide")
        update = self.carry("--write", "update", out="u")
        words = ["--update", update, "--data", digits, "--split", "val", "--from", "1", "--to", "1",
                 "--quiet", "--json"]
        left, right = (json.loads(self.theseus("sweep", model, *words).stdout)
                       for model in (plain, other))
        self.assertEqual(left["best"]["value"], right["best"]["value"])
        self.assertIn("paired by their names", " ".join(right["notes"]))
        masks = [self.record(self.carry("--mask", "normal", "--write", "update", examples=None,
                                        labelled=digits, target=model, out=f"mask-{model.name}"))
                 for model in (plain, other)]
        self.assertAlmostEqual(masks[0]["mask"]["loss"], masks[1]["mask"]["loss"], places=4)
        self.assertIn("paired by their names", " ".join(masks[1]["notes"]))
        tuned = self.head("tuned", names, order=True)
        maps = self.carry(out="maps", command="align")
        head = ["--head-from", tuned, "--alignment", maps]
        record = self.measure(self.models / "wide", *head)
        self.assertEqual(record["value"], self.measure(
            self.models / "wide", "--head-from", self.models / "tuned", "--alignment", maps)["value"])
        trained = json.loads(self.theseus(
            "finetune", "--model", tuned, "--data", digits, "--split", "val", "--validation", "test",
            "--steps", "1", "--lr", "1e-6", "--batch-size", "8", "--out", self.here / "t", "--quiet",
            "--json").stdout)
        self.assertGreater(trained["curve"][0]["value"], 0.9)
        self.assertIn("paired by their names", " ".join(trained["notes"]))

    def test_diagnose(self):
        """What two models say is compared by the names of what they say."""
        words = {"command": "diagnose", "examples": self.models / "digits"}
        names = [f"digit {i}" for i in ORDER]
        plain = self.head("plain", [f"digit {i}" for i in range(10)])
        found = []
        for target in (self.head("a", [f"digit {i}" for i in range(10)], model="wide"),
                       self.head("b", names, order=True, model="wide"),
                       self.head("c", OTHERS, model="wide")):
            done = self.theseus(*self.words(**words, tuned=plain, target=target), "--json", "--quiet")
            found.append(json.loads(done.stdout))
        self.assertEqual(found[0]["agreement"], found[1]["agreement"])
        self.assertNotIn("agreement", found[2])
        self.assertIn("not the same classes", " ".join(found[2]["notes"]))


if __name__ == "__main__":
    support.main()
