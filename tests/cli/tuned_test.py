"""What may be given as --tuned, and what is said of it."""
import json
import random
import shutil

import support
from pair import PairTest
from support import CASES, change_json, read_safetensors, tensor, write_safetensors

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


class Dora(support.CommandTest):
    """PEFT recorded what the adapter computes: `theseus verify` compares with that."""

    def words(self, *more, tuned=DORA):
        return ["transport", "--source", DORA_BASE, "--tuned", tuned, "--target", DORA_BASE,
                "--method", "identity", "--heads", "--out", self.here / "out", *more]

    def test_forward(self):
        golden = DORA / "golden.safetensors"
        self.theseus("verify", DORA_BASE, "--golden", golden, "--adapter", DORA)

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
