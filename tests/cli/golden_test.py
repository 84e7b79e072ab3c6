"""theseus forward --golden: every recorded case agrees, and a recording that was altered does not."""
import unittest

import support
from support import CASES, SHARED, tensor


class Agreement(support.CommandTest):
    def verify_all(self, root):
        for model, golden, adapter in support.golden_cases(root):
            with self.subTest(case=golden.parent.name):
                extra = ["--adapter", adapter] if adapter else []
                done = self.theseus("forward", model, "--golden", golden, *extra)
                self.assertNotIn("WRONG", done.stdout)
                self.assertIn("tensors within 1e-05", done.stdout)

    def test_our_cases(self):
        self.assertGreaterEqual(len(list(support.golden_cases(CASES))), 18)
        self.verify_all(CASES)

    @unittest.skipUnless((SHARED / "golden").is_dir(), "there is no ../shared/golden")
    def test_shared_cases(self):
        self.verify_all(SHARED / "golden")

    @unittest.skipUnless((SHARED / "models").is_dir(), "there is no ../shared/models")
    def test_shared_models_open(self):
        for config in sorted((SHARED / "models").glob("*/config.json")):
            with self.subTest(model=config.parent.name):
                self.assertIn("family", self.theseus("inspect", config.parent).stdout)
                golden = config.parent / "golden.safetensors"
                if golden.exists():
                    self.theseus("forward", config.parent, "--golden", golden)


class Disagreement(support.CommandTest):
    def altered(self, case, change, says, exit=5):
        tensors = support.read_safetensors(self.golden(case))
        change(tensors)
        golden = self.write("altered.safetensors", tensors)
        done = self.theseus("forward", CASES / case, "--golden", golden, exit=exit)
        for text in says:
            self.assertIn(text, done.stdout + done.stderr)
        return done

    def replace(self, name, change):
        def edit(tensors):
            tensors[name] = change(tensors[name])
        return edit

    def test_one_value(self):
        done = self.altered("bert_bare", self.replace(
            "expect/pooler_output", lambda x: x.changed(5, x.values()[5] + 1e-3)),
            ["WRONG  expect/pooler_output", "ok     expect/last_hidden_state"])
        self.assertEqual(done.stdout.count("WRONG"), 1)

    def test_tolerance_is_the_users(self):
        tensors = support.read_safetensors(self.golden("bert_bare"))
        value = tensors["expect/pooler_output"]
        tensors["expect/pooler_output"] = value.changed(5, value.values()[5] + 1e-3)
        golden = self.write("altered.safetensors", tensors)
        self.theseus("forward", CASES / "bert_bare", "--golden", golden, "--tolerance", "0.01")

    def test_a_tap(self):
        self.altered("vit_bare", self.replace(
            "out/layers.1.mlp.fc1", lambda x: x.changed(0, x.values()[0] + 1)),
            ["WRONG  out/layers.1.mlp.fc1"])

    def test_greedy(self):
        self.altered("qwen3_bias", self.replace(
            "expect/greedy", lambda x: x.changed(-1, (x.values()[-1] + 1) % 60)),
            ["WRONG  expect/greedy"])

    def test_shape(self):
        self.altered("bert_bare", self.replace(
            "expect/pooler_output", lambda x: tensor("F32", x.shape[::-1], x.values())),
            ["WRONG  expect/pooler_output", "shape [3, 24], expected [24, 3]"])

    def test_nan_agrees_with_nothing(self):
        self.altered("bert_bare", self.replace(
            "expect/pooler_output", lambda x: x.changed(0, float("nan"))),
            ["WRONG  expect/pooler_output"])

    def test_infinity_agrees_with_nothing(self):
        self.altered("bert_bare", self.replace(
            "expect/pooler_output", lambda x: x.changed(0, float("inf"))),
            ["WRONG  expect/pooler_output"])

    def test_whole_numbers_do_not_agree_with_fractions(self):
        self.altered("bert_bare", self.replace(
            "expect/pooler_output", lambda x: tensor("I64", x.shape, [int(v) for v in x.values()])),
            ["WRONG  expect/pooler_output", "expected Long"])

    def test_an_output_that_the_model_does_not_have(self):
        self.altered("bert_bare", lambda tensors: tensors.update(
            {"expect/novelty": tensor("F32", [1], 0.0)}),
            ["WRONG  expect/novelty", "this model computes no such tensor"])

    def test_no_expectations(self):
        inputs = self.write("inputs.safetensors", support.inputs_of(self.golden("bert_bare")))
        self.refused("forward", CASES / "bert_bare", "--golden", inputs,
                     says=["inputs.safetensors holds nothing to compare with", "expect/"])

    def test_no_inputs(self):
        golden = self.write("golden.safetensors", {"expect/logits": tensor("F32", [1], 0.0)})
        self.refused("forward", CASES / "bert_bare", "--golden", golden,
                     says="golden.safetensors holds no inputs")

    def test_greedy_no_longer_than_the_prompt(self):
        tensors = support.read_safetensors(self.golden("qwen3_bias"))
        tensors["expect/greedy"] = tensors["input/input_ids"]
        golden = self.write("golden.safetensors", tensors)
        self.refused("forward", CASES / "qwen3_bias", "--golden", golden,
                     says="expect/greedy has 10 tokens a row, no more than the prompt")

    def test_greedy_of_a_model_that_does_not_generate(self):
        tensors = support.read_safetensors(self.golden("bert_bare"))
        tensors["expect/greedy"] = tensor("I64", [3, 12], 1)
        golden = self.write("golden.safetensors", tensors)
        self.refused("forward", CASES / "bert_bare", "--golden", golden,
                     says="no language head to generate with")

    def test_missing_golden(self):
        self.refused("forward", CASES / "bert_bare", "--golden", "nowhere.safetensors",
                     says="cannot open 'nowhere.safetensors': No such file")

    def test_without_effect(self):
        golden = self.golden("bert_bare")
        self.refused("forward", CASES / "bert_bare", "--golden", golden, "--out", "o.safetensors",
                     says="--out has no effect with --golden")
        self.refused("forward", CASES / "bert_bare", "--inputs", golden, "--out", "o.safetensors",
                     "--tolerance", "1", says="--tolerance has no effect without --golden")
        self.refused("forward", CASES / "bert_bare", "--inputs", golden,
                     says=["--out is required", "--golden"])

    def test_negative_tolerance(self):
        self.refused("forward", CASES / "bert_bare", "--golden", self.golden("bert_bare"),
                     "--tolerance", "-1", says="--tolerance")


if __name__ == "__main__":
    support.main()
