"""Calibration from text for two models that tokenize differently."""
import json
import random

import support
from support import change_weights, read_safetensors, tensor

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["play", "run", "walk", "sing", "jump", "tennis", "music", "home", "fast", "slow", "we", "they",
         "you", "can", "will", "not", "the", "a", "green", "blue", "red"]
PIECES = ["##ing", "##ed", "##s", "##er"]
LETTERS = [chr(c) for c in range(ord("a"), ord("a") + 26)]
KEY = "encoder.layer.1.attention.self.query.weight"
SIZE = 60  # ids that the models know


def filled(vocabulary):
    return vocabulary + [f"[unused{i}]" for i in range(SIZE - len(vocabulary))]


class Offsets(support.CommandTest):
    def setUp(self):
        super().setUp()
        generator = random.Random(3)
        forms = [word + ending for word in WORDS for ending in ("", "ing", "s", "ed")]
        lines = [" ".join(generator.choice(forms) for _ in range(6)) for _ in range(40)]
        (self.here / "lines.txt").write_text("\n".join(lines) + "\n")
        self.source = self.model("bert_bare", "source")
        self.tuned = self.model("bert_bare", "tuned")
        self.names = filled(SPECIAL + WORDS + PIECES)
        for model in (self.source, self.tuned):
            (model / "vocab.txt").write_text("\n".join(self.names) + "\n")

        def tune(tensors):
            values = tensors[KEY].values()
            tensors[KEY] = tensor("F32", tensors[KEY].shape,
                                  [value + generator.gauss(0, 0.1) for value in values])
        change_weights(self.tuned, tune)

    def transport(self, target, *more):
        self.theseus("transport", "--source", self.source, "--tuned", self.tuned, "--target", target,
                     "--examples", f"lines:{self.here / 'lines.txt'}", "--write", "update", "--out",
                     self.here / "out", "--threads", "1", "--quiet", *more)
        return (json.loads((self.here / "out" / "theseus.json").read_text()),
                read_safetensors(self.here / "out" / "update.safetensors"))

    def test_same_model_with_its_vocabulary_in_another_order(self):
        """Ids differ, texts and rows do not: the update arrives as it left."""
        target = self.model("bert_bare", "target")
        order = list(range(SIZE))
        random.Random(5).shuffle(order)
        (target / "vocab.txt").write_text("\n".join(self.names[i] for i in order) + "\n")

        def reorder(tensors):
            name = "embeddings.word_embeddings.weight"
            table = tensors[name]
            width = table.shape[1]
            rows = [table.values()[i * width:(i + 1) * width] for i in range(SIZE)]
            tensors[name] = tensor("F32", table.shape, [v for i in order for v in rows[i]])
        change_weights(target, reorder)
        record, update = self.transport(target)
        self.assertEqual(record["tokens"], {"encoder": "offsets"})
        tuned = read_safetensors(self.tuned / "model.safetensors")[KEY].values()
        base = read_safetensors(self.source / "model.safetensors")[KEY].values()
        delta = [a - b for a, b in zip(tuned, base)]
        worst = max(abs(a - b) for a, b in zip(delta, update[KEY].values()))
        self.assertLess(worst, 1e-5 * max(map(abs, delta)))

    def test_other_pieces(self):
        """One model reads words and endings, the other letters: tokens pair by the letters they share."""
        target = self.model("bert_bare", "target")
        letters = filled(SPECIAL + LETTERS + ["##" + letter for letter in LETTERS])
        (target / "vocab.txt").write_text("\n".join(letters) + "\n")
        record, update = self.transport(target, "--max-length", "20")
        self.assertEqual(record["tokens"], {"encoder": "offsets"})
        self.assertGreater(sum(value * value for value in update[KEY].values()), 0)
        self.refused("transport", "--source", self.source, "--tuned", self.tuned, "--target", target,
                     "--examples", f"lines:{self.here / 'lines.txt'}", "--tokens", "text", "--out",
                     self.here / "second", says=["the tokenizers differ"])

    def test_no_spans(self):
        same = self.model("bert_bare", "same")
        (same / "vocab.txt").write_text("\n".join(self.names) + "\n")
        self.refused("transport", "--source", self.source, "--tuned", self.tuned, "--target", same,
                     "--examples", f"lines:{self.here / 'lines.txt'}", "--tokens", "offsets", "--out",
                     self.here / "second", says=["both models get the same ids", "use text"])


if __name__ == "__main__":
    support.main()
