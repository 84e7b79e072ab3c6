"""theseus run: a command with its options in a file."""
import shutil

import support
from digits import DigitsTest


class Recipe(DigitsTest):
    def write_recipe(self, text="", **changed):
        words = self.words(**changed)[1:]
        pairs = zip(words[::2], words[1::2])
        path = self.here / "recipe.yaml"
        path.write_text("command: transport\n" + "".join(
            f"{name[2:]}: {value}\n" for name, value in pairs) + text)
        return path

    def test_same_as_the_command(self):
        """The file, the command line, and the copy of the recipe in the output agree."""
        typed = self.carry("--alpha", "0.5", "--method=procrustes:center")
        recipe = self.write_recipe("alpha: 0.5  # half\npartial: no\nmethod: 'procrustes:center'\n"
                                   "json: false\nquiet: true\nwrite: model\n", out="filed")
        done = self.theseus("run", recipe)
        self.assertEqual(done.stdout + done.stderr, "")
        self.assertEqual((typed / "model.safetensors").read_bytes(),
                         (self.here / "filed" / "model.safetensors").read_bytes())
        copy = self.here / "filed" / "recipe.yaml"
        self.assertNotIn("json", copy.read_text())
        self.refused("run", copy, says="--out is required")
        done = self.theseus("run", copy, "--out", self.here / "again", "--json")
        self.assertEqual(done.stdout[0], "{")
        self.assert_same_files(self.here / "filed", self.here / "again")

    def test_command_line_takes_precedence(self):
        recipe = self.write_recipe("alpha: nan\npartial: true\n")
        self.theseus("run", recipe, "--alpha=2", "--partial=false", "--quiet")
        options = self.record(self.here / "out")["options"]
        self.assertEqual(options["alpha"], "2")
        self.assertNotIn("partial", options)

    def test_relative_paths(self):
        """From where the recipe lies; else from where the command runs."""
        folder = self.here / "folder"
        folder.mkdir()
        shutil.copytree(self.models / "wide", folder / "wide")
        path = self.write_recipe(target="wide")
        path.rename(folder / "recipe.yaml")
        self.theseus("run", folder / "recipe.yaml", "--quiet", cwd=self.here)
        (folder / "wide").rename(self.here / "wide")
        self.theseus("run", folder / "recipe.yaml", "--quiet", "--out", self.here / "again", cwd=self.here)
        self.refused("run", folder / "recipe.yaml", "--out", self.here / "x", cwd=folder, says="wide")

    def test_from_anywhere(self):
        """A recipe that an output keeps runs from any folder, also where data were named as NAME:PATH."""
        (self.here / "data").mkdir()
        shutil.copytree(self.models / "digits", self.here / "data" / "digits")
        words = self.words(out="one", examples="folders:data/digits/val")
        self.theseus(*words, "--batch-size", "4", "--batches", "2", "--quiet")
        recipe = self.here / "one" / "recipe.yaml"
        self.assertIn(f"examples: folders:{self.here / 'data' / 'digits' / 'val'}", recipe.read_text())
        elsewhere = self.here / "elsewhere"
        elsewhere.mkdir()
        self.theseus("run", recipe, "--out", self.here / "two", "--quiet", cwd=elsewhere)
        for name in ("model.safetensors", "recipe.yaml"):
            self.assertTrue((self.here / "one" / name).read_bytes() ==
                            (self.here / "two" / name).read_bytes(), name)
        shutil.rmtree(self.here / "data")
        self.refused("run", recipe, "--out", self.here / "three", cwd=elsewhere,
                     says=str(self.here / "data" / "digits" / "val"))

    def test_bad_recipes(self):
        for text, says in [
                ("source: [1\n", "this is not YAML"),
                ("- a\n- b\n", "expected 'option: value' lines"),
                ("", "expected 'option: value' lines"),
                ("source: base\n", ["which command it is for", "'command: transport'"]),
                ("command: sail\n", ["unknown command 'sail'", "transport"]),
                ("command: transprot\n", ["did you mean 'transport'?"]),
                ("comand: transport\n", ["which command it is for", "'comand' looks like 'command'"]),
                ("command: plan\nmemroy: 2GB\n", ["line 2", "'memroy'; did you mean --memory?"]),
                ("command: plan\nmemory: 2 gigs\n", "--memory: '2 gigs' is not a size"),
                ("command: run\n", "a recipe cannot run a recipe"),
                ("command: transport\n", "--target is required"),
                ("command: plan\nspeed: 3\n", ["line 2: plan has no option 'speed'", "--help"]),
                ("command: plan\nhelp: true\n", "line 2: plan has no option 'help'"),
                ("command: plan\nalpha: [1, 2]\n", "line 2: alpha must have one value"),
                ("command: plan\nalpha:\n", "line 2: alpha must have one value"),
                ("command: plan\nalpha: 1\nalpha: 2\n", "line 3: alpha is given twice")]:
            with self.subTest(text=text):
                path = self.here / "bad.yaml"
                path.write_text(text)
                self.refused("run", path, says=[path, *([says] if isinstance(says, str) else says)])
        path.write_text("command: plan\n")
        self.refused("run", path, "--memroy", "2GB", says="no option '--memroy'; did you mean --memory?")
        self.refused("run", self.here / "none.yaml", says=["none.yaml", "No such file"])
        self.refused("run", self.here, says="is a directory")

    def test_bad_values(self):
        for text, says in [("alpha: .nan\n", "'.nan' is not a number"),
                           ("alpha: nan\n", "'nan' is not a finite number"),
                           ("partial: maybe\n", "line 8: partial is 'maybe'; expected true or false"),
                           ("write: true\n", "--write: 'true' is none of: model update adapter")]:
            with self.subTest(text=text):
                recipe = self.write_recipe(text)
                self.refused("run", recipe, says=says)


if __name__ == "__main__":
    support.main()
