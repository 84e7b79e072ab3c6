"""theseus transport: what it writes, and that all of it can be read again."""
import json
import math
import shutil
import zipfile

import support
from pair import KEY, PairTest, files_of, ids, images
from support import CASES, change_weights, read_safetensors, tensor


class Output(PairTest):
    def test_model(self):
        done = self.theseus(*self.words())
        for text in ("24 carried, 48 kept", "update       norm", "rounding", "orthogonal to",
                     "note: visual.*.mlp_up: the statistics determine 48 of 192",
                     f"written to {self.here / 'out'}"):
            self.assertIn(text, done.stdout)
        out = self.here / "out"
        self.assertEqual(set(files_of(out)), {"README.md", "config.json", "model.safetensors",
                                              "recipe.yaml", "theseus.json"})
        record = self.record(out)
        self.assertEqual(record["totals"], {"carried": 24, "kept": 48})
        self.assertEqual(record["threads"], 1)
        self.assertEqual(len(record["parameters"]), 72)
        self.assertTrue(record["notes"])
        for row in record["parameters"]:
            self.assertTrue(row["reason"])
            if row["action"] == "carried":
                self.assertIn("rounding_loss", row)
                self.assertAlmostEqual(row["norm_error"], 0, delta=1e-4 * row["source_norm"])
        self.assertIn("base_model: \"wide\"", (out / "README.md").read_text())
        self.theseus("inspect", out)
        inputs = self.models / "images.safetensors"
        before = self.forward(self.models / "wide", inputs)["logits"]
        after = self.forward(out, inputs)["logits"]
        self.assertGreater(support.largest_difference(before, after), 1e-3)

    def test_json_is_one_document(self):
        """What is in theseus.json, and how long it took, which would differ from run to run there."""
        for more in ([], ["--quiet", "--fresh"]):
            done = self.theseus(*self.words(), "--json", *more)
            printed = json.loads(done.stdout)
            self.assertGreater(sum(printed.pop("seconds").values()), 0)
            self.assertEqual(printed, self.record(self.here / "out"))
        self.assertEqual(done.stderr, "")

    def test_update_and_alpha(self):
        once = read_safetensors(self.carry("--write", "update", out="u") / "update.safetensors")
        self.assertEqual(len(once), 16)  # q, k, v are one tensor
        twice = self.carry("--write", "model", "--alpha", "2", out="m") / "model.safetensors"
        wide = read_safetensors(self.models / "wide" / "model.safetensors")
        moved = read_safetensors(twice)
        expected = [a + 2 * b for a, b in zip(wide[KEY].values(), once[KEY].values())]
        worst = max(abs(a - b) for a, b in zip(expected, moved[KEY].values()))
        self.assertLess(worst, 1e-6)
        self.assertEqual(moved["head.weight"], wide["head.weight"])

    def test_stream(self):
        """What is added to the residual stream goes by its map, and nothing else changes."""
        many = self.write("many.safetensors", {"pixel_values": images(64)})
        pair = self.carry("--method", "stream", out="pair", command="align", examples=many)
        maps = {name: tensor for file in pair.glob("maps-*.safetensors")
                for name, tensor in read_safetensors(file).items()}
        for block in range(4):
            stream = maps[f"visual.{block}.mlp_in_raw"].values()
            self.assertEqual(maps[f"visual.{block}.attn_out"].values(), stream)
            self.assertEqual(maps[f"visual.{block}.mlp_out"].values(), stream)
        carried = self.carry("--write", "update", out="carried", source=None, examples=None,
                             alignment=pair) / "update.safetensors"
        direct = self.carry("--write", "update", "--method", "stream", out="direct",
                            examples=many) / "update.safetensors"
        self.assertEqual(carried.read_bytes(), direct.read_bytes())
        self.assertEqual(self.record(carried.parent)["method"], "stream")
        stream = read_safetensors(direct)
        plain = read_safetensors(self.carry("--write", "update", out="plain", examples=many)
                                 / "update.safetensors")
        changed = {name for name in plain if plain[name].values() != stream[name].values()}
        self.assertEqual(changed, {name for name in plain if ".proj." in name or ".fc2." in name})
        self.refused(*self.words(out="no", method="pad:stream", examples=None),
                     says="stream has no effect with method pad")
        self.refused(*self.words(out="no", source=None, examples=None, alignment=pair),
                     "--method", "stream", says="--method belongs to the making of the maps")

    def test_adapter_of_a_rank(self):
        """Of a whole tuned model: with all of the rank it does what the model does, with less it says how much."""
        inputs = self.models / "images.safetensors"
        model = self.forward(self.carry(out="model"), inputs)["logits"]
        kept = []
        for rank in (1, 4, 96):
            out = self.carry("--lora", rank, out=f"r{rank}")
            self.assertEqual(json.loads((out / "adapter_config.json").read_text())["r"], rank)
            record = self.record(out)
            kept.append(record["adapter"]["kept"])
            self.assertIn(f"an adapter of rank {rank} holds", " ".join(record["notes"]))
        self.assertLess(kept[0], kept[1])
        self.assertLess(kept[1], 1)
        self.assertAlmostEqual(kept[2], 1, places=5)
        ours = self.forward(self.models / "wide", inputs, "--adapter", self.here / "r96")["logits"]
        self.assertLess(support.largest_difference(ours, model), 1e-4 * max(map(abs, model.values())))
        self.refused(*self.words(lora=4, write="model", out="no"), says=["--lora is the rank of an adapter"])

    def test_adapter_of_another_rank(self):
        """Of an adapter: padded, or the nearest of less."""
        base, adapter = CASES / "adapted_llama", CASES / "adapted_llama_adapter"
        words = ["transport", "--source", base, "--tuned", adapter, "--target", base, "--method", "copy",
                 "--head", "carry", "--quiet", "--threads", "1"]
        self.theseus(*words, "--lora", "12", "--out", self.here / "more")
        self.theseus("forward", base, "--golden", adapter / "golden.safetensors", "--adapter",
                     self.here / "more")
        self.theseus(*words, "--lora", "1", "--out", self.here / "less")
        shapes = {one.shape[0] for name, one in read_safetensors(
            self.here / "less" / "adapter_model.safetensors").items() if "lora_A" in name}
        self.assertEqual(shapes, {1})
        self.assertTrue(0.1 < self.record(self.here / "less")["adapter"]["kept"] < 1)

    def test_dtype(self):
        """The maps of what bfloat16 computes are near those of float32, and the record says so."""
        many = self.write("many.safetensors", {"pixel_values": images(64)})
        plain, rounded = (self.carry("--write", "update", "--dtype", dtype, out=dtype, examples=many)
                          for dtype in ("float32", "bfloat16"))
        self.assertEqual(self.record(rounded)["dtype"], "bfloat16")
        self.assertEqual(self.record(plain)["dtype"], "float32")
        ours, theirs = (read_safetensors(out / "update.safetensors") for out in (plain, rounded))
        for name in (KEY, "blocks.3.mlp.fc2.weight"):
            off = math.dist(ours[name].values(), theirs[name].values()) / math.hypot(*ours[name].values())
            self.assertGreater(off, 1e-4, name)
            self.assertLess(off, 0.2, name)  # 0.10: narrow models, whose weak directions turn
        pair = self.carry("--dtype", "bfloat16", out="pair", command="align", examples=many)
        carried = self.carry("--write", "update", out="carried", source=None, examples=None,
                             alignment=pair)
        self.assertEqual(self.record(carried)["dtype"], "bfloat16")  # of the maps
        self.assertIn("half precision", " ".join(self.record(rounded)["notes"]))
        self.assertEqual((carried / "update.safetensors").read_bytes(),
                         (rounded / "update.safetensors").read_bytes())
        self.refused(*self.words(out="no", method="pad", examples=None), "--dtype", "bfloat16",
                     says="--dtype has no effect with method pad")
        self.refused(*self.words(out="no"), "--dtype", "tf32", says="--dtype tf32 is for GPUs")
        self.refused(*self.words(out="no"), "--dtype", "int8", says="known: float32 bfloat16 float16 tf32")

    def test_batches_do_not_matter(self):
        """Layer norms without a shift miss a direction, which must not be made up from rounding."""
        models = {}
        for name in ("base", "tuned", "wide"):
            models[name] = self.here / name
            shutil.copytree(self.models / name, models[name])
            change_weights(models[name], lambda tensors: tensors.update({
                one: tensor("F32", tensors[one].shape, 0.0) for one in tensors
                if "norm" in one and one.endswith("bias")}))
        # With few rows for its directions a map would amplify the rounding of the forward passes.
        many = self.write("many.safetensors", {"pixel_values": images(64)})
        given = dict(source=models["base"], tuned=models["tuned"], target=models["wide"], examples=many)
        updates = [read_safetensors(self.carry("--write", "update", "--norms", "rotate",
                                               out=f"b{size}", batch_size=size, **given)
                                    / "update.safetensors") for size in (16, 1)]
        for name, one in updates[0].items():
            ours, theirs = one.values(), updates[1][name].values()
            apart = math.dist(ours, theirs) / (math.hypot(*ours) or 1)
            self.assertLess(apart, 1e-4, name)
        spaces = self.record(self.here / "b1")["spaces"]
        self.assertEqual({row["rank"] for row in spaces if row["space"].endswith(".attn_in")}, {47})

    def test_float64(self):
        """Differences that float32 does not resolve."""
        models = {}
        for name in ("base", "tuned"):
            models[name] = self.here / name
            shutil.copytree(self.models / "base", models[name])
            change_weights(models[name], lambda tensors: tensors.update({KEY: tensor(
                "F64", tensors[KEY].shape,
                [value + 1e-9 * (models.keys() == {"base", "tuned"}) for value in
                 tensors[KEY].values()])}))
        out = self.carry("--write", "update", source=models["base"], tuned=models["tuned"])
        row, = [row for row in self.record(out)["parameters"] if row["action"] == "carried"]
        self.assertAlmostEqual(row["source_norm"] / (48e-9), 1, delta=1e-4)

    def test_paths(self):
        """Spaces, other alphabets, a slash at the end, relative ones, a file for a directory."""
        place = self.here / "two words" / "ναῦς"
        place.mkdir(parents=True)
        for name in ("base", "tuned", "wide"):
            shutil.copytree(self.models / name, place / name)
        shutil.copy(self.models / "images.safetensors", place)
        self.theseus("transport", "--source", "base/", "--tuned", "./tuned", "--target",
                     "wide/model.safetensors", "--examples", "images.safetensors", "--out",
                     "new/", "--threads", "1", "--quiet", cwd=place)
        self.theseus("inspect", place / "new")
        self.theseus("inspect", place / "base")
        self.theseus("run", "new/recipe.yaml", "--out", "../again", "--quiet", cwd=place)
        self.assert_same_files(place / "new", place.parent / "again")

    def test_side_files(self):
        wide = self.here / "wide"
        shutil.copytree(self.models / "wide", wide)
        (wide / "LICENSE").write_text("free\n")
        (wide / "gone.json").symlink_to("nowhere")
        out = self.carry(target=wide)
        self.assertEqual((out / "LICENSE").read_text(), "free\n")
        self.assertIn("not copied: gone.json: the link leads nowhere", self.record(out)["notes"])


