"""theseus itself: what it answers without libtorch, and what it prepares for the program behind it."""
import json
import pathlib
import subprocess
import unittest

import support
from support import PROGRAM, unprepared


class LauncherTest(support.CommandTest):
    def commands(self):
        page = self.theseus("--help").stdout
        return [line.split()[0] for line in page[page.index("Subcommands:"):].splitlines()[1:]
                if line.strip()]

    def test_every_help_page_is_the_programs_own(self):
        commands = self.commands()
        self.assertIn("transport", commands)
        for words in ([], *([command] for command in commands)):
            page = self.theseus(*words, "--help").stdout
            own = subprocess.run([PROGRAM, *words, "--help"], stdout=subprocess.PIPE, text=True,
                                 check=True, env=unprepared()).stdout
            self.assertEqual(page, own)
            self.assertEqual(self.theseus("help", *words).stdout, page)

    def test_what_needs_no_model_loads_no_libtorch(self):
        mapped = subprocess.run(["ldd", support.BINARY], stdout=subprocess.PIPE, text=True,
                                check=False).stdout
        for library in ("torch", "blas", "gomp", "dnnl"):
            self.assertNotIn(library, mapped)
        # The program behind it is not even there.
        alone = self.here / "theseus"
        alone.write_bytes(pathlib.Path(support.BINARY).read_bytes())
        alone.chmod(0o755)
        for words, status in (["--version"], 0), (["--help"], 0), (["plan", "-h"], 0), (["paln"], 2):
            done = subprocess.run([alone, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
        done = subprocess.run([alone, "plan"], stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 4)
        self.assertIn("cannot start", done.stderr)

    def test_a_misspelt_command_is_named_with_the_one_that_was_meant(self):
        self.refused("transprot", "--out", "x", says=["no command 'transprot'", "mean 'transport'"])
        done = self.refused("banana", says=["no command 'banana'", "transport"])
        self.assertNotIn("mean", done.stderr)
        self.refused(says="Usage")

    def test_a_misspelt_option_is_said_once_with_the_one_that_was_meant(self):
        done = self.refused("evaluate", "MODEL", "--dtaa", "x",
                            says=["no option '--dtaa'", "mean --data?"])
        self.assertEqual(done.stderr.count("--dtaa"), 1)
        self.refused("evaluate", "MODEL", "--dtaa=x", says="mean --data?")
        self.refused("doctor", "banana", says="no argument 'banana'")

    def test_a_failure_with_json_is_an_object(self):
        for words in (["evaluate", "nowhere", "--data", "nowhere", "--json"],
                      ["inspect", "--json", "nowhere"], ["doctor", "--json", "banana"],
                      ["docter", "--json"], ['say "\\', "--json"]):
            self.refused(*words, says="error: ")

    def test_sets_what_is_open_and_nothing_else(self):
        done = self.theseus("doctor", "--json", env=unprepared())
        settings = {one["name"]: one for one in json.loads(done.stdout)["settings"]}
        self.assertEqual(settings["GOMP_SPINCOUNT"]["value"], "1000")
        for one in settings.values():
            self.assertEqual(one["set_by"], "theseus", one)
        done = self.theseus("doctor", "--json", env=unprepared(GOMP_SPINCOUNT="7"))
        settings = {one["name"]: one for one in json.loads(done.stdout)["settings"]}
        self.assertEqual(settings["GOMP_SPINCOUNT"]["value"], "7")
        self.assertEqual(settings["GOMP_SPINCOUNT"]["set_by"], "you")

    def test_a_program_that_nobody_prepared_says_what_to_set(self):
        done = subprocess.run([PROGRAM, "doctor"], stdout=subprocess.PIPE, text=True, check=True,
                              env=unprepared())
        self.assertIn("GOMP_SPINCOUNT=1000", done.stdout)


if __name__ == "__main__":
    unittest.main()
