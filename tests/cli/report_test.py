"""theseus report: a page from what other commands wrote, and how a browser shows it."""
import html.parser
import json
import shutil
import struct
import subprocess
import unittest

import pair
import support

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
               None)
HOSTILE = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
SWEEP = {"kind": "sweep", "metric": "accuracy",
         "curve": [{"alpha": alpha / 4, "value": 0.5 + alpha / 40, "low": 0.48 + alpha / 40,
                    "high": 0.52 + alpha / 40} for alpha in range(5)],
         "best": {"alpha": 1.0, "value": 0.6}, "base": {"value": 0.5}, "notes": [HOSTILE]}


class Outline(html.parser.HTMLParser):
    """What elements a page opens, and whether each is closed in turn."""

    VOID = ("meta", "img", "br", "link", "input")

    def __init__(self, text):
        super().__init__()
        self.opened, self.stack, self.wrong = [], [], []
        self.feed(text)
        self.wrong += self.stack

    def handle_starttag(self, tag, attrs):
        self.opened.append(tag)
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.opened.append(tag)

    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag:
            self.wrong.append(tag)


class Files(support.CommandTest):
    def setUp(self):
        super().setUp()
        self.sweep = self.here / "sweep.json"
        self.sweep.write_text(json.dumps(SWEEP))
        self.out = self.here / "report.html"

    def test_html_and_markdown(self):
        done = self.theseus("report", self.sweep, "-o", self.out)
        self.assertEqual(done.stdout, f"written to {self.out}\n")
        page = self.out.read_text()
        self.assertEqual(Outline(page).wrong, [])
        self.assertIn("best: alpha 1, 0.6 (0.58 to 0.62)", page)
        self.theseus("report", self.sweep, "-o", self.here / "report.md")
        self.assertIn("| 1 | **0.6** | 0.58 | 0.62 | best |", (self.here / "report.md").read_text())
        self.theseus("report", self.sweep, "-o", self.here / "page", "--format", "md")
        self.assertEqual((self.here / "page").read_text(), (self.here / "report.md").read_text())

    def test_hostile_notes_are_text(self):
        self.theseus("report", self.sweep, "-o", self.out)
        outline = Outline(self.out.read_text())
        self.assertNotIn("script", outline.opened)
        self.assertNotIn("img", outline.opened)

    def test_only_reports_are_replaced(self):
        self.theseus("report", self.sweep, "-o", self.out)
        self.theseus("report", self.sweep, "-o", self.out)
        self.out.write_text("mine")
        self.refused("report", self.sweep, "-o", self.out,
                     says=["is not a report of theseus", "--force"])
        self.assertEqual(self.out.read_text(), "mine")
        self.theseus("report", self.sweep, "-o", self.out, "--force")
        self.assertIn("theseus report", self.out.read_text())

    def test_what_it_reads_is_never_replaced(self):
        self.refused("report", self.sweep, "-o", self.sweep, "--force", says="which is needed")

    def test_refusals(self):
        (self.here / "config.json").write_text('{"model_type": "bert"}')
        self.refused("report", self.here / "config.json", "-o", self.out,
                     says=["config.json is not a document of theseus", "model_type"])
        self.refused("report", self.sweep, "-o", self.here / "no" / "x.html",
                     says="there is no directory")
        self.refused("report", self.sweep, "-o", self.here, says="is a directory")
        self.sweep.write_text('{"kind": "sonnet"}')
        self.refused("report", self.sweep, "-o", self.out, says="the kind 'sonnet'")
        self.sweep.unlink()
        self.refused("report", self.here, "-o", self.out, says="nothing to report on")
        self.refused("report", self.here / "none", "-o", self.out, says="there is no")


class OfATransport(pair.PairTest):
    def test_real_outputs(self):
        out = self.carry()
        aligned = self.carry(command="align", out="aligned")
        page = self.here / "report.html"
        self.theseus("report", out, aligned, "-o", page)
        text = page.read_text()
        self.assertEqual(Outline(text).wrong, [])
        record = self.record(out)
        carried = record["totals"]["carried"]
        self.assertIn(f"{carried} carried, {record['totals']['kept']} kept", text)
        worst = max((row for row in record["parameters"] if "norm_error" in row),
                    key=lambda row: abs(row["norm_error"]) / row["source_norm"])
        self.assertIn(f'<th scope="row">{worst["parameter"]}</th>', text)
        self.assertIn(record["tuned"]["fingerprint"], text)
        self.assertIn("Alignment: base to wide", text)
        for note in record["notes"]:
            self.assertIn(note, text)


@unittest.skipUnless(BROWSER, "there is no chromium to open the page in")
class InABrowser(support.CommandTest):
    def setUp(self):
        super().setUp()
        (self.here / "sweep.json").write_text(json.dumps(SWEEP))
        self.page = self.here / "report.html"
        self.theseus("report", self.here, "-o", self.page)

    def open(self, *options):
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             f"--user-data-dir={self.here / 'profile'}", *options, self.page.as_uri()],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=60,
            check=False)
        if done.returncode != 0:
            self.skipTest(f"{BROWSER} does not run here: {done.stderr[-300:]}")
        return done.stdout

    def test_it_is_read_as_written_and_nothing_runs(self):
        shown = self.open("--dump-dom")
        self.assertIn("<title>theseus report</title>", shown)
        self.assertEqual(Outline(shown).opened.count("circle"), 5 + 2)
        self.assertEqual(Outline(shown).opened.count("script"), 0)
        self.assertIn("&lt;script&gt;", shown)

    def picture(self, *options):
        """Width and height of a screenshot, and its bytes."""
        path = self.here / "picture.png"
        self.open("--window-size=500,700", f"--screenshot={path}", *options)
        data = path.read_bytes()
        return struct.unpack(">II", data[16:24]), data

    def test_light_and_dark_differ(self):
        size, light = self.picture("--blink-settings=preferredColorScheme=1")
        _, dark = self.picture("--blink-settings=preferredColorScheme=0")
        self.assertEqual(size, (500, 700))
        self.assertGreater(len(light), 5000)
        self.assertNotEqual(light, dark)


if __name__ == "__main__":
    support.main()