class Tuned(PairTest):
    def carried(self, tuned, **options):
        out = self.carry("--write", "update", tuned=tuned, **options)
        return read_safetensors(out / "update.safetensors"), self.record(out)

    def test_state_dicts(self):
        """Keys that it lacks are unchanged; wrappers' prefixes are known; what is unknown is told."""
        tuned = self.tuned()
        part = self.write("part.safetensors", {KEY: tuned[KEY]})
        expected, record = self.carried(part, out="a")
        self.assertEqual(list(expected), [KEY])
        self.assertIn("the tuned model lacks 55 of the source's tensors: unchanged",
                      record["notes"])
        other = self.write("other.safetensors", {
            "module." + KEY: tuned[KEY], "extra": tuned[KEY],
            "pos_embed": tuned["pos_embed"].changed(0, 3.0)})
        got, record = self.carried(other, out="b")
        self.assertEqual(got[KEY], expected[KEY])
        self.assertEqual(set(got["pos_embed"].values()), {0.0})
        notes = " ".join(record["notes"])
        self.assertIn("the source has no such tensors (1): extra", notes)
        self.assertIn("left behind: pos_embed: an embedding", notes)
        self.assertEqual([row["parameter"] for row in record["update"]["left_behind"]],
                         ["pos_embed"])

    def test_torch_file(self):
        """A .pt with one tensor of the right name and shape."""
        tuned = self.tuned()[KEY]
        state = write_torch(self.here / "state.pt", KEY, tuned)
        expected, _ = self.carried(self.write("part.safetensors", {KEY: tuned}), out="a")
        got, record = self.carried(state, out="b")
        self.assertEqual(got[KEY], expected[KEY])
        self.assertEqual(record["tuned"]["kind"], "dense")

    def test_head_with_heads(self):
        head = self.write("head.safetensors",
                          {"head.weight": self.tuned()["head.weight"].changed(0, 3.0)})
        self.refused(*self.words(tuned=head), says=["nothing of this update can be carried",
                                                    "theseus plan"])
        out = self.carry("--write", "update", "--head", "carry", tuned=head, out="h")
        self.assertEqual(list(read_safetensors(out / "update.safetensors")), ["head.weight"])


