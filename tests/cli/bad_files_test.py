"""Files that are damaged, hostile or not what they seem: exit 2, a message that names them, no trace."""
import json
import os
import pickle
import shutil
import struct
import zipfile

import support
from support import CASES, Tensor, change_weights, raw_safetensors, tensor


def record(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


class Safetensors(support.CommandTest):
    def refuse(self, says, header=None, data=b"", content=None):
        path = self.here / "bad.safetensors"
        if content is None:
            raw_safetensors(path, header, data)
        else:
            path.write_bytes(content)
        self.refused("inspect", path, says=[path, *([says] if isinstance(says, str) else says)])

    def test_truncated(self):
        whole = (CASES / "vit_bare" / "model.safetensors").read_bytes()
        self.refuse("is truncated: the header is", content=whole[:1000])
        self.refuse(["is past the end of the data", "truncated file?"], content=whole[:-1])

    def test_header_length(self):
        self.refuse("is truncated: the header is 1000 bytes long, but only 2 bytes follow",
                    content=struct.pack("<Q", 1000) + b"{}")
        for length in (100_000_001, 2**64 - 1):
            self.refuse(f"header of {length} bytes; at most 100000000",
                        content=struct.pack("<Q", length) + b"{}")

    def test_header_text(self):
        self.refuse("not valid JSON", b'{"a": ')
        self.refuse("nested deeper than 64 levels", b'{"a":' * 100000)
        self.refuse("a.dtype is missing", {"a": {"shape": [], "data_offsets": [0, 0]}})

    def test_offsets(self):
        self.refuse(["tensor 'b' begins at 2, overlapping the tensor before it, which ends at 4"], {
            "a": record("U8", [4], 0, 4), "b": record("U8", [4], 2, 6)}, bytes(6))
        self.refuse("tensor 'b' begins at 6, leaving a hole after 4", {
            "a": record("U8", [4], 0, 4), "b": record("U8", [4], 6, 10)}, bytes(10))
        self.refuse("the tensors end at 4 but the data is 9 bytes long", {
            "a": record("U8", [4], 0, 4)}, bytes(9))
        self.refuse("a.data_offsets: end 80 is past the end of the data, which is 8 bytes long", {
            "a": record("U8", [80], 0, 80)}, bytes(8))
        self.refuse("a.data_offsets: 8 bytes, but [3] of F32 takes 12", {
            "a": record("F32", [3], 0, 8)}, bytes(8))
        self.refuse("reversed: begin 4 is after end 0", {"a": record("F32", [1], 4, 0)}, bytes(4))

    def test_shapes(self):
        self.refuse(["a.shape", "overflows 64 bits"], {
            "a": record("F32", [2**32, 2**32], 0, 4)}, bytes(4))
        self.refuse("extent -1 is negative", {"a": record("F32", [-1], 0, 4)}, bytes(4))
        self.refuse("unknown dtype 'F31'", {"a": record("F31", [1], 0, 4)}, bytes(4))

    def test_duplicate_names(self):
        one = json.dumps(record("U8", [1], 0, 1))
        self.refuse("the name 'a' appears twice", f'{{"a": {one}, "a": {one}}}'.encode(), b"\0")


class Weights(support.CommandTest):
    """Well-formed files that do not hold what the config says, or hold nothing to compute with."""

    def refuse(self, change, says):
        model = self.model("bert_bare", f"model {len(list(self.here.iterdir()))}")
        change_weights(model, change)
        inputs = self.golden("bert_bare")
        self.refused("forward", model, "--inputs", inputs, "--out", "out.safetensors", says=says)

    def test_missing_tensor(self):
        self.refuse(lambda tensors: tensors.pop("encoder.layer.1.output.dense.bias"), [
            "model.safetensors has no tensor 'encoder.layer.1.output.dense.bias'",
            "the nearest names are encoder.layer.0.output.dense.bias"])

    def test_wrong_shape(self):
        self.refuse(lambda tensors: tensors.update({"pooler.dense.bias": tensor("F32", [23], 0.0)}),
                    "pooler.dense.bias has shape [23]; the config implies [24]")

    def test_unexpected_tensor(self):
        self.refuse(lambda tensors: tensors.update({"encoder.surprise": tensor("F32", [2], 0.0)}), [
            "the checkpoint holds 1 tensors that this configuration does not use: encoder.surprise"])

    def test_names_do_not_reach_the_terminal_raw(self):
        self.refuse(lambda tensors: tensors.update({"a\x1b[2Jb": tensor("F32", [2], 0.0)}),
                    "a\\x1b[2Jb")

    def test_not_finite(self):
        name = "encoder.layer.1.intermediate.dense.weight"
        for value in (float("nan"), float("-inf")):
            self.refuse(lambda tensors: tensors.update({name: tensors[name].changed(7, value)}),
                        name + " holds NaN or infinity")

    def test_too_large_for_the_dtype(self):
        name = "pooler.dense.weight"
        self.refuse(lambda tensors: tensors.update({
            name: tensor("F64", [24, 24], [1e300] * 576)}),
            name + " holds NaN or infinity after conversion")

    def test_integers(self):
        name = "pooler.dense.weight"
        self.refuse(lambda tensors: tensors.update({name: tensor("I8", [24, 24], 1)}),
                    ["quantised", f"{name} is I8", "full-precision"])

    def test_eight_bit_floats(self):
        name = "pooler.dense.weight"
        self.refuse(lambda tensors: tensors.update({name: Tensor("F8_E4M3", [24, 24], bytes(576))}),
                    ["quantised by FP8", f"{name} is F8_E4M3", "full-precision"])

    def test_tied_tensors_that_differ(self):
        model = self.model("llama3_rope")
        change_weights(model, lambda tensors: tensors.update(
            {"lm_head.weight": tensors["model.embed_tokens.weight"].changed(3, 9.0)}))
        self.refused("inspect", model, says=[
            "the config ties lm_head.weight to model.embed_tokens.weight", "two different tensors"])
        change_weights(model, lambda tensors: tensors.update(
            {"lm_head.weight": tensors["model.embed_tokens.weight"]}))
        self.theseus("inspect", model)


class Shards(support.CommandTest):
    def index(self, change):
        model = self.here / "model"
        shutil.rmtree(model, ignore_errors=True)
        self.model("llama_bfloat16")
        path = model / "model.safetensors.index.json"
        document = json.loads(path.read_text())
        change(document, model)
        path.write_text(json.dumps(document))
        return model

    def refuse(self, change, says):
        self.refused("inspect", self.index(change), says=["model.safetensors.index.json", *says])

    def test_names(self):
        for shard in ("../elsewhere.safetensors", "/etc/passwd", "x\0y"):
            self.refuse(lambda document, _: document["weight_map"].update({"lm_head.weight": shard}),
                        ["is not a file inside the index's directory"])

    def test_missing_shard(self):
        self.refuse(lambda _, model: (model / "model-00002-of-00003.safetensors").unlink(), [
            "names the shard 'model-00002-of-00003.safetensors', which is missing", "tensors, such as"])

    def test_shard_without_the_tensor(self):
        self.refuse(lambda document, _: document["weight_map"].update(
            {"novelty": "model-00001-of-00003.safetensors"}),
            ["model-00001-of-00003.safetensors lacks the tensor 'novelty'"])

    def test_tensor_without_mention(self):
        self.refuse(lambda document, _: document["weight_map"].pop("model.norm.weight"),
                    ["holds the tensor 'model.norm.weight', which", "does not mention"])

    def test_weight_map(self):
        self.refuse(lambda document, _: document.pop("weight_map"), ["weight_map is missing"])
        self.refuse(lambda document, _: document.update(weight_map={}), ["weight_map is empty"])
        self.refuse(lambda document, _: document["weight_map"].update(a=5),
                    ["weight_map.a: expected a string, found 5"])


class Pickles(support.CommandTest):
    def archive(self, data, compression=zipfile.ZIP_STORED, storage=b""):
        path = self.here / "bad.bin"
        with zipfile.ZipFile(path, "w", compression) as archive:
            archive.writestr("archive/data.pkl", data)
            archive.writestr("archive/version", b"3\n")
            archive.writestr("archive/data/0", storage)
        return path

    def test_code(self):
        class Command:
            def __reduce__(self):
                return os.system, (f"touch {os.getcwd()}/was_run",)
        os.chdir(self.here)
        self.addCleanup(os.chdir, CASES)
        for protocol in (2, 4):
            self.refused("inspect", self.archive(pickle.dumps({"weight": Command()}, protocol)),
                         says=["bad.bin", "system"])
        self.assertFalse((self.here / "was_run").exists())

    def test_bomb(self):
        """100 MB of zeros in 100 kB of zip; and billions of lists in a kilobyte of pickle."""
        path = self.archive(bytes(10**8), zipfile.ZIP_DEFLATED)
        self.refused("inspect", path, says=["bad.bin", "compressed"])
        nested = pickle.MARK + pickle.EMPTY_LIST
        for level in range(200):
            nested += pickle.BINPUT + bytes([level]) + pickle.MARK
            nested += (pickle.BINGET + bytes([level])) * 10 + pickle.LIST
        done = self.theseus("inspect", self.archive(b"\x80\x02" + nested + pickle.STOP), exit=2)
        self.assertIn("bad.bin", done.stderr)

    def test_damaged(self):
        whole = (CASES / "bert_old_bin" / "pytorch_model.bin").read_bytes()
        for name, content in (("short", whole[:-30]), ("shorter", whole[:100])):
            path = self.here / f"{name}.bin"
            path.write_bytes(content)
            self.refused("inspect", path, says=[path, "damaged zip"])

    def test_pickle_without_an_archive(self):
        path = self.here / "old.bin"
        path.write_bytes(pickle.dumps({"a": 1}, 2))
        self.refused("inspect", path, says=[path])


class NotCheckpoints(support.CommandTest):
    def refuse(self, name, content, says):
        path = self.here / name
        path.write_bytes(content)
        self.refused("inspect", path, says=[path, *says])

    def test_other_files(self):
        self.refuse("notes.txt", b"Dear diary,\n", ["is not a checkpoint: it begins with 'Dear diary"])
        self.refuse("cat.png", b"\x89PNG\r\n\x1a\n" + bytes(64), ["is not a checkpoint", "PNG"])
        self.refuse("cat.safetensors", b"\x89PNG\r\n\x1a\n" + bytes(64), ["is it safetensors?"])
        self.refuse("model.bin", b"Dear diary,\n" * 9, [])
        self.refuse("empty.safetensors", b"", ["the file is empty"])

    def test_pointer(self):
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
        for name in ("model.safetensors", "model.bin"):
            self.refuse(name, pointer, ["is a Git LFS pointer", "git lfs pull"])

    def test_one_format_under_the_name_of_another(self):
        shutil.copy(CASES / "bert_old_bin" / "pytorch_model.bin", self.here / "model.safetensors")
        self.refused("inspect", "model.safetensors", says=[
            "is named like safetensors but begins like torch_zip", "rename it"])

    def test_directories(self):
        (self.here / "empty").mkdir()
        self.refused("inspect", "empty", says="empty is an empty directory")
        bare = self.here / "bare"
        bare.mkdir()
        (bare / "notes.txt").write_text("")
        self.refused("inspect", bare, says=["holds no config that tells the model's family",
                                            "llama: config.json with model_type llama mistral"])
        shutil.copy(CASES / "vit_bare" / "config.json", bare)
        self.refused("inspect", bare, says=["holds no weights", "model.safetensors", "notes.txt"])
        for name in ("one.safetensors", "two.safetensors"):
            shutil.copy(CASES / "vit_bare" / "model.safetensors", bare / name)
        self.refused("inspect", bare, says=["holds several weights files",
                                            "one.safetensors, two.safetensors"])

    def test_paths(self):
        self.refused("inspect", "nowhere", says=["nowhere", "No such file or directory"])
        self.refused("inspect", "", says="No such file or directory")
        self.refused("inspect", "/dev/null", says="/dev/null is not a regular file")
        os.mkfifo(self.here / "pipe")
        self.refused("inspect", "pipe", says="pipe is not a regular file")
        (self.here / "loop").symlink_to("loop")
        self.refused("inspect", "loop", says="loop")
        self.refused("inspect", "x" * 5000, says="File name too long")

    def test_no_right_to_read(self):
        as_nobody = self.as_nobody()
        model = self.model("vit_bare")
        (model / "model.safetensors").chmod(0)
        self.refused("inspect", model, says=["model.safetensors", "Permission denied"], **as_nobody)
        (model / "config.json").chmod(0)
        self.refused("inspect", model, says=["config.json", "Permission denied"], **as_nobody)
        model.chmod(0)
        self.addCleanup(model.chmod, 0o755)
        self.refused("inspect", model, says=[model, "Permission denied"], **as_nobody)


if __name__ == "__main__":
    support.main()
