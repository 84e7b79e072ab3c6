"""theseus transport with what does not belong together: exit 2, what was found, what was expected, what
to try, and no trace. Everything is refused before the work begins."""
import json
import math
import os
import shutil

import support
from pair import KEY, PairTest, ids, images
from support import CASES, change_json, change_weights, read_safetensors, tensor, write_safetensors


class Options(PairTest):
    def test_words(self):
        for option, word, says in [
                ("method", "magic", ["unknown method 'magic'", "procrustes"]),
                ("tokens", "magic", ["unknown matcher 'magic'", "grid"]),
                ("norms", "magic", "'magic' is none of: diagonal rotate skip"),
                ("method", "procrustes:rank=magic", "'magic' is none of: complete arbitrary truncate"),
                ("depth", "magic", "'magic' is none of: divided whole stretch"),
                ("write", "magic", "'magic' is none of: model update adapter"),
                ("device", "magic", ["unknown device 'magic'", "cpu cuda"]),
                ("memory", "lots", ["--memory: 'lots' is not a size", "8GB", "1.5G"]),
                *(("memory", size, f"--memory: '{size}' is not a size")
                  for size in ("-1", "-2GB", "nan", "inf", "0", "0GB", "GB", "2GX", "2iB", "1e30GB")),
                ("method", "procustes", "did you mean 'procrustes'?"),
                ("tokens", "gird", ["unknown matcher 'gird'", "grid"]),
                ("norms", "diagnal", "did you mean 'diagonal'?"),
                ("depth", "strech", "did you mean 'stretch'?"),
                ("head", "magic", "'magic' is none of: leave carry"),
                ("head", "fit", ["--head fit", "--head carry"]),
                ("write", "modle", "did you mean 'model'?"),
                ("output-dtype", "flaot32", "did you mean 'float32'?"),
                ("dtype", "flaot16", "did you mean 'float16'?"),
                ("device", "gpu", "where cuda is a GPU"),
                ("alpha", "nan", "--alpha: 'nan' is not a finite number"),
                ("alpha", "x", "--alpha: 'x' is not a number"),
                ("method", "procrustes:whiten=0.7", "from 0 to 0.5, found 0.7"),
                ("method", "procrustes:whiten=nan", "whiten='nan' is not a number"),
                ("method", "procrustes:whiten", "whiten='' is not a number"),
                ("method", "procrustes:center=1", "center takes no value"),
                ("method", "procrustes:centre", "did you mean 'center'?"),
                ("batches", "0", "--batches: Value 0 not in range 1"),
                ("batch-size", "-3", "--batch-size: Value -3 not in range 1"),
                ("threads", "0", "--threads: Value 0 not in range 1"),
                ("save-every", "-1", "--save-every"),
                ("seed", "-1", "--seed: '-1' is not a whole number")]:
            with self.subTest(option=option, word=word):
                changed = {"threads": None} if option == "threads" else {}
                self.refused(*self.words(**changed), f"--{option}={word}", says=says)

    def test_sizes(self):
        """However people spell them."""
        for size in ("2G", "2GB", "2 GiB", "2gb", "1.5G", "2048m", "2e9", "2Gi", "2000000 KB", "0.002T"):
            self.theseus(*self.words("plan", memory=size))

    def test_required(self):
        self.refused(*self.words(source=None), says=["--source is required", "_name_or_path"])
        self.refused(*self.words(examples=None), says=["--examples is required", "procrustes"])
        for option in ("tuned", "target"):
            self.refused(*self.words(**{option: None}), says=f"--{option} is required")

    def test_without_effect(self):
        """An option that the method ignores, and methods that cannot do it."""
        self.refused(*self.words(method="pinv:whiten=0.2"), says=[
            "whiten has no effect with method pinv", "procrustes"])
        self.refused(*self.words(method="procrustes:ridge=0.2"), says=["ridge has no effect", "pinv-tikhonov"])
        self.refused(*self.words(method="permutation"), says=[
            "needs equal widths", "48", "96", "procrustes"])
        self.refused(*self.words(method="pad", tokens="grid"), says=[
            "--tokens has no effect with method pad", "no blocks are matched"])
        self.refused(*self.words(shots="2", batches="2"), says="--batches has no effect with --shots")
        self.refused(*self.words(split="not test"), says="unknown split 'not test'")
        self.refused(*self.words(tokens="text", write="adapter"), says=[
            "--write adapter needs an adapter as --tuned", "--write model or update"])

    def test_numbers(self):
        """Each is finite and in its bounds, and these are shown as people write them."""
        for command, option, value in (
                ("transport", "--save-every", "nan"), ("transport", "--save-every", "inf"),
                ("align", "--save-every", "-1"), ("imitate", "--save-every", "1e999"),
                ("imitate", "--map-ridge", "nan"),
                ("imitate", "--fit-ridge", "inf"), ("imitate", "--alpha", "nan")):
            done = self.refused(*self.words(command), f"{option}={value}", says=[option, value])
            self.assertLess(len(done.stderr), 200)
        finetune = ["finetune", "--model", self.models / "base", "--data", "x", "--out", self.here / "o"]
        for option, value in (("--save-every", "nan"), ("--weight-decay", "inf"), ("--clip", "nan"),
                              ("--lora-alpha", "nan")):
            self.refused(*finetune, f"{option}={value}", says=[option, "is not a finite number"])

    def test_what_memory_counts(self):
        record = self.record(self.carry(memory="2GB"))
        self.assertFalse([note for note in record["notes"] if "--memory" in note])
        said = self.theseus("transport", "--help").stdout
        self.assertIn("files that are mapped", " ".join(said.split()))

    def test_resources(self):
        self.refused(*self.words(memory="1MB"), says=[
            "needs", "--memory allows 1.0 MB", "--batch-size"])
        self.refused(*self.words(memory="1KB"), says="--memory allows 1.0 kB")
        if not json.loads(self.theseus("doctor", "--json").stdout)["gpus"]:
            self.refused(*self.words(device="cuda"), says=["no CUDA device", "use cpu"])


