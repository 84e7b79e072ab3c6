"""theseus forward: what it writes, what it takes, and what it refuses to take."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time
import unittest

import support
from support import BINARY, CASES, ROOT, change_json, change_weights, tensor

OPENCLIP = ROOT / "tests" / "fixtures" / "openclip"


def ids(*rows, dtype="I64"):
    return tensor(dtype, [len(rows), len(rows[0])], [one for row in rows for one in row])


def pixels(count, size, value=0.5):
    return tensor("F32", [count, 3, size, size], value)


class Outputs(support.CommandTest):
    def test_names_by_family(self):
        expected = {
            "adapted_bert": {"last_hidden_state", "pooler_output", "logits"},
            "clip_legacy_end": {"image_embeds", "text_embeds", "logits_per_image", "logits_per_text"},
            "t5_own_head": {"logits", "encoder_last_hidden_state"},
            "vit_bare": {"last_hidden_state", "pooler_output"}}
        for case, names in expected.items():
            with self.subTest(case=case):
                golden = CASES / case / "golden.safetensors"
                inputs = golden if golden.exists() else {"input_ids": ids([4, 5, 6])}
                self.assertEqual(set(self.forward(CASES / case, inputs)), names)

    def test_openclip_runs_both_towers_or_one(self):
        both = {"pixel_values": pixels(2, 8), "text": ids([1, 2, 9, 0])}
        whole = self.forward(OPENCLIP, both)
        self.assertEqual({name: one.shape for name, one in whole.items()},
                         {"image_features": [2, 6], "text_features": [1, 6]})
        for name, output in (("pixel_values", "image_features"), ("text", "text_features")):
            alone = self.forward(OPENCLIP, {name: both[name]})
            self.assertEqual(alone, {output: whole[output]})

    def test_clip_runs_one_tower(self):
        given = support.inputs_of(self.golden("clip_legacy_end"))
        image = self.forward(CASES / "clip_legacy_end", {
            "pixel_values": given["input/pixel_values"]})
        self.assertEqual(set(image), {"image_embeds"})

    def test_the_prefix_of_inputs_may_be_left_out(self):
        given = support.inputs_of(self.golden("mistral"))
        prefixed = self.forward(CASES / "mistral", given)
        bare = self.forward(CASES / "mistral", {
            name.removeprefix("input/"): one for name, one in given.items()})
        self.assertEqual(bare, prefixed)
        self.assertEqual(bare["logits"].shape, [3, 10, 60])

    def test_taps(self):
        golden = support.read_safetensors(self.golden("vit_bare"))
        found = self.forward(CASES / "vit_bare", self.golden("vit_bare"), "--taps")
        modules = {name for name in golden if name.startswith(("in/", "out/"))}
        self.assertEqual({name for name in found if "/" in name}, modules)
        for name in modules:
            self.assertEqual(found[name].shape, golden[name].shape)
            self.assertLess(support.largest_difference(found[name], golden[name]), 1e-4)

    def test_generate(self):
        given = support.inputs_of(self.golden("mistral"))
        found = self.forward(CASES / "mistral", given, "--generate", 5, "--ignore-eos")
        self.assertEqual(found["greedy"].shape, [3, 15])
        prompt = given["input/input_ids"].values()
        rows = found["greedy"].values()
        self.assertEqual([rows[15 * i:15 * i + 10] for i in range(3)],
                         [prompt[10 * i:10 * i + 10] for i in range(3)])

    def test_generate_with_a_decoder(self):
        found = self.forward(CASES / "t5_own_head", {"input_ids": ids([4, 5, 6], [7, 8, 9])},
                             "--generate", 3, "--ignore-eos")
        self.assertEqual(found["greedy"].shape, [2, 4])
        self.assertEqual(found["greedy"].values()[::4], [0, 0])  # the start token
        self.assertNotIn("logits", found)  # nothing was given to the decoder

    def test_the_same_bytes_every_time(self):
        texts = []
        for _ in range(2):
            self.forward(CASES / "qwen2_padded", self.golden("qwen2_padded"), "--taps")
            texts.append((self.here / "out.safetensors").read_bytes())
        self.assertEqual(*texts)

    def test_existing_output_is_replaced_when_asked_for(self):
        (self.here / "out.safetensors").write_text("something older")
        self.refused("forward", CASES / "timm_headless", "--inputs", self.golden("timm_headless"),
                     "--out", "out.safetensors", says=["out.safetensors exists", "--force"])
        self.assertIn("features", self.forward(CASES / "timm_headless", self.golden("timm_headless")))
        self.assertEqual([path.name for path in self.here.iterdir()], ["out.safetensors"])

    def test_bfloat16_is_close(self):
        golden = support.read_safetensors(self.golden("qwen2_padded"))
        found = self.forward(CASES / "qwen2_padded", self.golden("qwen2_padded"),
                             "--dtype", "bfloat16")
        self.assertEqual(found["logits"].dtype, "BF16")
        # bfloat16 has 8 bits: 2^-8 relative in each of some ten roundings.
        size = max(map(abs, golden["expect/logits"].values()))
        error = support.largest_difference(found["logits"], golden["expect/logits"])
        self.assertLess(error, 0.05 * size)
        self.assertGreater(error, 1e-4 * size)

    def test_adapter(self):
        golden = support.read_safetensors(self.golden("adapted_bert_adapter"))
        found = self.forward(CASES / "adapted_bert", self.golden("adapted_bert_adapter"),
                             "--adapter", CASES / "adapted_bert_adapter")
        self.assertLess(
            support.largest_difference(found["logits"], golden["expect/logits"]), 1e-5)

    def test_images_whose_patches_leave_a_margin(self):
        """As in a convolution, the last pixels that fill no patch are not seen."""
        model = self.model("vit_bare")
        image = list(range(24 * 24 * 3))
        wider = []
        for row in range(24 * 3):
            wider += image[24 * row:24 * row + 24] + [9.0]
            if row % 24 == 23:
                wider += [9.0] * 25
        plain = self.forward(model, {"pixel_values": tensor("F32", [1, 3, 24, 24], image)})
        change_json(model / "config.json", {"image_size": 25})
        margin = self.forward(model, {"pixel_values": tensor("F32", [1, 3, 25, 25], wider)})
        self.assertEqual(margin, plain)

    def test_paths_with_spaces_and_letters(self):
        folder = self.here / "a b" / "größe 模型"
        shutil.copytree(CASES / "timm_headless", folder)
        out = folder / "aus gabe.safetensors"
        done = self.theseus("forward", folder, "--inputs", folder / "golden.safetensors",
                            "--out", out)
        self.assertIn(str(out), done.stdout)
        self.assertIn("features", support.read_safetensors(out))


class Inputs(support.CommandTest):
    def refuse(self, case, inputs, says, *arguments):
        model = case if isinstance(case, pathlib.Path) else CASES / case
        file = self.write("inputs.safetensors", inputs) if isinstance(inputs, dict) else inputs
        self.refused("forward", model, "--inputs", file, "--out", "out.safetensors", "--force",
                     *arguments, says=says)

    def test_unknown_name(self):
        self.refuse("mistral", {"input_idz": ids([4, 5])}, [
            "input input_idz is not one that a llama model takes", "input_ids attention_mask"])

    def test_neither_input_nor_expectation(self):
        self.refuse("mistral", {"input/input_ids": ids([4, 5]), "stray": ids([1])}, [
            "inputs.safetensors: tensor stray is neither an input/"])

    def test_nothing(self):
        self.refuse("mistral", {}, "inputs.safetensors holds no inputs")

    def test_missing_one(self):
        self.refuse("bert_bare", {"attention_mask": ids([1, 1])}, "input input_ids is missing")

    def test_a_mask_of_nothing(self):
        for inputs in ({"attention_mask": ids([1, 1])},
                       {"attention_mask": ids([1, 1]), "pixel_values": pixels(1, 24)}):
            self.refuse("clip_legacy_end", inputs, "attention_mask is given without the input_ids")

    def test_shapes_and_dtypes(self):
        for case, inputs, says in [
                ("bert_bare", {"input_ids": tensor("I64", [4], 1)},
                 "input input_ids must be integers [n, t], found Long [4]"),
                ("bert_bare", {"input_ids": tensor("F32", [1, 4], 1.0)},
                 "input input_ids must be integers [n, t], found Float [1, 4]"),
                ("vit_bare", {"pixel_values": pixels(1, 23)},
                 "must be floating point [n, 3, 24, 24], found Float [1, 3, 23, 23]"),
                ("vit_bare", {"pixel_values": tensor("U8", [1, 3, 24, 24], 7)},
                 "must be floating point [n, 3, 24, 24], found Byte [1, 3, 24, 24]"),
                ("bert_bare", {"input_ids": ids([1, 2]), "token_type_ids": ids([0])},
                 "input token_type_ids has shape [1, 1]; input_ids has [1, 2]"),
                ("t5_own_head", {"input_ids": ids([1, 2]), "decoder_input_ids": ids([0], [1])},
                 "decoder_input_ids has 2 rows; input_ids has 1")]:
            with self.subTest(says=says):
                self.refuse(case, inputs, says)

    def test_ids_out_of_range(self):
        for row in ([4, 60], [4, -1]):
            self.refuse("bert_bare", {"input_ids": ids(row)}, [
                "input input_ids holds ids from", str(min(row)), "the vocabulary has 60"])

    def test_more_tokens_than_positions(self):
        self.refuse("bert_bare", {"input_ids": ids([5] * 21)},
                    "input input_ids has 21 tokens; the model has 20 positions")

    def test_masks(self):
        given = {"input_ids": ids([4, 5, 6])}
        self.refuse("mistral", given | {"attention_mask": ids([1, 1])},
                    "input attention_mask has shape [1, 2]; the ids it masks have [1, 3]")
        self.refuse("mistral", given | {"attention_mask": ids([1, 2, 1])},
                    "input attention_mask holds values other than 0 and 1")
        self.refuse("mistral", given | {"attention_mask": tensor("F32", [1, 3], float("nan"))},
                    "input attention_mask holds values other than 0 and 1")

    def test_not_finite_pixels(self):
        for value in (float("nan"), float("inf")):
            self.refuse("vit_bare", {"pixel_values": pixels(1, 24).changed(5, value)},
                        "input pixel_values holds NaN or infinity")

    def test_kinds_of_integers(self):
        given = {"input_ids": ids([4, 5, 6])}
        expected = self.forward(CASES / "clip_legacy_end", given)
        for dtype in ("U8", "I32"):
            found = self.forward(CASES / "clip_legacy_end", {"input_ids": ids([4, 5, 6], dtype=dtype)})
            self.assertEqual(found, expected)
        model = self.model("clip_legacy_end")
        change_json(model / "config.json", {"text_config.eos_token_id": 49407})
        self.forward(model, {"input_ids": ids([4, 5, 6], dtype="U8")})

    def test_an_encoder_takes_nothing_for_a_decoder(self):
        model = self.model("t5_tied_gated_silu")
        change_json(model / "config.json", {"architectures": ["T5EncoderModel"]})
        change_weights(model, lambda tensors: [
            tensors.pop(name) for name in list(tensors) if name.startswith("decoder.")])
        self.assertEqual(set(self.forward(model, {"input_ids": ids([4, 5])})),
                         {"encoder_last_hidden_state"})
        self.refuse(model, {"input_ids": ids([4, 5]), "decoder_input_ids": ids([0])},
                    "input decoder_input_ids is not one that a t5 model takes")

    def test_results_that_are_not_finite(self):
        model = self.model("vit_bare")
        change_json(model / "config.json", {"layer_norm_eps": -1000.0})
        inputs = self.write("inputs.safetensors", {"pixel_values": pixels(1, 24)})
        self.refused("forward", model, "--inputs", inputs, "--out", "out.safetensors", exit=3,
                     says=["last_hidden_state holds NaN or infinity", "running"])


class Arguments(support.CommandTest):
    def refuse(self, says, *arguments, case="mistral"):
        self.refused("forward", CASES / case, "--inputs", self.golden(case), "--out",
                     "out.safetensors", *arguments, says=says)

    def test_generating(self):
        self.refuse("--ignore-eos requires --generate", "--ignore-eos")
        self.refuse(["--generate", "not in range 1 to"], "--generate", "0")
        self.refuse("bert model (bert) has no language head to generate with",
                    "--generate", "3", case="bert_bare")

    def test_device(self):
        self.refuse(["unknown device 'tpu'", "cpu cuda cuda:N"], "--device", "tpu")
        if not json.loads(self.theseus("doctor", "--json").stdout)["gpus"]:
            self.refuse(["device 'cuda' was asked for", "no CUDA device"], "--device", "cuda")

    def test_dtype(self):
        self.refuse("unknown dtype 'float8'; known: float32 bfloat16 float16", "--dtype", "float8")
        if "libtorch     1." in self.theseus("doctor").stdout:
            self.refuse("does not compute in float16 on the cpu", "--dtype", "float16")

    def test_required(self):
        self.refused("forward", CASES / "mistral", "--out", "x", says="--inputs is required")
        self.refused("forward", CASES / "mistral", "--inputs", "x", says="--out is required")
        self.refused("forward", "--inputs", "x", "--out", "x", says="path is required")

    def test_adapter_for_another_model(self):
        self.refuse(["the adapter changes bert.encoder.layer.0", "which this model does not have",
                     "attaching the adapter"], "--adapter", CASES / "adapted_bert_adapter")

    def test_adapter_as_model(self):
        self.refused("forward", CASES / "adapted_bert_adapter", "--inputs", "x", "--out", "y",
                     says="is a PEFT adapter, not a model; give its base model")


class OutputFile(support.CommandTest):
    def refuse(self, out, says, model=CASES / "timm_headless", inputs=None, **options):
        self.refused("forward", model, "--inputs", inputs or self.golden("timm_headless"), "--out",
                     out, says=says, **options)

    def test_places_that_cannot_be(self):
        (self.here / "folder").mkdir()
        os.mkfifo(self.here / "pipe")
        self.refuse("nowhere/out.safetensors", "--out: there is no directory nowhere")
        self.refuse("folder", ["--out: folder is a directory", "name a file in it"])
        self.refuse("", "--out: '' names no file")
        self.refuse("pipe", "--out: pipe is not a regular file")

    def test_files_that_are_needed(self):
        model = self.model("adapted_llama")
        adapter = self.model("adapted_llama_adapter", "adapter")
        inputs = self.write("inputs.safetensors", {"input_ids": ids([4, 5])})
        os.link(inputs, self.here / "other name")
        self.refuse(inputs, ["--out is", "which is needed"], model, inputs)
        self.refuse("other name", ["--out is", "which is needed"], model, inputs)
        for name in ("model.safetensors", "config.json"):
            self.refuse(model / name, ["--out is", name, "which is needed"], model, inputs)
        # An index or a pickle that is not there would be taken for the weights next time.
        for name in ("generation_config.json", "pytorch_model.bin", "model.safetensors.index.json"):
            self.refuse(model / name, ["--out:", name, "would change the model"], model, inputs)
        self.refused("forward", model, "--inputs", inputs, "--adapter", adapter, "--out",
                     adapter / "adapter_model.safetensors", says="would change the model")

    def test_link(self):
        (self.here / "link").symlink_to(self.here / "target.safetensors")
        self.theseus("forward", CASES / "timm_headless", "--inputs", self.golden("timm_headless"),
                     "--out", "link")
        self.assertTrue((self.here / "link").is_symlink())
        self.assertIn("features", support.read_safetensors(self.here / "target.safetensors"))

    def test_file_size_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        self.refuse("out.safetensors", ["cannot write out.safetensors", "File too large"],
                    preexec_fn=limit)

    def test_full_disk(self):
        folder = self.here / "small"
        folder.mkdir()
        script = ('mount -t tmpfs -o size=16k none small || exit 77; "$@"; code=$?; '
                  'echo left: $(ls -A small); exit $code')
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", script, "sh", BINARY, "forward", CASES / "vit_bare",
             "--inputs", self.golden("vit_bare"), "--out", "small/out.safetensors", "--taps"],
            cwd=self.here, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 77 or "unshare" in done.stderr:
            self.skipTest("no right to mount")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("cannot write small/out.safetensors", done.stderr)
        self.assertIn("No space left on device", done.stderr)
        self.assertEqual(done.stdout, "left:\n")

    def test_interrupt_while_writing(self):
        """64 MB take long enough to write that the temporary is seen."""
        inputs = self.write("inputs.safetensors", {"pixel_values": pixels(1500, 24)})
        folder = self.here / "out"
        folder.mkdir()
        for attempt in range(3):
            with subprocess.Popen(
                    [BINARY, "forward", CASES / "vit_bare", "--inputs", inputs, "--out",
                     folder / "out.safetensors", "--taps", "--force"], stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE) as process:
                while process.poll() is None and not os.listdir(folder):
                    time.sleep(0.001)
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=60)
            self.assertNotIn(b"bug", errors)
            left = os.listdir(folder)
            if process.returncode == 128 + signal.SIGINT:
                self.assertEqual(left, [])
                return
            self.assertEqual(left, ["out.safetensors"])  # it was faster than the signal
            (folder / "out.safetensors").unlink()
        self.skipTest("every run ended before the signal came")

    def test_no_right_to_write(self):
        as_nobody = self.as_nobody()
        (self.here / "closed").mkdir(mode=0o555)
        self.refuse("closed/out.safetensors", "--out: no right to write in closed", **as_nobody)


if __name__ == "__main__":
    support.main()
