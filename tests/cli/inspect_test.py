"""theseus inspect, doctor, --version, --help: what they say about models, adapters and files."""
import json
import pathlib
import re
import shutil
import signal
import subprocess

import support
from support import BINARY, CASES, ROOT, tensor

OPENCLIP = ROOT / "tests" / "fixtures" / "openclip"
FAMILIES = {
    "bert": (CASES / "bert_bare", ["input_ids", "attention_mask", "token_type_ids"], ["encoder"]),
    "clip": (CASES / "clip_legacy_end", ["pixel_values", "input_ids", "attention_mask"],
             ["visual", "text"]),
    "llama": (CASES / "llama_bfloat16", ["input_ids", "attention_mask"], ["decoder"]),
    "openclip": (OPENCLIP, ["pixel_values", "text"], ["visual", "text"]),
    "t5": (CASES / "t5_own_head", ["input_ids", "attention_mask", "decoder_input_ids"],
           ["encoder", "decoder"]),
    "timm_vit": (CASES / "timm_headless", ["pixel_values"], ["visual"]),
    "vit": (CASES / "vit_bare", ["pixel_values"], ["visual"])}


class Models(support.CommandTest):
    def described(self, *arguments):
        return json.loads(self.theseus("inspect", "--json", *arguments).stdout)

    def test_every_family(self):
        doctor = self.theseus("doctor").stdout
        self.assertEqual(re.search("families +(.*)", doctor).group(1).split(), list(FAMILIES))
        for family, (model, inputs, towers) in FAMILIES.items():
            with self.subTest(family=family):
                found = self.described("--parameters", model)
                self.assertEqual(found["kind"], "model")
                self.assertEqual(found["family"], family)
                self.assertEqual(found["inputs"], inputs)
                self.assertEqual([tower["name"] for tower in found["towers"]], towers)
                self.check_parameters(found)

    def check_parameters(self, found):
        count = 0
        for one in found["parameters"]:
            self.assertEqual(len(one["spaces"]), len(one["shape"]), one)
            self.assertTrue(all(one["spaces"]), one)
            elements = 1
            for extent in one["shape"]:
                elements *= extent
            count += elements
        self.assertEqual(found["parameter_count"], count)
        widths = {}
        for one in found["parameters"]:
            for space, extent in zip(one["spaces"], one["shape"]):
                if not space.startswith("<"):  # an activation space has one width
                    self.assertEqual(widths.setdefault(space, extent), extent, space)

    def test_text(self):
        text = self.theseus("inspect", CASES / "t5_own_head").stdout
        for line in ("family       t5 (t5)", "encoder      blocks 2, width 24, heads 3",
                     "decoder      blocks 3", "weights      model.safetensors", "dtype        F32"):
            self.assertIn(line, text)
        self.assertNotIn("spaces", text)

    def test_text_of_parameters(self):
        text = self.theseus("inspect", "--parameters", OPENCLIP).stdout
        self.assertRegex(text, r"visual.transformer.resblocks.0.attn.in_proj_weight#q +F32 +\[8,8\] "
                               r"+visual.0.q x visual.0.attn_in\n")
        self.assertRegex(text, r"token_embedding.weight +F32 +\[10,8\] +<vocab> x text.stream\n")

    def test_json_is_brief_unless_asked(self):
        self.assertNotIn("parameters", self.described(CASES / "vit_bare"))

    def test_ties(self):
        tie = {"name": "lm_head.weight", "tied_to": "model.embed_tokens.weight"}
        self.assertEqual(self.described(CASES / "llama3_rope")["ties"], [tie])
        self.assertIn("tied         lm_head.weight = model.embed_tokens.weight",
                      self.theseus("inspect", CASES / "llama3_rope").stdout)

    def test_heads_that_are_not_run(self):
        found = self.described(CASES / "bert_old_bin")
        self.assertIn("cls.seq_relationship.weight", found["not_run"])
        self.assertIn("not run      cls.", self.theseus("inspect", CASES / "bert_old_bin").stdout)

    def test_shards(self):
        found = self.described(CASES / "llama_bfloat16")["weights"]
        self.assertEqual(found["files"], [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)])
        self.assertEqual(list(found["dtypes"]), ["BF16"])
        index = CASES / "llama_bfloat16" / "model.safetensors.index.json"
        self.assertEqual(self.described(index)["weights"], found)

    def test_shards_that_are_links(self):
        """As in Hugging Face's cache: snapshots/REVISION/NAME -> ../../blobs/HASH."""
        blobs, snapshot = self.here / "blobs", self.here / "snapshots" / "abc"
        blobs.mkdir()
        snapshot.mkdir(parents=True)
        for number, file in enumerate(sorted((CASES / "llama_bfloat16").iterdir())):
            shutil.copy(file, blobs / f"{number:064x}")
            (snapshot / file.name).symlink_to(pathlib.Path("../../blobs") / f"{number:064x}")
        self.theseus("forward", snapshot, "--golden", snapshot / "golden.safetensors")

    def test_weights_file_with_its_config_beside_it(self):
        found = self.described(CASES / "vit_bare" / "model.safetensors")
        self.assertEqual((found["kind"], found["family"]), ("model", "vit"))

    def test_config_elsewhere(self):
        shutil.copy(CASES / "vit_bare" / "model.safetensors", self.here / "weights.safetensors")
        found = self.described("weights.safetensors", "--config", CASES / "vit_bare" / "config.json")
        self.assertEqual(found["family"], "vit")

    def test_two_configs(self):
        model = self.model("clip_legacy_end")
        for file in OPENCLIP.iterdir():
            shutil.copy(file, model)
        self.refused("inspect", model, says=[
            "can be read as more than one model; choose with --family", "config.json: clip",
            "open_clip_config.json: openclip"])
        for family in ("clip", "openclip"):
            self.assertEqual(self.described(model, "--family", family)["family"], family)
        self.refused("inspect", model, "--family", "vit", says=[
            "no config in", "is one of a 'vit' model"])
        self.refused("inspect", model, "--family", "vjt", says=[
            "unknown model family 'vjt'", "bert clip llama openclip t5 timm_vit vit"])


