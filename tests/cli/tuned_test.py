"""What may be given as --tuned, and what is said of it."""
import json
import random
import shutil

import support
from pair import KEY, PairTest
from support import (CASES, change_json, change_weights, read_safetensors, tensor,
                     write_safetensors)

DORA, DORA_BASE = CASES / "dora_bert_adapter", CASES / "dora_bert"


class Kin(PairTest):
    """A tuned model that is none of this source."""

    def made(self, name, change):
        """A copy of the tuned model with each tensor changed by `change(name, values)`."""
        path = self.here / name
        shutil.copytree(self.models / "tuned", path)
        tensors = read_safetensors(path / "model.safetensors")
        write_safetensors(path / "model.safetensors", {
            key: tensor("F32", one.shape, change(key, one.values())) for key, one in tensors.items()})
        return path

    def warned(self, tuned, text):
        done = self.theseus(*self.words(tuned=tuned, out=f"of-{tuned.name}"))
        out = self.here / f"of-{tuned.name}"
        plan = self.theseus(*self.words("plan", tuned=tuned)).stdout
        for said in (done.stdout, json.dumps(self.record(out)["notes"]),
                     (out / "README.md").read_text(), plan):
            self.assertIn(text, said)

    def test_random_weights_are_warned_of(self):
        for scale in (0.3, 0.01):
            generator = random.Random(3)
            self.warned(self.made(f"random{scale}", lambda name, values: [
                generator.gauss(0, scale) for _ in values]), "hardly looks like a tune")

    def test_another_scale_is_warned_of(self):
        self.warned(self.made("scaled", lambda name, values: [3 * value for value in values]),
                    "hardly looks like a tune")

    def test_one_layer_that_is_new_is_named(self):
        generator = random.Random(4)
        self.warned(self.made("part", lambda name, values: [
            generator.gauss(0, 0.1) for _ in values] if name == "blocks.2.attn.proj.weight"
            else values), "1 of ")

    def test_a_tune_is_not(self):
        said = self.theseus(*self.words("plan")).stdout
        self.assertNotIn("hardly looks", said)
        self.assertNotIn("initialised anew", said)


class NamedBase(PairTest):
    """--source may be left out where the tuned model names its base, and that is here."""

    def tuned_naming(self, name, folder="tuned"):
        path = self.here / folder
        shutil.copytree(self.models / "tuned", path)
        change_json(path / "config.json", {"_name_or_path": name})
        return path

    def test_a_directory_that_is_named(self):
        given = self.carry(out="given", tuned=self.tuned_naming("x"))
        shutil.copytree(self.models / "base", self.here / "bases" / "old")
        for i, (name, cwd) in enumerate((
                (str(self.models / "base"), None), ("bases/old", self.here), ("../bases/old", "/"))):
            tuned = self.tuned_naming(name, f"tuned{i}")
            out = self.here / f"out{i}"
            done = self.theseus(*self.words(source=None, tuned=tuned, out=out.name), cwd=cwd)
            self.assertIn("the source is ", done.stdout)
            self.assertIn("_name_or_path", json.dumps(self.record(out)["notes"]))
            self.assertIn("_name_or_path", self.theseus(
                *self.words("plan", source=None, tuned=tuned), cwd=cwd).stdout)
            self.assertEqual((out / "model.safetensors").read_bytes(),
                             (given / "model.safetensors").read_bytes())
            self.assertIn("source: /", (out / "recipe.yaml").read_text())

    def test_what_is_not_here_is_said(self):
        for name, says in (("org/none", ["--source is required", "org/none"]), ("", ["names no base"]),
                           (str(self.here / "tunedself"), ["no other directory"])):
            tuned = self.tuned_naming(name, "tunedself" if "self" in name else f"tuned{len(name)}")
            self.refused(*self.words(source=None, tuned=tuned), says=says)
        shutil.copytree(self.models / "wide", self.here / "wide")
        self.refused(*self.words(source=None, tuned=self.tuned_naming("../wide", "other")),
                     says=["other shapes"])

    def test_an_adapter_names_it_too(self):
        adapter = self.here / "adapter"
        shutil.copytree(DORA, adapter)
        change_json(adapter / "adapter_config.json", {"base_model_name_or_path": str(DORA_BASE)})
        words = ["transport", "--tuned", adapter, "--target", DORA_BASE, "--method", "copy"]
        said = self.theseus(*words, "--out", self.here / "out").stdout
        self.assertIn("base_model_name_or_path", said)
        self.refused("imitate", "--tuned", DORA, "--target", DORA_BASE, "--examples", "x", "--out",
                     self.here / "o", says=["--source is required"])


