"""theseus align: maps made once, for any number of updates."""
import json
import shutil

import support
from pair import KEY, PairTest, files_of
from support import change_weights


class Align(PairTest):
    def aligned(self, *more, **changed):
        return self.carry(*more, command="align", out="maps", **changed)

    def from_maps(self, **changed):
        return self.words(**{"examples": None, "source": None, "alignment": self.here / "maps",
                             **changed})

    def test_same_updates(self):
        """What alignment and transport give together is what transport gives alone."""
        maps = self.aligned("--method", "procrustes:center")
        about = json.loads((maps / "alignment.json").read_text())
        self.assertEqual(about["source"]["path"], str(self.models / "base"))
        part = self.write("part.safetensors", {KEY: self.tuned()[KEY]})
        for number, (tuned, write) in enumerate([(self.models / "tuned", "update"),
                                                 (part, "update"), (part, "model")]):
            with self.subTest(number=number):
                given = dict(tuned=tuned, write=write)
                self.theseus(*self.from_maps(out=f"a{number}", **given), "--quiet")
                direct = self.carry("--method", "procrustes:center", out=f"d{number}", **given)
                name = f"{write}.safetensors"
                self.assertTrue((direct / name).read_bytes() ==
                                (self.here / f"a{number}" / name).read_bytes())
        record = self.record(self.here / "a0")
        self.assertEqual(record["alignment"], str(maps))
        self.assertEqual(record["examples"]["sequences"], 16)
        text = self.theseus(*self.words("plan", examples=None, source=None, alignment=maps))
        self.assertIn("parameters   24 carried, 48 kept", text.stdout)
        self.assertRegex(text.stdout, r"(?m)^time         about .* on (cpu|cuda)")

    def test_several_updates(self):
        """Each as it would be carried alone; those that are there are not carried again."""
        maps = self.aligned()
        parts = [self.write(f"part.{i}.safetensors", {name: self.tuned()[name]})
                 for i, name in enumerate([KEY, "blocks.2.mlp.fc1.weight"])]
        library = self.here / "library"
        words = [*self.from_maps(out="library", write="update"),
                 *(str(word) for part in parts for word in ("--tuned", part))]
        done = self.theseus(*words)
        self.assertEqual(done.stdout.count(" as carried, 0 % of its square left behind\n"), 3)
        self.theseus("report", library, "-o", self.here / "library.html")
        page = (self.here / "library.html").read_text()
        for name in ("tuned", "part.0", "part.1"):
            self.assertIn(f"library/{name}", page)
        for tuned, name in ((self.models / "tuned", "tuned"), (parts[0], "part.0"), (parts[1], "part.1")):
            self.theseus(*self.from_maps(out="alone", tuned=tuned, write="update"), "--quiet")
            self.assert_same_files(self.here / "alone", library / name)
            shutil.rmtree(self.here / "alone")
        self.assertEqual({path.name for path in library.iterdir()}, {"tuned", "part.0", "part.1"})
        shutil.rmtree(library / "part.1")
        before = (library / "part.0" / "update.safetensors").stat().st_mtime_ns
        again = json.loads(self.theseus(*words, "--json").stdout)["updates"]
        self.assertEqual([record.get("there_before", False) for record in again], [True, True, False])
        self.assertEqual((library / "part.0" / "update.safetensors").stat().st_mtime_ns, before)
        (library / "part.1" / "update.safetensors").write_bytes(b"")
        self.refused(*words, says=["part.1 exists and is not as this command wrote it",
                                   "--fresh replaces only what theseus wrote"])
        shutil.rmtree(library / "part.1")
        self.refused(*words, "--tuned", self.models / "base", says="change")
        self.assertFalse((library / "part.1").exists())
        self.write("part.0.safetensors", {KEY: self.tuned()[KEY].changed(0, 1.0)})
        self.refused(*words, says=["part.0 exists and is of other inputs: the tuned model has changed since",
                                   "--fresh replaces an earlier output"])
        self.refused(*words, "--norms", "skip", says="exists and is another command's: norms was")
        self.assertEqual(len(json.loads(self.theseus(*words, "--json", "--fresh").stdout)["updates"]), 3)
        self.refused(*words, "--tuned", self.here / "elsewhere" / "tuned", says=[
            "elsewhere/tuned", "would both be written to"])
        self.refused(*self.words(), "--tuned", str(parts[0]), says=[
            "several --tuned go through one --alignment", "theseus align"])
        self.refused(*self.words("plan"), "--tuned", str(parts[0]), says="--tuned")

    def test_output(self):
        done = self.theseus(*self.words("align", "maps"))
        self.assertIn("maps         50, orthogonal to", done.stdout)
        names = set(files_of(self.here / "maps"))
        self.assertLess({"alignment.json", "recipe.yaml", "maps-1.safetensors",
                         "moments-1.safetensors"}, names)
        before = files_of(self.here / "maps")
        again = self.theseus(*self.words("align", "maps"), "--json", "--fresh")
        self.assertEqual(json.loads(again.stdout)["method"], "procrustes")
        self.assertTrue(before == files_of(self.here / "maps"))

    def test_other_bases(self):
        """Bases are known by what is in them, not by where they are."""
        self.aligned()
        moved = self.here / "moved"
        shutil.copytree(self.models / "wide", moved)
        self.theseus(*self.from_maps(target=moved), "--quiet")
        change_weights(moved, lambda tensors: tensors.update(
            {"norm.bias": tensors["norm.bias"].changed(0, 2.0)}))
        self.refused(*self.from_maps(target=moved, out="other"), says=[
            "was made for another target", self.models / "wide", "xxh3:"])
        self.refused(*self.from_maps(source=self.models / "tuned", tuned=self.models / "base",
                                     out="other"), says="was made for another source")
        about = self.here / "maps" / "alignment.json"
        about.write_text(about.read_text().replace(str(self.models / "base"), "/gone"))
        self.refused(*self.from_maps(out="other"), says=["/gone", "give --source if it has moved"])

    def test_refused(self):
        self.refused(*self.from_maps(), says=["there is no such directory", "theseus align"])
        (self.here / "maps").mkdir()
        self.refused(*self.from_maps(), says=["there is no alignment.json", "theseus align"])
        (self.here / "maps").rmdir()
        self.refused(*self.from_maps(examples=self.models / "images.safetensors"), says=[
            "--examples belongs to the making of the maps", "--alignment"])
        self.refused(*self.words("align", source=None), says="--source is required")
        maps = self.here / "maps"
        maps.mkdir()
        (maps / "alignment.json").write_text('{"format": 99}')
        self.refused(*self.from_maps(), says=["format 99", "reads formats 1 and 2"])
        (maps / "alignment.json").write_text('{"format": 1, "depth": []}')
        self.refused(*self.from_maps(), says="alignment.json is damaged")

    def test_damaged(self):
        maps = self.aligned()
        other = self.here / "kept"
        (maps / "maps-2.safetensors").rename(other)
        self.refused(*self.from_maps(), says=["maps-2.safetensors", "No such file"])
        shutil.copy(maps / "maps-5.safetensors", maps / "maps-2.safetensors")
        self.refused(*self.from_maps(), says=["maps-2.safetensors is damaged", "expected visual.1.",
                                              "make the alignment anew"])
        data = bytearray(other.read_bytes())
        data[-1] ^= 1  # one bit of one map
        (maps / "maps-2.safetensors").write_bytes(data)
        self.refused(*self.from_maps(), says=["maps-2.safetensors is not the file", "make it anew"])
        about = json.loads((maps / "alignment.json").read_text())
        del about["towers"]
        (maps / "alignment.json").write_text(json.dumps(about))
        self.refused(*self.from_maps(), says=["alignment.json is damaged", "towers"])


if __name__ == "__main__":
    support.main()
