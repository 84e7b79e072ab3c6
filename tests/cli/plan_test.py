"""theseus plan: what a transport would do, with nothing written; and the help texts."""
import json
import shutil

import support
from pair import PairTest, ids
from support import CASES, change_json, read_safetensors, write_safetensors


class Plan(PairTest):
    def plan(self, *more, **changed):
        done = self.theseus(*self.words("plan", **changed), *more)
        self.assertEqual(list(self.here.glob("*.partial")), [])
        return done.stdout

    def test_text(self):
        text = self.plan()
        for line in ("blocks.*.attn.qkv.weight#q  carried  visual.*.q x visual.*.attn_in (4 times)",
                     "blocks.*.norm1.weight       kept     the update leaves it alone (4 times)",
                     "head.weight                 kept     a head onto <class> (--head carry carries it)",
                     "parameters   24 carried, 48 kept", "method       procrustes",
                     "rows         visual: grid", "depth        block by block",
                     "hidden states in memory", "at the peak", "for the output as model"):
            self.assertIn(line, text)
        self.assertIn("blocks.3.attn.proj.weight", self.plan("--every"))
        self.assertEqual(self.plan("--quiet"), "")
        self.assertIn("method       stream, models in bfloat16\n",
                      self.plan("--method", "stream", "--dtype", "bfloat16"))

    def test_json(self):
        plan = json.loads(self.plan("--json", "--norms", "skip", "--depth", "divided"))
        self.assertEqual(plan["totals"], {"carried": 24, "kept": 48})
        self.assertIn("norms are left alone (--norms skip)",
                      [row["reason"] for row in plan["parameters"]])
        self.assertGreater(plan["disk_bytes"], 1e6)
        self.assertIn("--depth makes no difference", plan["notes"][0])

    def test_few_rows(self):
        """Sixteen rows for 48 features are kept; a method that has no use for them says so."""
        words = ("--tokens", "mean", "--method", "procrustes:statistics=rows")
        self.assertIn("statistics   rows of 16 spaces are kept, moments of 0", self.plan(*words))
        self.assertNotIn("statistics   rows", self.plan("--tokens", "mean"))
        few = json.loads(self.plan("--json", *words))["schedule"]
        all_of_them = json.loads(self.plan("--json", "--tokens", "mean"))["schedule"]
        self.assertEqual(few["statistics"], {"rows": 16, "moments": 0, "factored_maps": 8})
        self.assertEqual(few["flops"]["statistics"], 0)
        self.assertEqual(all_of_them["statistics"]["moments"], 16)
        note = "rank=arbitrary: the rows of 16 spaces are kept"
        self.assertIn(note, self.plan("--tokens", "mean", method="procrustes:rank=arbitrary:statistics=rows"))
        self.assertNotIn(note, self.plan("--tokens", "mean", method="procrustes:rank=arbitrary"))
        self.assertNotIn(note, self.plan(*words))
        self.assertEqual(few["memory_of"], "cpu")
        self.refused(*self.words("plan", method="pad:statistics=rows"), says=[
            "statistics has no effect with method pad"])
        self.refused(*self.words("plan", method="procrustes:statistics=all"), says=["auto moments rows"])

    def test_maps_as_factors(self):
        """As many as there will be, however what the rows leave open is filled in."""
        counts = {}
        for name, method in {"complete": "procrustes", "arbitrary": "procrustes:rank=arbitrary",
                             "truncate": "procrustes:rank=truncate", "pinv": "pinv"}.items():
            words = ("--tokens", "mean", "--method", method + ":statistics=rows")
            record = self.record(self.carry(*words, out=name))
            counts[name] = sum("factors" in row for row in record["spaces"])
            planned = json.loads(self.plan("--json", *words))["schedule"]["statistics"]
            self.assertEqual(planned["factored_maps"], counts[name], name)
            self.assertEqual(any("rank=arbitrary: the rows" in note for note in record["notes"]),
                             name == "arbitrary")
        self.assertLess(counts["complete"], counts["truncate"])

    def test_without_tuned(self):
        plan = json.loads(self.plan("--json", tuned=None))
        self.assertEqual(plan["totals"], {"carried": 66, "kept": 6})

    def test_other_depth(self):
        """A target of three blocks: which source blocks each gets, in the plan and in the record."""
        short = self.here / "short"
        shutil.copytree(self.models / "wide", short)
        change_json(short / "config.json", {"model_args.depth": 3})
        weights = read_safetensors(short / "model.safetensors")
        write_safetensors(short / "model.safetensors", {
            name: one for name, one in weights.items() if not name.startswith("blocks.3.")})
        text = self.plan(target=short)
        self.assertIn("depth        divided; target block <- source blocks", text)
        self.assertIn("2 <- ", text)
        self.refused(*self.words("plan", depth="stretch", target=short), says=[
            "4 blocks in the source and 3 in the target", "--depth divided"])
        record = self.record(self.carry(target=short))
        self.assertEqual(record["depth"]["mode"], "divided")
        self.assertEqual(len(record["depth"]["similarity"]), 4)
        self.assertEqual(len(record["depth"]["similarity"][0]), 3)

    def test_what_the_examples_do_not_reach(self):
        """An encoder's tokens tell nothing about its decoder: refused, unless --partial."""
        model = CASES / "t5_own_head"
        weights = read_safetensors(model / "model.safetensors")
        changed = {name: one.changed(0, 1.0) for name, one in weights.items()
                   if name.endswith("block.0.layer.0.SelfAttention.q.weight")}
        self.assertEqual(len(changed), 2)
        given = dict(source=model, target=model, tuned=self.write("t.safetensors", changed),
                     examples=self.write("c.safetensors", {"input_ids": ids(8, 12)}))
        self.refused(*self.words("plan", **given), says=[
            "decoder.block.0.layer.0.SelfAttention.q.weight", "decoder_input_ids", "--partial"])
        text = self.plan("--partial", **given)
        self.assertIn("parameters   1 carried", text)
        self.assertIn("note: left behind: decoder.block.*.layer.0.SelfAttention.q.weight: "
                      "the examples do not reach decoder.*.q", text)


class Help(support.CommandTest):
    def test_help(self):
        general = self.theseus("--help").stdout
        for command in ("plan", "align", "transport", "run"):
            self.assertIn(command, general)
            self.assertIn("Usage: theseus " + command, self.theseus(command, "--help").stdout)
        text = self.theseus("transport", "--help").stdout
        for option in ("source", "tuned", "target", "examples", "out", "labelled", "method",
                       "tokens", "norms", "head", "depth", "alpha", "batches",
                       "batch-size", "seed", "write", "memory", "device", "threads", "json",
                       "quiet", "fresh", "alignment", "save-every"):
            self.assertIn(f"--{option} ", text)


if __name__ == "__main__":
    support.main()