class Out(PairTest):
    def test_names(self):
        (self.here / "there").mkdir()
        (self.here / "there" / "mine").write_text("x")
        (self.here / "file").write_text("x")
        for name in ("there", "file"):
            self.refused(*self.words(out=name), says=["exists", "choose another name"])
        self.refused(*self.words(out="there"), "--fresh",
                     says="--fresh replaces only what theseus wrote")
        self.refused(*self.words(out="no/such"), says="there is no directory")
        words = self.words()
        for name in ("", "-"):
            words[words.index("--out") + 1] = name
            self.refused(*words, says=f"--out: '{name}' does not name a directory")

    def test_what_is_there(self):
        """Nothing of the user's is written into or taken away."""
        partial = self.here / "out.partial"
        partial.mkdir()
        (partial / "mine").write_text("precious")
        self.refused(*self.words(), says=["out.partial", "of an earlier build, or not ours"])
        self.assertEqual((partial / "mine").read_text(), "precious")
        shutil.rmtree(partial)
        for name in ("base", "tuned", "wide"):
            self.refused(*self.words(out=self.models / name / "out"), says=["lies in", name])

    def test_read_only(self):
        options = self.as_nobody()
        self.models.chmod(0o755)
        locked = self.here / "locked"
        locked.mkdir()
        locked.chmod(0o555)
        self.refused(*self.words(out="locked/out"), says=["cannot make", "Permission denied"],
                     **options)

    def test_no_space(self):
        """A target whose head alone is larger than the disk; the file has a hole."""
        huge = self.here / "huge"
        shutil.copytree(self.models / "wide", huge)
        classes = 2 * (shutil.disk_usage(self.here).free // (96 * 4) + 1)
        change_json(huge / "config.json", {"num_classes": classes,
                                           "model_args.num_classes": classes})
        weights = read_safetensors(huge / "model.safetensors")
        heads = {"head.weight": [classes, 96], "head.bias": [classes]}
        header, offset = {}, 0
        kept = {name: one for name, one in weights.items() if name not in heads}
        for name, one in kept.items():
            header[name] = {"dtype": one.dtype, "shape": one.shape,
                            "data_offsets": [offset, offset + len(one.data)]}
            offset += len(one.data)
        body = b"".join(one.data for one in kept.values())
        for name, shape in heads.items():
            end = offset + 4 * math.prod(shape)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, end]}
            offset = end
        support.raw_safetensors(huge / "model.safetensors", header, body)
        start = (huge / "model.safetensors").stat().st_size - len(body)
        os.truncate(huge / "model.safetensors", start + offset)
        self.refused(*self.words(target=huge, memory="4000TB"),
                     says=["the output needs", "TB" if offset > 1e12 else "GB", "left"])