class AnotherBase(PairTest):
    """A tuned model that names another base than --source is carried with a note."""

    SAYS = " names the base "

    def setUp(self):
        super().setUp()
        self.source = self.here / "small-vit-16"
        shutil.copytree(self.models / "base", self.source)

    def notes(self, name, command="transport", kind="tuned", folder="mine", source=None):
        """What is said of a tune that names `name`."""
        tuned = self.here / folder
        if kind == "tuned":
            shutil.copytree(self.models / "tuned", tuned)
            change_json(tuned / "config.json", {"_name_or_path": str(name)})
            words = self.words(command, tuned=tuned, source=source or self.source)
        else:
            shutil.copytree(DORA, tuned)
            change_json(tuned / "adapter_config.json", {"base_model_name_or_path": str(name)})
            base = source or DORA_BASE
            words = [command, "--source", base, "--tuned", tuned, "--target", DORA_BASE, "--method",
                     "copy", *(["--out", self.here / "out"] if command == "transport" else [])]
        said = self.theseus(*words).stdout
        if command == "transport":
            self.assertEqual(self.SAYS in said,
                             self.SAYS in json.dumps(self.record(self.here / "out")["notes"]))
            shutil.rmtree(self.here / "out")
        shutil.rmtree(tuned)
        return said

    def test_another_name(self):
        for kind, name in (("tuned", "org/large-vit-14"), ("adapter", "facebook/opt-125m"),
                           ("adapter", "/nowhere/models--meta--opt-125m/snapshots/0123abc/")):
            for command in ("transport", "plan"):
                said = self.notes(name, command, kind)
                self.assertIn(self.SAYS, said)
                self.assertIn(name, said)

    def test_names_that_tell_nothing(self):
        """The same by other letters, a name of no model, the tuned model's own."""
        for name, folder in (("org/Small_ViT-16", "mine"), ("./checkpoint-500", "mine"), ("base", "mine"),
                             ("org/deit-8", "deit-8"), ("", "mine"), ("0123456789abcdef01234567", "mine")):
            self.assertNotIn(self.SAYS, self.notes(name, folder=folder))
        plain = self.here / "base"
        shutil.copytree(self.models / "base", plain)
        self.assertNotIn(self.SAYS, self.notes("org/large-vit-14", source=plain))

    def test_another_directory(self):
        same, other = self.here / "copy", self.here / "other"
        shutil.copytree(self.models / "base", same)
        self.assertNotIn(self.SAYS, self.notes(same))
        shutil.copytree(self.models / "base", other)
        change_weights(other, lambda all: all.update({KEY: all[KEY].changed(0, 0.5)}))
        said = self.notes(other)
        self.assertIn(self.SAYS, said)
        self.assertIn(f"{other} (_name_or_path), whose weights are others than those of {self.source}", said)
        (other / "model.safetensors").unlink()  # nothing to compare with
        self.assertNotIn(self.SAYS, self.notes(other))


class Quantised(PairTest):
    def copy(self, which, name, config=None, tensors=()):
        path = self.here / name
        shutil.copytree(self.models / which, path)
        if config:
            change_json(path / "config.json", config)
        if tensors:
            change_weights(path, lambda all: all.update(tensors))
        return path

    def test_a_config_that_says_so(self):
        for i, (method, config) in enumerate((
                ("bitsandbytes", {"quantization_config": {"load_in_4bit": True}}),
                ("gptq", {"quantization_config": {"quant_method": "gptq", "bits": 4}}),
                ("awq", {"text_config": {"quantization_config": {"quant_method": "awq"}}}),
                ("fp8", {"quantization_config": {"quant_method": "fp8"}}))):
            for part, which in (("source", "base"), ("tuned", "tuned"), ("target", "wide")):
                model = self.copy(which, f"{part}{i}", config)
                self.refused(*self.words(**{part: model}),
                             says=["quantised by " + method, "full-precision"])

    def test_tensors_that_betray_it(self):
        for i, (said, name, one) in enumerate((
                ("bitsandbytes", KEY + ".absmax", tensor("F32", [4], 1.0)),
                ("bitsandbytes", KEY + ".quant_state.bitsandbytes__nf4", tensor("U8", [4], 1)),
                ("GPTQ", "blocks.0.attn.proj.g_idx", tensor("I32", [4], 1)),
                ("AWQ", "blocks.0.attn.proj.qweight", tensor("I32", [4], 1)),
                ("FP8", KEY + "_scale_inv", tensor("F32", [4], 1.0)),
                ("an unnamed method", KEY, tensor("I8", [48, 48], 1)))):
            for part, which in (("source", "base"), ("tuned", "tuned")):
                model = self.copy(which, f"{part}{i}", tensors={name: one})
                self.refused(*self.words(**{part: model}), says=[said, "full-precision"])


class Dora(support.CommandTest):
    """PEFT recorded what the adapter computes: `theseus forward --golden` compares with that."""

    def words(self, *more, tuned=DORA):
        return ["transport", "--source", DORA_BASE, "--tuned", tuned, "--target", DORA_BASE,
                "--method", "copy", "--head", "carry", "--out", self.here / "out", *more]

    def test_forward(self):
        golden = DORA / "golden.safetensors"
        self.theseus("forward", DORA_BASE, "--golden", golden, "--adapter", DORA)

    def test_it_is_carried_as_whole_weights(self):
        """Onto its own base, unchanged: the merged model computes what PEFT computes."""
        said = self.theseus(*self.words()).stdout
        self.assertIn("DoRA", said)
        golden = read_safetensors(DORA / "golden.safetensors")
        inputs = {name: one for name, one in golden.items() if name.startswith("input/")}
        logits = self.forward(self.here / "out", inputs)["logits"]
        self.assertLess(support.largest_difference(logits, golden["expect/logits"]), 1e-5)
        self.refused(*self.words("--write", "adapter"), "--fresh", says=["DoRA", "--write model"])

    def test_what_contradicts_itself_is_refused(self):
        broken = self.here / "broken"
        shutil.copytree(DORA, broken)
        change_json(broken / "adapter_config.json", {"use_dora": False})
        self.refused(*self.words(tuned=broken), says=["use_dora", "lora_magnitude_vector"])


if __name__ == "__main__":
    support.main()