class Text(PairTest):
    def setUp(self):
        super().setUp()
        self.text = self.write("text.safetensors", {"input_ids": ids(24, 16)})

    def words(self, command="transport", out="out", **changed):
        return super().words(command, out, **{
            "source": CASES / "adapted_llama", "tuned": CASES / "adapted_llama_adapter",
            "target": CASES / "llama3_rope", "examples": self.text, **changed})

    def test_adapter(self):
        out = self.carry()
        self.assertEqual(set(files_of(out)), {"README.md", "adapter_config.json", "theseus.json",
                                              "adapter_model.safetensors", "recipe.yaml"})
        config = json.loads((out / "adapter_config.json").read_text())
        self.assertEqual(config["peft_type"], "LORA")
        self.assertEqual(config["base_model_name_or_path"], str(CASES / "llama3_rope"))
        notes = self.record(out)["notes"]
        self.assertTrue([note for note in notes if note.startswith("left behind: lm_head.weight")])
        self.forward(CASES / "llama3_rope", {"input_ids": ids(1, 5)}, "--adapter", out)

    def test_tied_model_stays_tied(self):
        out = self.carry("--write", "model")
        self.assertNotIn("lm_head.weight", read_safetensors(out / "model.safetensors"))
        self.assertTrue(json.loads((out / "config.json").read_text())["tie_word_embeddings"])
        both = self.forward(out, {"input_ids": ids(1, 5)})["logits"]
        adapted = self.forward(CASES / "llama3_rope", {"input_ids": ids(1, 5)}, "--adapter",
                               self.carry(out="adapter"))["logits"]
        self.assertLess(support.largest_difference(both, adapted), 1e-4)

    def test_shards_and_dtype_stay(self):
        target = CASES / "llama_bfloat16"
        out = self.carry("--write", "model", target=target)
        for index in (out, target):
            self.assertEqual(len(list(index.glob("model-0000*-of-00003.safetensors"))), 3)
        one = "model-00001-of-00003.safetensors"
        self.assertEqual({name: (t.dtype, t.shape) for name, t in
                          read_safetensors(out / one).items()},
                         {name: (t.dtype, t.shape) for name, t in
                          read_safetensors(target / one).items()})
        self.assertTrue((out / "generation_config.json").exists())
        record = self.record(out)
        self.assertGreater(record["output_dtype"]["lost"], 1e-8)  # told, as bfloat16 loses some of it
        self.theseus("inspect", out)

    def test_own_inputs(self):
        """Other lengths do not pair by token, and do by their mean."""
        own = self.write("own.safetensors", {"source/input_ids": ids(24, 16),
                                             "target/input_ids": ids(24, 10)})
        self.refused(*self.words(examples=own), says=["pair one to one", "--tokens mean"])
        out = self.carry("--tokens", "mean", examples=own)
        self.assertEqual(self.record(out)["tokens"], {"decoder": "mean"})


def write_torch(path, name, one):
    """A state dict as torch.save writes it, of one float16 tensor."""
    rows, columns = one.shape

    def text(word):
        return b"X" + len(word).to_bytes(4, "little") + word.encode()

    def number(value):
        return b"J" + value.to_bytes(4, "little")
    storage = (b"(" + text("storage") + b"ctorch\nHalfStorage\n" + text("0") + text("cpu") +
               number(rows * columns) + b"tQ")
    pickled = (b"\x80\x02}" + text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage +
               number(0) + b"(" + number(rows) + number(columns) + b"t(" + number(columns) +
               number(1) + b"t\x89ccollections\nOrderedDict\n)RtR" + b"s.")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("state/data.pkl", pickled)
        archive.writestr("state/data/0", one.data)
        archive.writestr("state/version", "3\n")
    return path


if __name__ == "__main__":
    support.main()
