"""--output-dtype and --alpha: what rounding takes of an update, and an update that is nothing or too much."""
import json
import shutil
import struct

import support
from pair import KEY, PairTest
from support import Tensor, change_json, read_safetensors, tensor, write_safetensors

DTYPES = {"float16": "F16", "bfloat16": "BF16", "float32": "F32"}


def rounded(one, dtype):
    if dtype != "BF16":
        return tensor(dtype, one.shape, one.values())
    words = [struct.unpack("<I", struct.pack("<f", value))[0] for value in one.values()]
    halves = [(word + 0x7FFF + ((word >> 16) & 1)) >> 16 for word in words]
    return Tensor("BF16", one.shape, struct.pack(f"<{len(halves)}H", *halves))


class HalfTest(PairTest):
    def target(self, word="float16", wide=(), name="half", **config):
        """The wide model in half precision, but for tensors whose names have a word of `wide`."""
        path = self.here / name
        shutil.copytree(self.models / "wide", path)
        tensors = read_safetensors(path / "model.safetensors")
        for key, one in tensors.items():
            if not any(part in key for part in wide):
                tensors[key] = rounded(one, DTYPES[word])
        write_safetensors(path / "model.safetensors", tensors)
        change_json(path / "config.json", {"torch_dtype": word, **config})
        return path

    def short_tune(self, share=0.002):
        """So little of the fine-tune that half precision cannot hold it."""
        path = self.here / "short"
        shutil.copytree(self.models / "tuned", path)
        base, tuned = self.base(), self.tuned()
        write_safetensors(path / "model.safetensors", {
            name: tensor("F32", one.shape, [b + share * (t - b) for b, t in zip(
                base[name].values(), one.values())]) for name, one in tuned.items()})
        return path

    def written(self, out):
        tensors = read_safetensors(out / "model.safetensors")
        return {one.dtype for one in tensors.values()}, json.loads((out / "config.json").read_text())

    def lost(self, out, target, update):
        """The share of the update's square that is not there, by hand."""
        now, was = read_safetensors(out / "model.safetensors"), read_safetensors(
            target / "model.safetensors")
        lost = whole = 0
        for name, delta in read_safetensors(update / "update.safetensors").items():
            for d, a, b in zip(delta.values(), now[name].values(), was[name].values()):
                lost += (d - (a - b)) ** 2
                whole += d * d
        return lost / whole