class Others(support.CommandTest):
    def test_adapter(self):
        found = json.loads(self.theseus(
            "inspect", "--json", "--parameters", CASES / "adapted_llama_adapter").stdout)
        self.assertEqual((found["kind"], found["r"], found["lora_alpha"]), ("adapter", 3, 5.0))
        ranks = {one["name"]: one["rank"] for one in found["parameters"] if "rank" in one}
        self.assertEqual(ranks["model.layers.0.mlp.down_proj"], 5)
        self.assertEqual(ranks["model.layers.1.self_attn.q_proj"], 2)
        text = self.theseus("inspect", CASES / "adapted_llama_adapter").stdout
        self.assertIn("kind         PEFT LoRA adapter", text)
        self.assertIn("rank         r 3, lora_alpha 5.0, rank-stabilised", text)

    def test_bare_state_dicts(self):
        for case, name in (("vit_bare", "model.safetensors"), ("bert_old_bin", "pytorch_model.bin")):
            path = self.here / name
            shutil.copy(CASES / case / name, path)
            found = json.loads(self.theseus("inspect", "--json", "--parameters", path).stdout)
            self.assertEqual(found["kind"], "state dict")
            self.assertGreater(len(found["parameters"]), 30)
            self.assertEqual(found["weights"]["files"], [name])
            self.assertIn("tensors only, not the weights of a model directory", self.theseus("inspect", path).stdout)

    def test_note_of_a_nested_state_dict(self):
        self.assertRegex(self.theseus("inspect", CASES / "timm_headless").stdout,
                         "note +pytorch_model.bin: .*state_dict.*epoch")

    def test_odd_tensors_are_named_safely(self):
        path = self.here / "odd.safetensors"
        support.write_safetensors(path, {
            "a\x1b[31mred\nline": tensor("F32", [1], 0.0), "": tensor("F32", [0, 3], 0.0)})
        for arguments in ([], ["--json"], ["--parameters"]):
            text = self.theseus("inspect", path, *arguments).stdout
            self.assertNotIn("\x1b", text)

    def test_a_reader_that_stops(self):
        for restore in (True, False):  # with SIGPIPE as usual, and ignored as under some launchers
            with subprocess.Popen(
                    [BINARY, "inspect", "--parameters", CASES / "clip_legacy_end"],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    restore_signals=restore) as process:
                process.stdout.close()
                errors = process.stderr.read().decode()
                process.wait(timeout=60)
            self.assertNotIn("bug in theseus", errors)
            if restore:
                self.assertEqual((process.returncode, errors), (-signal.SIGPIPE, ""))
            else:
                self.assertEqual(process.returncode, 2, errors)

    def test_standard_output_without_room(self):
        if not pathlib.Path("/dev/full").is_char_device():
            self.skipTest("there is no /dev/full")
        for model in ("vit_bare", "clip_legacy_end"):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([BINARY, "inspect", "--parameters", CASES / model], stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("No space left on device", done.stderr)
            self.assertNotIn("bug in theseus", done.stderr)


class Program(support.CommandTest):
    def test_version(self):
        version = re.search(r"VERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        self.assertEqual(self.theseus("--version").stdout, f"theseus {version}\n")

    def test_help(self):
        text = self.theseus("--help").stdout
        for command in ("doctor", "forward", "inspect", "transport"):
            self.assertIn(command, text)
        self.assertIn("--ignore-eos", self.theseus("forward", "--help").stdout)

    def test_no_command(self):
        self.refused(says="SUBCOMMAND")

    def test_unknown_command(self):
        commands = "forward imitate inspect plan report run sweep transport"
        self.refused("transprot", says=["there is no command 'transprot'", commands])
        self.refused("--nonsense", says=["no option '--nonsense'", "theseus --help"])
        self.refused("inspect", "x", "--nonsense", says="--nonsense")

    def test_doctor(self):
        text = self.theseus("doctor").stdout
        for line in ("theseus +[0-9]", "system +Linux", "libtorch +[12]", "threads +[0-9]+, on [0-9]+ processors",
                     "a core +float32 [0-9]+", "memory +.* in all, .* available", "disk +.* free at",
                     "formats +safetensors", "loaded +.*(blas|mkl|libtorch)"):
            self.assertRegex(text, re.compile("^" + line, re.MULTILINE))

    def test_doctor_where_there_is_no_directory(self):
        gone = self.here / "gone"
        gone.mkdir()
        done = subprocess.run(["sh", "-c", 'rmdir "$1"; exec "$2" doctor', "sh", gone, BINARY],
                              cwd=gone, capture_output=True, text=True, timeout=60, check=False)
        self.assertNotIn("bug in theseus", done.stderr)
        self.assertIn(done.returncode, (0, 2))


if __name__ == "__main__":
    support.main()
