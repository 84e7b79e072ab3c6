"""tools/check_stages.py on small trees, right and wrong."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTED = {"tests/base/error_test.cpp": "", "tests/model/space_test.cpp": ""}


def check(files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, ROOT / "tools" / "check_stages.py", root],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


class CheckStages(unittest.TestCase):
    def test_earlier_stage_may_be_included(self):
        self.assertEqual(check(TESTED | {
            "theseus/base/error.h": "",
            "theseus/model/space.h": '#include "theseus/base/error.h"\n'}), (0, ""))

    def test_later_stage_may_not(self):
        status, text = check(TESTED | {
            "theseus/base/error.h": '#pragma once\n#include "theseus/model/space.h"\n',
            "theseus/model/space.h": ""})
        self.assertEqual(status, 1)
        self.assertIn("theseus/base/error.h:2: base may not include model", text)

    def test_spelling_does_not_matter(self):
        for include in ("#  include <theseus/model/space.h>", '  #include "theseus/model/space.h"'):
            status, _ = check(TESTED | {
                "theseus/base/error.h": include, "theseus/model/space.h": ""})
            self.assertEqual(status, 1, include)

    def test_unknown_stage_is_named(self):
        status, text = check({"theseus/utils/things.h": ""})
        self.assertEqual(status, 1)
        self.assertIn("theseus/utils/things.h: 'utils' is not a stage", text)

    def test_unknown_stage_in_an_include(self):
        status, text = check(TESTED | {
            "theseus/base/error.h": '#include "theseus/utils/things.h"',
            "theseus/model/space.h": ""})
        self.assertEqual(status, 1)
        self.assertIn("theseus/base/error.h:1: there is no stage 'utils'", text)

    def test_the_library_does_not_include_its_tests(self):
        status, text = check(TESTED | {
            "theseus/base/error.h": '#include "tests/support/x.h"', "theseus/model/space.h": ""})
        self.assertEqual(status, 1)
        self.assertIn("may not include tests/", text)

    def test_every_stage_has_tests(self):
        status, text = check({"theseus/base/error.h": ""})
        self.assertEqual(status, 1)
        self.assertIn("theseus/base/ has no tests/base/*_test.cpp or *_test.py", text)

    def test_tests_of_nothing(self):
        status, text = check(TESTED | {
            "theseus/base/error.h": "", "theseus/model/space.h": "", "tests/misc/x_test.cpp": ""})
        self.assertEqual(status, 1)
        self.assertIn("tests/misc/x_test.cpp: theseus/misc/ does not exist", text)


if __name__ == "__main__":
    unittest.main()
