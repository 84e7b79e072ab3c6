"""Data that cannot be measured on, or only in part: what is said, and that nothing is written."""
import json
import shutil

import support
from digits import SIZE, DigitsTest
from support import CommandTest

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "the", "a"]


class BadImages(DigitsTest):
    def pictures(self, name, rows, head="path,label"):
        """A manifest of one picture under several labels."""
        place = self.here / name
        place.mkdir()
        (place / "1.ppm").write_bytes(b"P6 %d %d 255\n" % (SIZE, SIZE) + self.bytes[0])
        (place / "images.csv").write_text("\n".join([head, *rows]) + "\n")
        return place / "images.csv"

    def refused_data(self, data, *more, says):
        self.refused("evaluate", self.models / "tuned", "--data", data, "--quiet", *more, says=says)

    def test_empty_class_folder(self):
        folders = self.here / "folders"
        shutil.copytree(self.models / "digits" / "test", folders)
        (folders / "digit x").mkdir()
        self.refused_data(folders, says=["digit x"])

    def test_labels_out_of_range(self):
        self.refused_data(self.pictures("a", ["1.ppm,3", "1.ppm,12"]),
                          says="label 12 is beyond the head's 10 classes")
        self.refused_data(self.pictures("b", ["1.ppm,3", "1.ppm,-1"]), says="out of range")
        named = self.pictures("c", ["1.ppm,3", "1.ppm,2"])
        (named.parent / "classnames.txt").write_text("zero\none\ntwo\n")
        self.refused_data(named, says=["label 3 is out of range", "3 classes, 0 to 2"])

    def test_images_without_a_class(self):
        """None is left out in silence: beside class folders, deeper than them, behind a broken link, of another kind."""
        folders = self.here / "folders"
        shutil.copytree(self.models / "digits" / "test", folders)
        picture = next((folders / "digit 3").iterdir()).read_bytes()
        for name, says in (("stray.ppm", ["beside its folders", "stray.ppm"]),
                           ("digit 3/more/x.ppm", ["digit 3", "a folder more with images"]),
                           ("digit 3/x.heic", ["x.heic", "this kind of image is not read"]),
                           ("digit 3/x.pnm", ["x.pnm", "this kind of image is not read"])):
            place = folders / name
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(picture)
            self.refused_data(folders, says=says)
            self.refused(*self.words(examples=folders), says=says)
            place.unlink()
        (folders / "digit 3" / "more").rmdir()
        (folders / "digit 3" / "gone.ppm").symlink_to(self.here / "nowhere.ppm")
        self.refused_data(folders, says=["gone.ppm", "this link leads nowhere"])

    def test_unknown_class(self):
        named = self.pictures("a", ["1.ppm,two", "1.ppm,three"])
        (named.parent / "classnames.txt").write_text("zero\none\ntwo\n")
        self.refused_data(named, says=["unknown class 'three'", "zero, one, two"])
        folders = self.here / "folders"
        for split, names in (("train", ["a", "b"]), ("test", ["a", "c"])):
            for name in names:
                (folders / split / name).mkdir(parents=True)
                shutil.copy(named.parent / "1.ppm", folders / split / name)
        self.refused_data(folders, says="unknown class 'c'")

    def test_one_class(self):
        """Accuracy on one class can be measured, and no strength can be chosen by it."""
        one = self.here / "one"
        shutil.copytree(self.models / "digits" / "val" / "digit 3", one / "val" / "digit 3")
        shutil.copytree(self.models / "digits" / "val" / "digit 3", one / "train" / "digit 3")
        shutil.copytree(self.models / "digits" / "test", one / "test")
        shutil.copytree(self.models / "digits" / "test", one / "train", dirs_exist_ok=True)
        update = self.carry("--write", "update", out="u")
        sweep = ["sweep", self.models / "wide", "--update", update, "--quiet", "--data", one]
        self.refused(*sweep, "--split", "val", says=["are of one class, 'digit 3'", "several"])
        done = self.theseus("compare", "--source", self.models / "base", "--target",
                            self.models / "wide", "--setting", "digits", self.models / "tuned", one,
                            "--methods", "pad", "--out", self.here / "c", "--quiet", exit=2)
        self.assertIn("are of one class, 'digit 3'", done.stderr)
        self.refused(*sweep, "--split", "test", "--to", "inf", says="'inf' is not a finite number")
        self.refused(*sweep, "--split", "test", "--step", "1e-9", says="too many")
        words = ["compare", "--source", self.models / "base", "--target", self.models / "wide", "--setting",
                 "digits", self.models / "tuned", one, "--methods", "pad", "--out", self.here / "d"]
        for more, says in ((["--alpha", "nan"], "finite"), (["--to", "nan"], "finite"),
                           (["--batches", "0"], "--batches"), (["--shots", "-2"], "--shots"),
                           (["--setting", "digits", self.models / "tuned", one], "two columns")):
            self.refused(*words, *more, says=says)
        self.assertFalse((self.here / "d").exists())
        lone = self.here / "lone"
        shutil.copytree(one / "val" / "digit 3", lone / "train" / "digit 3")
        shutil.copytree(one / "val" / "digit 3", lone / "test" / "digit 3")
        self.refused_data(lone, "--task", "probe", says="all training examples are of one class")

    def test_one_class_is_said(self):
        one = self.models / "digits" / "val" / "digit 3"
        only = self.here / "only"
        shutil.copytree(self.models / "digits" / "test", only / "train")
        shutil.copytree(one, only / "val" / "digit 3")
        said = self.theseus("evaluate", self.models / "base", "--data", only, "--split", "val",
                            "--quiet").stdout
        self.assertIn("examples are of one class, 'digit 3': a model that always names it", said)
        said = self.theseus("finetune", "--model", self.models / "base", "--data", only, "--validation",
                            "val", "--steps", "1", "--batch-size", "8", "--out", self.here / "out", "--quiet",
                            "--json").stdout
        notes = json.loads(said)["notes"]
        self.assertTrue(any("that are measured on are of one class, 'digit 3'" in note for note in notes))
        self.assertFalse(any("learnt from" in note for note in notes), notes)

    def test_options_of_texts(self):
        digits = self.models / "digits"
        for option, value in (("--wording", "{text}"), ("--second", "{b}"), ("--answer", "{b}"),
                              ("--max-length", "5")):
            says = f"{option} is for texts"
            self.refused_data(digits, option, value, says=says)
            self.refused("finetune", "--model", self.models / "base", "--data", digits, option, value,
                         "--out", self.here / "x", says=says)
            self.refused(*self.words(examples=digits), option, value, says=says)
        self.refused_data(digits, "--pack", "12", says="--pack is for the task perplexity")
        self.refused(*self.words(examples=None, labelled=digits), "--mask", "normal", "--template", "{c}",
                     says="--template is for models of images and text")

    def test_numbers(self):
        digits = self.models / "digits"
        self.refused(*self.words("imitate"), "--seed", "-1", says="'-1' is not a whole number")
        self.refused(*self.words("imitate"), "--map-ridge", "x", says="'x' is not a number")
        self.refused_data(digits, "--seed", "-1", says="'-1' is not a whole number")
        self.refused(*self.words(), "--alpha", "1e30", says="'1e30' is no strength")
        self.refused(*self.words("imitate"), "--alpha", "nan", says="'nan' is not a finite number")
        self.refused("finetune", "--model", self.models / "base", "--data", digits, "--out",
                     self.here / "x", "--lr", "1e30", says="--lr 1e+30 is no rate")

    def test_missing_and_unreadable(self):
        """What is not there, or may not be read, is said so, and not taken for another layout."""
        for layout in ("mnist", "folders", "jsonl", "lines", "webdataset", "cifar", "svhn", "snli", "eurosat"):
            self.refused_data(f"{layout}:{self.here}/nope", says=[f"{self.here}/nope", "no file or folder"])
        self.refused_data(self.here / "nope", says="no such file or folder")
        as_nobody = self.as_nobody()
        shutil.copytree(self.models / "tuned", self.here / "m")
        for path in [self.here / "m", *(self.here / "m").iterdir()]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        closed = self.here / "closed"
        shutil.copytree(self.models / "digits" / "test", closed)
        table = self.here / "table.csv"
        table.write_text("path,label\n1.ppm,3\n")
        for path in (closed, table):
            path.chmod(0)
            for words in (path, f"{'folders' if path == closed else 'manifest'}:{path}"):
                said = self.theseus("evaluate", self.here / "m", "--data", words, "--quiet", exit=2,
                                    **as_nobody).stderr
                self.assertIn(f"{path}: permission denied", said)
            path.chmod(0o755)

    def test_probe_on_undivided_data(self):
        """The message says how, and that works: nothing that is measured on is learnt from."""
        whole = self.here / "whole"
        for split in ("test", "val"):
            shutil.copytree(self.models / "digits" / split, whole, dirs_exist_ok=True)
        self.refused_data(whole, "--task", "probe", says=["is not divided", "--split '[80:100]'", "--training"])
        record = json.loads(self.theseus("evaluate", self.models / "tuned", "--data", whole, "--task",
                                         "probe", "--split", "[80:100]", "--json", "--quiet").stdout)
        self.assertEqual((record["count"], record["training"]["examples"]), (24, 96))

    def test_marks_and_line_ends(self):
        """A byte order mark and ends of lines as on Windows change nothing."""
        plain = self.pictures("plain", ["1.ppm,three", "1.ppm,two"])
        (plain.parent / "classnames.txt").write_text("two\nthree\n")
        marked = self.pictures("marked", ["1.ppm,three", "1.ppm,two"])
        for file in (marked, marked.parent / "classnames.txt"):
            text = (plain if file == marked else plain.parent / "classnames.txt").read_bytes()
            file.write_bytes(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
        found = []
        for table in (plain, marked):
            headed = self.here / f"head {table.parent.name}"
            shutil.copytree(self.models / "tuned", headed)
            done = self.theseus("evaluate", headed, "--data", table, "--task", "probe", "--training",
                                table, "--quiet", exit=2)
            found.append(done.stderr.replace(str(table), "T"))
            self.assertIn("are those to be measured on", done.stderr)
        self.assertEqual(found[0], found[1])
        self.refused_data(marked, says="the head has 10 classes and the data 2: without names; two, three")

    def test_not_utf8(self):
        table = self.pictures("a", ["1.ppm,three"])
        names = table.parent / "classnames.txt"
        names.write_bytes(b"two\nthr\xe9e\n")
        self.refused_data(table, says=[f"{names}:2: byte 4 of the line", "not UTF-8"])
        names.unlink()
        table.write_bytes(b"path,label\n1.ppm,thr\xe9e\n")
        self.refused_data(table, says=[f"{table}:2: byte 10 of the line", "not UTF-8"])
        table.write_bytes("path,label\n1.ppm,three\n".encode("utf-16"))
        self.refused_data(f"manifest:{table}", says=[table, "UTF-16"])

    def test_no_labels(self):
        plain = self.pictures("a", ["1.ppm", "1.ppm"], head="path")
        self.refused_data(plain, says="no labels")


class BadTexts(CommandTest):
    def setUp(self):
        super().setUp()
        self.bert = self.model("adapted_bert")  # 4 classes, 60 ids, 20 positions
        self.vocabulary = self.bert / "vocab.txt"
        self.vocabulary.write_text("\n".join(WORDS) + "\n")

    def texts(self, *texts):
        file = self.here / "texts.jsonl"
        file.write_text("".join(json.dumps({"text": text, "label": i % 4}) + "\n"
                                for i, text in enumerate(texts)))
        return file

    def evaluate(self, *texts, more=()):
        return json.loads(self.theseus("evaluate", self.bert, "--data", self.texts(*texts), "--json",
                                       "--quiet", *more).stdout)

    def labelled(self, *labels):
        file = self.here / "texts.jsonl"
        file.write_text("".join(json.dumps({"text": f"a film {i}", "label": label}) + "\n"
                                for i, label in enumerate(labels)))
        return file

    def test_labels_beyond_the_head(self):
        """Of what is measured on; what is not drawn may have any."""
        file = self.labelled(0, 7)
        self.refused("evaluate", self.bert, "--data", file, "--quiet", says=[
            "label 7 is beyond the head's 4 classes, 0 to 3; the labels here are 0, 7"])
        self.refused("evaluate", self.bert, "--data", self.labelled(4), "--quiet",
                     says="label 4 is beyond the head's 4 classes")
        words = ["evaluate", self.bert, "--quiet", "--json", "--data", self.labelled(0, 1, 2, 3, 2, 1, 7),
                 "--limit", "2"]
        self.assertEqual(json.loads(self.theseus(*words).stdout)["count"], 2)
        self.refused(*words[:-2], says="label 7 is beyond")
        file.write_text("")
        self.refused("evaluate", self.bert, "--data", file, says="texts.jsonl: the file is empty")
        self.refused("evaluate", self.bert, "--data", self.texts("a film"), "--answer", "{text}",
                     says="--answer is for models that write text")

    def test_not_utf8(self):
        """One rule for every kind of text."""
        (self.here / "data").mkdir()
        for name, text in (("x.txt", b"a film\nthe \xff film\n"),
                           ("x.jsonl", b'{"text": "a film"}\n{"text": "\xff"}\n'),
                           ("x.tsv", b"text\tlabel\na\t0\n".replace(b"a\t0", b"a \xff\t0")),
                           ("y.jsonl", b'{"text": "\xff film"}\n')):
            file = self.here / "data" / name
            file.write_bytes(text)
            for data in (file, f"{'lines' if name == 'x.txt' else name[2:]}:{file}"):
                self.refused("evaluate", self.bert, "--data", data, "--task", "probe", "--training", data,
                             "--quiet", says=[f"{file}:{1 if name == 'y.jsonl' else 2}: byte", "not UTF-8"])

    def test_mark_before_text(self):
        file = self.here / "lines.txt"
        file.write_bytes(b"\xef\xbb\xbfthe good film\r\nthe bad film\r\n")
        llama = support.ROOT / "tests" / "fixtures" / "evaluate" / "llama"
        marked = json.loads(self.theseus("evaluate", llama, "--data", file, "--json", "--quiet").stdout)
        file.write_text("the good film\nthe bad film\n")
        plain = json.loads(self.theseus("evaluate", llama, "--data", file, "--json", "--quiet").stdout)
        self.assertEqual(marked["value"], plain["value"])

    def test_a_record_without_the_field(self):
        file = self.here / "texts.jsonl"
        file.write_text('{"text": "a film", "label": 0}\n{"review": "the film", "label": 1}\n')
        self.refused("evaluate", self.bert, "--data", file, "--quiet",
                     says=["asks for the field 'text'", f"{file}:2"])

    def test_missing_vocabulary(self):
        self.vocabulary.unlink()
        self.refused("evaluate", self.bert, "--data", self.texts("a film"), "--quiet",
                     says=["tokenizer.json", "vocab.txt"])

    def test_vocabulary_beyond_the_embedding(self):
        self.vocabulary.write_text("\n".join([*WORDS, *(f"word{i}" for i in range(100))]) + "\n")
        self.refused("evaluate", self.bert, "--data", self.texts("word99"), "--quiet",
                     says=["input_ids", "60"])

    def test_text_longer_than_the_model(self):
        """It is cut, and that is said."""
        whole = self.evaluate("the good film", "the bad film")
        self.assertEqual(len(whole["notes"]), 1)
        self.assertIn("label i was taken for class i of the head", whole["notes"][0])
        cut = self.evaluate("the good film " * 30, "the bad film")
        self.assertIn("1 texts were longer than the 20 tokens that the model takes and were cut", cut["notes"][0])
        self.assertEqual(cut["count"], 2)
        short = self.evaluate("the good film", "the", more=("--max-length", "4"))
        self.assertIn("1 texts were longer", short["notes"][0])
        self.refused("evaluate", self.bert, "--data", self.texts("a"), "--max-length", "21", "--quiet",
                     says="the model takes at most 20 tokens")


if __name__ == "__main__":
    support.main()
