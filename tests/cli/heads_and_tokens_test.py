"""What comes with an update beside weights: names of classes, added tokens; and what inspect says of an adapter."""
import json
import random
import shutil

import support
from support import CASES, change_json, read_safetensors, tensor, write_safetensors

LLAMA = CASES / "llama3_rope"


class Carried(support.CommandTest):
    def tune(self, base, name, change=None):
        """A copy of a model with a little added to its blocks."""
        tuned = self.model(base, name)
        generator = random.Random(5)
        path = tuned / "model.safetensors"
        tensors = read_safetensors(path)
        for key, one in tensors.items():
            if ("layer" in key or "classifier" in key) and len(one.shape) == 2:
                tensors[key] = tensor("F32", one.shape, [
                    value + generator.gauss(0, 0.003) for value in one.values()])
        if change:
            change(tensors)
        write_safetensors(path, tensors)
        return tuned

    def carry(self, source, tuned, target, *more, out="out"):
        done = self.theseus("transport", "--source", source, "--tuned", tuned, "--target", target,
                            "--method", "copy", "--out", self.here / out, *more)
        return done.stdout, self.here / out


class ClassNames(Carried):
    def test_a_carried_head_keeps_its_names(self):
        for case, new in (("adapted_bert", "bert"), ("adapted_vit", "vit")):
            base = CASES / case
            count = len(json.loads((base / "config.json").read_text())["id2label"])
            names = [f"kind {i}" for i in range(count)]
            tuned = self.tune(case, f"tuned_{new}")
            change_json(tuned / "config.json", {
                "id2label": {str(i): name for i, name in enumerate(names)},
                "label2id": {name: i for i, name in enumerate(names)}})
            _, out = self.carry(base, tuned, base, "--head", "carry", out=new)
            config = json.loads((out / "config.json").read_text())
            self.assertEqual(config["id2label"], {str(i): name for i, name in enumerate(names)})
            self.assertEqual(config["label2id"], {name: i for i, name in enumerate(names)})
            self.theseus("inspect", out)
            _, kept = self.carry(base, tuned, base, out=new + "_kept")  # without --head carry it is the target's
            self.assertEqual(json.loads((kept / "config.json").read_text())["id2label"],
                             json.loads((base / "config.json").read_text())["id2label"])

    def test_names_that_nobody_knows_are_said(self):
        base = CASES / "adapted_bert"
        tuned = self.tune("adapted_bert", "tuned")
        change_json(tuned / "config.json", {"id2label": ..., "num_labels": 4})
        said, _ = self.carry(base, tuned, base, "--head", "carry")
        self.assertIn("does not name the classes", said)


class HeadsAlone(Carried):
    """A tune that changes nothing but its head is carried by --head carry, and every refusal says so."""

    def head(self, name, rows=None):
        tuned = self.model("adapted_bert", name)
        support.change_weights(tuned, lambda tensors: tensors.update({
            key: tensor("F32", [rows or one.shape[0], *one.shape[1:]], 0.25)
            for key, one in tensors.items() if key.startswith("classifier.")}))
        if rows:
            change_json(tuned / "config.json", {"id2label": ..., "label2id": ..., "num_labels": rows})
        return tuned

    def test_refusals(self):
        base, bare = CASES / "adapted_bert", self.model("adapted_bert", "bare")
        support.change_weights(bare, lambda tensors: [
            tensors.pop(key) for key in list(tensors) if key.startswith("classifier.")])
        for i, (source, tuned, says) in enumerate((
                (base, self.head("same"), ["classifier.weight: a head onto <class>"]),
                (base, self.head("more", 6), ["other shapes", "another number of classes"]),
                (bare, self.head("new"), ["changes nothing", "the source lacks classifier.bias"]))):
            self.refused("transport", "--source", source, "--tuned", tuned, "--target", source,
                         "--method", "copy", "--out", self.here / f"o{i}", says=[*says, "--head", "carry"])
        said, _ = self.carry(base, self.here / "same", base, "--head", "carry")
        self.assertIn("2 carried", said)