class Models(PairTest):
    def test_paths(self):
        for side in ("source", "target"):
            self.refused(*self.words(**{side: "nowhere"}), says=[
                "nowhere", "No such file", f"opening the {side}"])
        self.refused(*self.words(tuned="nowhere"), says=["reading the tuned model nowhere"])
        self.refused(*self.words(examples="nowhere"), says=["no such file or folder", "preparing the examples of nowhere"])

    def test_families(self):
        self.refused(*self.words(source=CASES / "vit_bare"), says=[
            "the source is a vit model and the target a timm_vit model", "one family"])

    def test_tuned(self):
        wide, tuned = self.models / "wide", self.tuned()[KEY]
        shallow = self.here / "shallow"
        shutil.copytree(self.models / "tuned", shallow)
        change_weights(shallow, lambda tensors: [
            tensors.pop(name) for name in list(tensors) if name.startswith("blocks.3.")])
        for one, says in [
                (self.models / "base", "changes nothing: every tensor equals the source's"),
                (wide, ["not a tune of the source", "other shapes", "[96, 96], in the source [48, 48]"]),
                (shallow, ["not a tune of the source", "config.json of its own", "lacks 12 of the"]),
                (CASES / "adapted_vit", ["none of its tensors is the source's", "classifier.bias"]),
                (CASES / "adapted_vit_adapter", ["which this model does not have"]),
                (self.write("nan.safetensors", {KEY: tuned.changed(3, float("nan"))}),
                 [KEY, "holds NaN or infinity"]),
                (self.write("emb.safetensors", {
                    KEY: tuned, "pos_embed": self.base()["pos_embed"].changed(0, float("inf"))}),
                 ["pos_embed", "holds NaN or infinity"]),
                (self.write("int.safetensors", {KEY: tensor("I64", tuned.shape, 3)}),
                 ["must be floating point", f"{KEY} I64"])]:
            with self.subTest(tuned=one):
                self.refused(*self.words(tuned=one), says=says)

    def test_adapter_with_a_head(self):
        """A head that came whole has no place in another model's adapter: known before the work."""
        text = self.write("text.safetensors", {"input_ids": ids(8, 8)})
        bert = CASES / "adapted_bert"
        given = dict(source=bert, target=bert, tuned=CASES / "adapted_bert_adapter", examples=text)
        self.refused(*self.words(**given), "--head", "carry", says=[
            "replaces classifier.", "as a whole", "--write model"])

    def test_vocabularies(self):
        """Tokens pair only where an id means the same in both models."""
        text = self.write("text.safetensors", {"input_ids": ids(4, 8)})
        other = self.model("llama3_rope", "other")
        given = dict(source=CASES / "adapted_llama", tuned=CASES / "adapted_llama_adapter",
                     target=other, examples=text)
        tokenizers = [{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}}},
                      {"model": {"type": "BPE", "vocab": {"a": 1, "b": 0}}}]
        source = self.model("adapted_llama", "source")
        for place, content in zip((source, other), tokenizers):
            (place / "tokenizer.json").write_text(json.dumps(content))
        self.refused(*self.words(**{**given, "source": source}), says=[
            "the tokenizers differ (tokenizer.json)", "--tokens mean", "source/input_ids"])
        change_json(other / "config.json", {"vocab_size": 61})
        weights = read_safetensors(other / "model.safetensors")
        table = weights["model.embed_tokens.weight"]
        weights["model.embed_tokens.weight"] = tensor("F32", [61, 64], [*table.values(), *[0.0] * 64])
        write_safetensors(other / "model.safetensors", weights)
        self.refused(*self.words(**given), says=[
            "the vocabularies differ (60 in the source, 61 in the target)", "--tokens mean"])


class Calibration(PairTest):
    def test_contents(self):
        good = images(2)
        late = images(40).changed(-1, float("nan"))
        for tensors, says in [
                ({}, "it holds no input for the source model, which takes: pixel_values"),
                ({"labels": tensor("I64", [4], 1)}, ["beside labels it holds no input", "pixel_values"]),
                ({"pixel_values": images(0)}, ["has no sequences", "[0, 3, 28, 28]"]),
                ({"pixel_values": images(2).changed(5, float("nan"))}, "holds NaN or infinity"),
                ({"pixel_values": late}, ["pixel_values holds NaN or infinity in sequence 39"]),
                ({"pixel_values": images(2, 32)}, ["[n, 3, 28, 28], found Float [2, 3, 32, 32]",
                                                   "source/NAME"]),
                ({"pixel_values": tensor("F32", [2, 1, 28, 28], 0.5)}, "found Float [2, 1, 28, 28]"),
                ({"input_ids": ids(2, 4)}, ["input_ids is not an input", "pixel_values"]),
                ({"source/pixel_values": good}, "it holds no input for the target model"),
                ({"source/pixel_values": good, "target/pixel_values": images(3)},
                 "2 sequences for the source and 3 for the target")]:
            with self.subTest(says=says):
                self.refused(*self.words(examples=self.write("bad.safetensors", tensors)),
                             says=says)


if __name__ == "__main__":
    support.main()