class Auto(HalfTest):
    def test_half_stays_where_little_is_lost(self):
        for word in ("float16", "bfloat16"):
            target = self.target(word, name=word)
            out = self.carry(target=target, out=f"of_{word}")
            dtypes, config = self.written(out)
            self.assertEqual((dtypes, config["torch_dtype"]), ({DTYPES[word]}, word))
            stored = self.record(out)["output_dtype"]
            self.assertEqual((stored["asked"], stored["written"]), ("auto", word))
            self.assertLess(stored["lost"], 0.05)
            self.assertNotIn("would_be_lost", stored)

    def test_float32_where_much_would_be_lost(self):
        tuned = self.short_tune()
        for word in ("float16", "bfloat16"):
            target = self.target(word, name=word, text_config={"dtype": word})
            words = self.words(target=target, tuned=tuned, out=self.here / f"of_{word}")
            done = self.theseus(*words)
            out = self.here / f"of_{word}"
            dtypes, config = self.written(out)
            self.assertEqual(dtypes, {"F32"})
            self.assertEqual(config["torch_dtype"], "float32")
            self.assertEqual(config["text_config"]["dtype"], "float32")
            record = self.record(out)
            self.assertGreater(record["output_dtype"]["would_be_lost"], 0.05)
            self.assertLess(record["output_dtype"]["lost"], 1e-3)
            update = self.carry("--write", "update", target=target, tuned=tuned, out=f"u_{word}")
            self.assertAlmostEqual(self.lost(out, target, update), record["output_dtype"]["lost"],
                                   delta=1e-5)
            halved = self.carry("--output-dtype", "target", target=target, tuned=tuned,
                                out=f"half_{word}")
            self.assertEqual(self.written(halved)[0], {DTYPES[word]})
            self.assertAlmostEqual(self.lost(halved, target, update),
                                   record["output_dtype"]["would_be_lost"], delta=1e-5)
            for text in (done.stdout, json.dumps(record["notes"]), (out / "README.md").read_text()):
                self.assertIn("of the update's square would be lost to rounding", text)
                self.assertIn(word, text)
            for text in (json.dumps(self.record(halved)["notes"]),
                         (halved / "README.md").read_text()):
                self.assertIn("float32", text)
                self.assertIn("is lost to rounding", text)

    def test_a_resumed_job_decides_the_same(self):
        target, tuned = self.target(), self.short_tune()
        words = {"target": target, "tuned": tuned}
        whole = self.carry(out="whole", **words)
        again = self.carry(out="again", save_every=0, **words)
        self.assertEqual((whole / "model.safetensors").read_bytes(),
                         (again / "model.safetensors").read_bytes())

    def test_what_stands_beside_the_half_stays(self):
        """Norms in float32 are kept so; only what is stored in half precision is widened."""
        target = self.target(wide=["norm"])
        out = self.carry("--output-dtype", "bfloat16", target=target)
        before = read_safetensors(target / "model.safetensors")
        after = read_safetensors(out / "model.safetensors")
        self.assertEqual({one.dtype for one in before.values()}, {"F16", "F32"})
        for name, one in after.items():
            self.assertEqual(one.dtype, "F32" if "norm" in name else "BF16", name)
        kept = self.carry("--output-dtype", "target", target=target, out="kept")
        self.assertEqual({name: one.dtype for name, one in before.items()},
                         {name: one.dtype for name, one in
                          read_safetensors(kept / "model.safetensors").items()})

    def test_a_float32_target_may_become_half(self):
        out = self.carry("--output-dtype", "float16")
        self.assertEqual(self.written(out)[0], {"F16"})
        self.assertTrue(any("as was asked for" in note for note in self.record(out)["notes"]))
        self.theseus("inspect", out)

    def test_a_recipe_has_the_word(self):
        target = self.target()
        out = self.carry("--output-dtype", "float32", target=target)
        self.assertIn("output-dtype: float32", (out / "recipe.yaml").read_text())
        self.theseus("run", out / "recipe.yaml", "--out", self.here / "again", "--quiet")
        self.assertEqual(self.written(self.here / "again")[0], {"F32"})

    def test_plan_says_what_may_come(self):
        target = self.target()
        said = self.theseus(*self.words("plan", target=target)).stdout
        self.assertIn("float16, or float32 where more than 5 %", said)
        disk = {}
        for word in ("auto", "target", "float32"):
            plan = json.loads(self.theseus(*self.words("plan", target=target), "--json",
                                           "--output-dtype", word).stdout)
            disk[word] = plan["disk_bytes"]
        self.assertEqual(disk["auto"], disk["float32"])
        self.assertGreater(disk["float32"], disk["target"])

    def test_what_writes_no_model_has_no_dtype(self):
        self.refused(*self.words(), "--write", "update", "--output-dtype", "float32",
                     says=["--output-dtype", "--write model"])
        self.refused(*self.words(), "--output-dtype", "half", says=["half", "bfloat16"])
        self.refused("finetune", "--model", self.models / "base", "--data", "x", "--out",
                     self.here / "o", "--lora", 2, "--output-dtype", "float32", says=["--lora"])


class Strength(HalfTest):
    def test_a_strength_of_nothing_is_refused(self):
        for zero in ("0", "-0", "0.0"):
            self.refused(*self.words(), f"--alpha={zero}", says=["alpha", "0"])
        self.refused(*self.words("plan"), "--alpha", "0", says=["alpha"])
        self.refused(*self.words("imitate", examples=self.models / "images.safetensors"),
                     "--alpha", "0", says=["alpha"])

    def test_an_update_that_vanishes_is_an_error(self):
        for alpha in ("1e-9", "-1e-30"):
            self.refused(*self.words(), f"--alpha={alpha}", "--fresh",
                         says=["nothing of the update", "alpha"])
            self.assertFalse((self.here / "out").exists())
        self.refused(*self.words(target=self.target()), "--output-dtype", "target", "--fresh",
                     "--alpha", "1e-5", says=["nothing of the update", "rounding to float16 takes",
                                              "--output-dtype"])

    def test_an_update_larger_than_the_weights_is_warned_of(self):
        done = self.theseus(*self.words(), "--alpha", "1000")
        out = self.here / "out"
        for text in (done.stdout, json.dumps(self.record(out)["notes"]),
                     (out / "README.md").read_text()):
            self.assertIn("larger than the weights", text)
        self.assertNotIn("larger than the weights", self.theseus(*self.words(out="b")).stdout)


if __name__ == "__main__":
    support.main()