class AddedTokens(Carried):
    """A vocabulary of 60, and a tune that added three tokens."""

    def tokenizer(self, model, added=()):
        tokens = [{"id": 60 + i, "content": name, "special": True} for i, name in enumerate(added)]
        (model / "tokenizer.json").write_text(json.dumps({
            "model": {"type": "BPE", "vocab": {f"t{i}": i for i in range(60)}, "merges": []},
            "added_tokens": tokens}))
        if added:
            (model / "chat_template.jinja").write_text("{{ messages }}")
        return model

    def resized(self, tensors, rows):
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            if name in tensors:
                one = tensors[name]
                width = one.shape[1]
                tensors[name] = tensor("F32", [rows, width], one.values() +
                                       [0.1] * ((rows - one.shape[0]) * width))

    def made(self, name, rows, tune=False, added=()):
        model = self.tune("llama3_rope", name, lambda tensors: self.resized(tensors, rows)) if tune \
            else self.model("llama3_rope", name)
        if not tune:
            support.change_weights(model, lambda tensors: self.resized(tensors, rows))
        change_json(model / "config.json", {"vocab_size": rows})
        return self.tokenizer(model, added)

    def test_the_rest_is_carried_and_the_tokens_are_named(self):
        source = self.made("source", 60)
        for rows, padded in ((63, False), (64, True)):
            tuned = self.made(f"tuned{rows}", rows, tune=True, added=["<a>", "<b>", "<c>"])
            said, out = self.carry(source, tuned, source, out=f"small{rows}")
            self.assertIn("<a>, <b>, <c>", said)
            self.assertIn("3 of them for 3 added tokens", said)
            self.assertEqual("and 1 of padding, which no token has" in said, padded)
            self.assertIn("resize_token_embeddings", said)
            self.assertFalse((out / "chat_template.jinja").exists())
            now, was = (read_safetensors(model / "model.safetensors") for model in (out, source))
            wanted = read_safetensors(tuned / "model.safetensors")
            self.assertEqual(now["model.embed_tokens.weight"], was["model.embed_tokens.weight"])
            key = "model.layers.0.mlp.down_proj.weight"
            self.assertLess(support.largest_difference(now[key], wanted[key]), 1e-6)
            self.assertIn("<a>", (out / "README.md").read_text().replace("\\", ""))

    def test_padding_alone_is_no_token(self):
        source = self.made("source", 60)
        tuned = self.made("tuned", 64, tune=True)
        for write in ("model", "update"):
            said, out = self.carry(source, tuned, source, "--write", write, out=write)
            self.assertIn("4 more rows in its embedding than the source (60): 4 of padding", said)
            self.assertNotIn("added token", said)
        (tuned / "tokenizer.json").unlink()
        said, _ = self.carry(source, tuned, source, out="unknown")
        self.assertIn("no file says for which tokens", said)

    def test_tokens_of_a_list_of_lines(self):
        source, tuned = self.made("source", 60), self.made("tuned", 64, tune=True)
        for model, names in ((source, []), (tuned, ["<a>", "<b>"])):
            (model / "tokenizer.json").unlink()
            (model / "vocab.txt").write_text("\n".join([f"t{i}" for i in range(60)] + names) + "\n")
        for write in ("model", "update"):
            said, _ = self.carry(source, tuned, source, "--write", write, out=write)
            self.assertIn("2 of them for 2 added tokens, <a>, <b>, and 2 of padding", said)

    def test_a_target_with_room_gets_the_tokenizer(self):
        source, target = self.made("source", 60), self.made("target", 64)
        tuned = self.made("tuned", 63, tune=True, added=["<a>", "<b>", "<c>"])
        said, out = self.carry(source, tuned, target)
        self.assertIn("lie beside the output", said)
        for name in ("tokenizer.json", "chat_template.jinja"):
            self.assertEqual((out / name).read_bytes(), (tuned / name).read_bytes())
        other = self.made("other", 64)
        (other / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "vocab": {"x": 0}}}))
        said, out = self.carry(source, tuned, other, out="other_out")
        self.assertIn("not known to be the source's", said)
        self.assertEqual((out / "tokenizer.json").read_bytes(), (other / "tokenizer.json").read_bytes())

    def test_fewer_tokens_are_another_model(self):
        source = self.made("source", 60)
        small = self.model("llama3_rope", "small")
        support.change_weights(small, lambda tensors: tensors.update({
            "model.embed_tokens.weight": tensor("F32", [50, 64], 0.1)}))
        self.refused("transport", "--source", source, "--tuned", small, "--target", source, "--method",
                     "copy", "--out", self.here / "o", says=["other shapes"])


class Inspected(support.CommandTest):
    def test_layers_of_an_adapter_are_a_table(self):
        text = self.theseus("inspect", CASES / "adapted_vit_adapter").stdout
        self.assertLess(max(len(line) for line in text.splitlines()), 120)
        self.assertRegex(text, r"layers +1 x classifier")
        self.assertRegex(text, r" 2 x vit\.layers\.\*\.mlp\.fc1 +\[40,24\] +rank 2, scale 2\n")
        text = self.theseus("inspect", CASES / "dora_bert_adapter").stdout
        self.assertIn("PEFT DoRA adapter", text)
        self.assertIn("classifier.weight [4,24]", text)

    def test_a_head_beside_an_adapter(self):
        adapter = self.here / "adapter"
        shutil.copytree(CASES / "adapted_vit_adapter", adapter)
        (adapter / "1_Pooling").mkdir()
        (adapter / "2_Dense").mkdir()
        kinds = "sentence_transformers.models."
        (adapter / "modules.json").write_text(json.dumps([
            {"idx": 0, "name": "0", "path": "", "type": kinds + "Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": kinds + "Pooling"},
            {"idx": 2, "name": "classifier", "path": "2_Dense", "type": kinds + "Dense",
             "labels": ["no", "yes"]}]))
        (adapter / "1_Pooling" / "config.json").write_text(json.dumps(
            {"word_embedding_dimension": 24, "pooling_mode_mean_tokens": True}))
        (adapter / "2_Dense" / "config.json").write_text(json.dumps(
            {"activation_function": "torch.nn.modules.linear.Identity"}))
        write_safetensors(adapter / "2_Dense" / "model.safetensors", {
            "linear.weight": tensor("F32", [2, 24], 0.1), "linear.bias": tensor("F32", [2], 0.0)})
        self.assertIn("2 classes on 24 numbers: no, yes", self.theseus("inspect", adapter).stdout)
        found = json.loads(self.theseus("inspect", "--json", adapter).stdout)
        self.assertEqual(found["head"]["names"], ["no", "yes"])


if __name__ == "__main__":
    support.main()
