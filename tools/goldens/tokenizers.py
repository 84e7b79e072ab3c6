#!/usr/bin/env python3
"""Records what `tokenizers`, `transformers` and `sentencepiece` do with small vocabularies.

    tokenizers.py OUT [bpe_simple_vocab_16e6.txt.gz [vocab.txt]]

Trains small tokenizers on the text below, writes their files into OUT/<name>/ and, for the texts and
pairs of OUT/texts.json, ids, byte spans, types and decoded text into OUT/<name>/expected.json. Spans
are "length" or "gap:length", the gap counted from the end of the span before, and "*n" for n times the
same; what is decoded is left out where it is the text itself, types where all are 0. With the
second and third argument also OUT/openclip_real/ and OUT/bert_real/, without the big files themselves.
"""
import gzip
import html
import itertools
import json
import os
import shutil
import sys
import tempfile
import traceback

# This file has the name of a package that it needs.
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path = [path for path in sys.path if os.path.realpath(path or ".") != HERE]

CORPUS = """
The quick brown fox jumps over the lazy dog. It isn't what they'd say, and we're sure you'll see I'm right.
She sells sea shells by the sea shore; the shells she sells are surely sea shells, aren't they?
In 1984 there were 12,345 people and 3.14159 is not 22/7. Call 555-0199 or write to someone@example.org!
A photo of a small cat, a photo of a large dog, an image of a house with a red roof and a garden.
Tokenization of the unbelievable, unhappiness, undoing, and internationalization of the organizations.
def main(argc, argv):
    for i in range(10):
        if i % 2 == 0:
            print("hello, world", i)
        return [x for x in argv]

Le caf\u00e9 est pr\u00eat, la for\u00eat est tr\u00e8s \u00e9loign\u00e9e, na\u00efve \u0153uvre. \u00c9t\u00e9 d\u00e9j\u00e0 vu.
Die gro\u00dfe Stra\u00dfe f\u00fchrt \u00fcber die Br\u00fccke; \u00c4pfel und \u00d6l, Gr\u00fc\u00dfe aus M\u00fcnchen.
El ni\u00f1o come pi\u00f1a ma\u00f1ana por la ma\u00f1ana. \u00bfQu\u00e9 tal? \u00a1Muy bien!
\u041c\u043e\u0441\u043a\u0432\u0430 \u0441\u0442\u043e\u043b\u0438\u0446\u0430 \u0420\u043e\u0441\u0441\u0438\u0438, \u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440, \u043a\u0430\u043a \u0434\u0435\u043b\u0430.
\u0397 \u03b3\u03bb\u03ce\u03c3\u03c3\u03b1 \u03b5\u03af\u03bd\u03b1\u03b9 \u03b5\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ae \u03ba\u03b1\u03b9 \u03cc\u03bc\u03bf\u03c1\u03c6\u03b7.
\u6211\u4eec\u5728\u5317\u4eac\u5b66\u4e60\u4e2d\u6587\u3002\u4f60\u597d\u4e16\u754c\uff0c\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002
\u79c1\u306f\u6771\u4eac\u306b\u4f4f\u3093\u3067\u3044\u307e\u3059\u3002\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3002\u30ab\u30bf\u30ab\u30ca\u3068\u3072\u3089\u304c\u306a\u3002
\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4, \ud55c\uad6d\uc5b4\ub294 \uc7ac\ubbf8\uc788\uc5b4\uc694.
\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u0643\u064a\u0641 \u062d\u0627\u0644\u0643 \u0627\u0644\u064a\u0648\u0645.
\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd, \u05de\u05d4 \u05e9\u05dc\u05d5\u05de\u05da.
\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e, \u0906\u092a \u0915\u0948\u0938\u0947 \u0939\u0948\u0902\u0964
\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01
Emoji \U0001f600 and \U0001f602 and \U0001f44d\U0001f3fd are fun \u2764\ufe0f \u2026 \u201cquotes\u201d \u2013 dashes \u2014 and \u20ac100.
"""

TEXTS = [
    "",
    " ",
    "\n",
    "a",
    "Hello, world!",
    "  leading and trailing  ",
    "many     spaces   between    words",
    "tabs\tand\nnewlines\r\nand\r\rreturns\n\n\nend",
    "trailing newlines\n\n",
    "\n\n leading newline then space",
    "a photo of a cat",
    "I'm sure they're right; we've seen it, he'll go, she'd stay, it's John's, don't.",
    "I'M SURE THEY'RE RIGHT; WE'VE SEEN IT, HE'LL GO, IT'S DON'T",
    "Fred''s 'tis ''quoted'' rock'n'roll 'Sam 'LLama",
    "it\u2019s a curly apostrophe, they\u2019re",
    "THE QUICK BROWN FOX",
    "CamelCaseWords and snake_case_words and kebab-case-words",
    "1 12 123 1234 12345 123456 1,234.56 -7 +8 3.14e-10 0xFF",
    "\u0661\u0662\u0663 \u00bd \u00b2 \u2167 \u4e09 \u2460",
    "price: $5.00, \u20ac100, \u00a35, 50%",
    "def f(x):\n    return x ** 2  # square\n\n\tif x:\n\t\tpass",
    "caf\u00e9 na\u00efve \u00c5ngstr\u00f6m \u00c9COLE",
    "cafe\u0301 nai\u0308ve A\u030angstro\u0308m",
    "e\u0323\u0302 \u1ec7 o\u0302\u0323 q\u0307\u0323 x\u0302",
    "\u0301leading mark a\u0301\u0302\u0303\u0304",
    "\u212b \u2126 \ufb01sh \uff21\uff22\uff43 \u2460\u2461 \u338f \ufb03",
    "Stra\u00dfe STRASSE \u1e9e \u0130stanbul I\u0307 \u0131",
    "\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3 \u03a3 \u1f08\u03b8\u03ae\u03bd\u03b1",
    "\u041c\u043e\u0441\u043a\u0432\u0430 \u0401\u0436 \u0439\u0438\u0306",
    "\u6211\u4eec\u5728\u5317\u4eac\u5b66\u4e60\u4e2d\u6587\u3002\u4f60\u597d",
    "\u4e2d\u6587and English\u6df7\u5408text123\u6570\u5b57",
    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c \u30ab\u30bf\u30ab\u30ca \u304c \u304b\u3099 \uff76\uff9e",
    "\uc548\ub155\ud558\uc138\uc694 \u1112\u1161\u11ab\u1100\u1173\u11af \uac00\u11a8",
    "\U00020000\U0002a6d6 \uf900 \u2f00 \u3007",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u060c \u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f",
    "\u05e9\u05dc\u05d5\u05dd \u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e \u0958 \u0995\u09cb",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\U0001f600 \U0001f602\U0001f602 \u2764\ufe0f \U0001f44d\U0001f3fd!",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001f1e9\U0001f1ea",
    "zero\u200bwidth\u200cjoin\u200ders\u2060 and \ufeffbom \u00adsoft",
    "nbsp\u00a0thin\u2009ideographic\u3000line\u2028para\u2029ogham\u1680nel\u0085end",
    "control \x01\x02 bell\x07 esc\x1b[0m del\x7f vt\x0bff\x0c us\x1f nul\x00end",
    "replacement \ufffd private \ue000 noncharacter \ufffe unassigned \u0378",
    "<|endoftext|>",
    "text<|endoftext|>more <|endoftext|> text <|startoftext|>x",
    "<|begin_of_text|>Hi<|eot_id|> <|im_start|>user\n<|im_end|>",
    "[CLS] this [MASK] is [SEP] a [UNK] test[MASK]. [PAD]",
    "<s> a </s> b <unk> <pad> c</s>d",
    "Fill <extra_id_0> and <extra_id_1>, then<extra_id_99>end <extra_id_100>",
    "&lt;b&gt; &amp;amp; &quot;x&quot; &#39;y&#39; &eacute; &notit; &copy &#x1F600; &#0; &bogus;",
    "&amp;amp;lt; &#128; &#xD800; &#1114112; &hearts",
    "a_b __init__ ___ ... !!! ?!?! --- === <<<>>> {}[]()",
    "\u201cquotes\u201d \u2018single\u2019 \u2013 \u2014 \u2026 \u00ab\u00bb",
    "https://example.org/path?q=1&b=2#frag user@example.org",
    "unbelievable internationalization tokenization unhappiness",
    "x" * 100,
    "x" * 101,
    "abc" * 40 + " short " + "\u00e9" * 70,
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    " a  b   c    d     e",
    "\u2581under \u2581\u2581bars_ \u0120G \u010aC",
    "mixed \u00e9\u6211\U0001f600\u0645 end\u00e9",
    "nasty unreachable",
    "Mc\u0903 Me\u20dd Zs\u2003x Nl\u2163 No\u00b9 Sk\u02c6 Lm\u02b0 Pc\u203f",
    "\u01c4 \u01c5 \u01c6 \u0149 \u1e9b\u0323 \ufb20 \U0001d400 \U00010400",
    "\\n \\t \\u0041 \"escaped\" \\",
]

PAIRS = [
    ["a photo of a cat", "is this a dog?", 0],
    ["", "only the second", 0],
    ["only the first", "", 0],
    ["caf\u00e9 \U0001f600", "\u6211\u4eec x", 0],
    ["a photo of a small cat", "an image of a house with a red roof and a garden", 16],
    ["an image of a house with a red roof and a garden", "a photo of a small cat", 16],
    ["a a a a a a a a a a a a", "b b b b b b b b b b b b", 12],
    ["a a a a a a a a a a a a", "b b b b b b b b b b b b", 13],
    ["a a a a a a a a a a a a", "b b", 9],
    ["a a", "b b b b b b b b b b b b", 9],
]

CUTS = [["a photo of a small cat in a garden with a house", n] for n in (3, 5, 8, 100)]

GPT2_NAMES = ["<|endoftext|>"]
LLAMA3_REGEX = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_REGEX = LLAMA3_REGEX.replace(r"\p{N}{1,3}", r"\p{N}")
CLIP_REGEX = r"""'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, separators=(",", ":"))


def byte_spans(text, spans):
    """Offsets in code points to offsets in UTF-8, as one flat list."""
    at = [0]
    for char in text:
        at.append(at[-1] + len(char.encode("utf-8", "surrogatepass")))
    return [at[place] for span in spans for place in span]


def short_spans(spans):
    """A flat list of begins and ends as text."""
    out, before = [], 0
    for begin, end in zip(spans[::2], spans[1::2]):
        out.append(str(end - begin) if begin == before else f"{begin - before}:{end - begin}")
        before = end
    runs = [(key, len(list(same))) for key, same in itertools.groupby(out)]
    return " ".join(key if count == 1 else f"{key}*{count}" for key, count in runs)


def record(tokenizer, fix_decode=None, types=True):
    """`tokenizer` is a tokenizers.Tokenizer."""

    def decode(ids):
        text = tokenizer.decode(ids, skip_special_tokens=True)
        return fix_decode(text) if fix_decode else text

    def encoded(encoding, texts):
        spans = []
        for (begin, end), sequence in zip(encoding.offsets, encoding.sequence_ids):
            text = texts[sequence] if sequence is not None else ""
            spans += byte_spans(text, [(begin, end)]) if sequence is not None else [0, 0]
        row = {"ids": encoding.ids, "spans": short_spans(spans)}
        if types and any(encoding.type_ids):
            row["types"] = encoding.type_ids
        return row

    tokenizer.no_truncation()
    tokenizer.no_padding()
    result = {"texts": [], "pairs": [], "cuts": []}
    for text in TEXTS:
        row = encoded(tokenizer.encode(text), [text])
        if decode(row["ids"]) != text:
            row["decoded"] = decode(row["ids"])
        result["texts"].append(row)
    for first, second, longest in PAIRS:
        if longest:
            tokenizer.enable_truncation(longest, strategy="longest_first")
        else:
            tokenizer.no_truncation()
        result["pairs"].append(encoded(tokenizer.encode(first, second), [first, second]))
    for text, longest in CUTS:
        tokenizer.enable_truncation(longest)
        result["cuts"].append(encoded(tokenizer.encode(text), [text]))
    tokenizer.no_truncation()
    return result


def save(out, name, tokenizer, **more):
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    tokenizer.no_truncation()
    write_json(os.path.join(folder, "tokenizer.json"), json.loads(tokenizer.to_str()))
    write_json(os.path.join(folder, "expected.json"), record(tokenizer, **more))


def train_byte_bpe(pre_tokenizer, normalizer, vocabulary, specials):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=specials, show_progress=False, min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([CORPUS] * 2, trainer)
    return tokenizer


def gpt2(out):
    from tokenizers import pre_tokenizers, processors

    for name, prefix in (("gpt2", False), ("roberta_like", True)):
        tokenizer = train_byte_bpe(
            pre_tokenizers.ByteLevel(add_prefix_space=prefix), None, 520, GPT2_NAMES)
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=prefix)
        save(out, name, tokenizer)


def llama3(out):
    from tokenizers import AddedToken, Regex, Tokenizer, pre_tokenizers, processors

    split = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3_REGEX), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = train_byte_bpe(split, None, 500, [])
    text = json.loads(tokenizer.to_str())
    text["model"]["ignore_merges"] = True
    # Words that no merge makes: only ignore_merges finds them.
    for word in ("nasty", "\u0120unreachable", "\u00e4\u00b8\u00ad\u00e6\u0138\u0129"):
        text["model"]["vocab"][word] = len(text["model"]["vocab"])
    tokenizer = Tokenizer.from_str(json.dumps(text))
    tokenizer.add_special_tokens([
        AddedToken(name, normalized=False, special=True)
        for name in ("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>")])
    # Not special, with every flag at least once.
    tokenizer.add_tokens([
        AddedToken("<|im_start|>", lstrip=True, rstrip=False, normalized=False),
        AddedToken("<|im_end|>", lstrip=False, rstrip=True, normalized=False),
        AddedToken("test", single_word=True, normalized=True),
        AddedToken("[MASK]", lstrip=True, rstrip=True, normalized=True),
        AddedToken("rock", normalized=True)])
    bos = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(
            single="<|begin_of_text|> $A",
            pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
            special_tokens=[("<|begin_of_text|>", bos)])])
    save(out, "llama3", tokenizer)


def qwen2(out):
    from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers, processors

    split = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN_REGEX), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)])
    tokenizer = train_byte_bpe(split, normalizers.NFC(), 520, [])
    tokenizer.add_special_tokens([
        AddedToken(name, normalized=False, special=True)
        for name in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    tokenizer.post_processor = processors.ByteLevel(
        add_prefix_space=False, trim_offsets=False, use_regex=False)
    save(out, "qwen2", tokenizer)


def bert_tokenizer(vocabulary, lower, strip_accents=None, chinese=True):
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
    from tokenizers import processors

    tokenizer = Tokenizer(models.WordPiece(
        vocabulary, unk_token="[UNK]", max_input_chars_per_word=100,
        continuing_subword_prefix="##"))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=chinese, strip_accents=strip_accents, lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens([
        AddedToken(name, normalized=False, special=True)
        for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])])
    return tokenizer


def bert(out):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    for name, lower, strip, chinese in (
            ("bert_uncased", True, None, True), ("bert_cased", False, None, True),
            ("bert_odd", True, False, False)):
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(
            lowercase=lower, strip_accents=strip, handle_chinese_chars=chinese)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.train_from_iterator([CORPUS] * 2, trainers.WordPieceTrainer(
            vocab_size=620, show_progress=False, continuing_subword_prefix="##",
            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
        vocabulary = tokenizer.get_vocab()
        tokenizer = bert_tokenizer(vocabulary, lower, strip, chinese)
        save(out, name, tokenizer)
        folder = os.path.join(out, name)
        if name == "bert_cased":
            continue  # read from tokenizer.json
        os.remove(os.path.join(folder, "tokenizer.json"))
        with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
            for word in sorted(vocabulary, key=vocabulary.get):
                file.write(word + "\n")
        config = {"tokenizer_class": "BertTokenizer", "do_lower_case": lower,
                  "tokenize_chinese_chars": chinese, "strip_accents": strip}
        write_json(os.path.join(folder, "tokenizer_config.json"), config)


def bert_real(out, path):
    with open(path, encoding="utf-8") as file:
        vocabulary = {line.rstrip("\n"): i for i, line in enumerate(file)}
    folder = os.path.join(out, "bert_real")
    os.makedirs(folder, exist_ok=True)
    write_json(os.path.join(folder, "expected.json"), record(bert_tokenizer(vocabulary, True)))


def byte_names():
    """Bytes in the order of CLIP's vocabulary, as the characters that stand for them."""
    codes = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    names = codes[:]
    for code in range(256):
        if code not in codes:
            codes.append(code)
            names.append(256 + len(names) - 188)
    return {code: chr(name) for code, name in zip(codes, names)}


def clip_vocabulary(merges):
    names = list(byte_names().values())
    entries = names + [name + "</w>" for name in names] + ["".join(merge) for merge in merges]
    entries += ["<|startoftext|>", "<|endoftext|>"]
    return {entry: i for i, entry in enumerate(entries)}


def clip_tokenizer(vocabulary, merges):
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
    from tokenizers import pre_tokenizers, processors

    tokenizer = Tokenizer(models.BPE(
        vocab=vocabulary, merges=merges, continuing_subword_prefix="", end_of_word_suffix="</w>",
        fuse_unk=False, unk_token="<|endoftext|>"))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(CLIP_REGEX), behavior="removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    start, end = "<|startoftext|>", "<|endoftext|>"
    tokenizer.add_special_tokens([
        AddedToken(start, normalized=True, special=True),
        AddedToken(end, normalized=False, special=True)])
    tokenizer.post_processor = processors.RobertaProcessing(
        (end, vocabulary[end]), (start, vocabulary[start]), trim_offsets=False,
        add_prefix_space=False)
    return tokenizer


def clip_text(text):
    return text.replace("</w>", " ").strip()


def clip(out):
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(CLIP_REGEX), behavior="removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.train_from_iterator([CORPUS] * 2, trainers.BpeTrainer(
        vocab_size=700, show_progress=False, end_of_word_suffix="</w>", min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in merges]
    vocabulary = clip_vocabulary(merges)
    save(out, "clip", clip_tokenizer(vocabulary, merges), fix_decode=clip_text)


def slow_clip(folder):
    """What transformers' own (slow) CLIP tokenizer gives, where this version still has one."""
    try:
        import transformers

        tokenizer = transformers.CLIPTokenizer(
            os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt"),
            pad_token="<|endoftext|>")
        if getattr(tokenizer, "is_fast", False) or not hasattr(tokenizer, "bpe"):
            return "no slow CLIPTokenizer in transformers " + transformers.__version__
        return {"fixed": tokenizer.fix_text is not None,
                "ids": [tokenizer(text)["input_ids"] for text in TEXTS]}
    except Exception as error:
        return "failed: " + repr(error)


class OpenClip:
    """OpenCLIP's own tokenizer where it is installed (without ftfy), or the same steps in plain form."""

    def __init__(self, path):
        import regex

        lines = gzip.open(path).read().decode("utf-8").split("\n")
        self.merges = [tuple(line.split()) for line in lines[1:49152 - 256 - 2 + 1]]
        self.vocabulary = clip_vocabulary(self.merges)
        self.names = byte_names()
        self.ranks = {merge: i for i, merge in enumerate(self.merges)}
        self.pattern = regex.compile(r"<\|startoftext\|>|<\|endoftext\|>|" + CLIP_REGEX, regex.IGNORECASE)
        self.regex = regex
        self.origin = "written out"
        try:
            from open_clip import tokenizer as module

            module.ftfy.fix_text = lambda text: text
            own = module.SimpleTokenizer(path)
            self.encode = own.encode
            self.origin = "open_clip"
        except Exception:
            pass

    def word(self, word):
        parts = list(word[:-1]) + [word[-1] + "</w>"]
        while len(parts) > 1:
            ranked = [(self.ranks.get(pair, len(self.ranks)), pair) for pair in zip(parts, parts[1:])]
            rank, pair = min(ranked)
            if rank == len(self.ranks):
                break
            merged, i = [], 0
            while i < len(parts):
                if i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair:
                    merged.append(parts[i] + parts[i + 1])
                    i += 2
                else:
                    merged.append(parts[i])
                    i += 1
            parts = merged
        return parts

    def encode(self, text):
        text = html.unescape(html.unescape(text)).strip()
        text = " ".join(text.split()).strip().lower()
        ids = []
        for token in self.regex.findall(self.pattern, text):
            if token in ("<|startoftext|>", "<|endoftext|>"):
                ids.append(self.vocabulary[token])
                continue
            name = "".join(self.names[byte] for byte in token.encode("utf-8"))
            ids += [self.vocabulary[part] for part in self.word(name)]
        return ids


def openclip_real(out, path):
    tokenizer = OpenClip(path)
    start, end = 49406, 49407
    texts = [[start] + tokenizer.encode(text) + [end] for text in TEXTS]
    cuts = []
    for text, longest in CUTS:
        ids = [start] + tokenizer.encode(text) + [end]
        cuts.append(ids if len(ids) <= longest else ids[:longest - 1] + [end])
    folder = os.path.join(out, "openclip_real")
    os.makedirs(folder, exist_ok=True)
    expected = {"origin": tokenizer.origin, "texts": texts, "cuts": cuts}
    with tempfile.TemporaryDirectory() as files:
        write_json(os.path.join(files, "vocab.json"), tokenizer.vocabulary)
        with open(os.path.join(files, "merges.txt"), "w", encoding="utf-8") as file:
            file.write("#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in tokenizer.merges))
        expected["slow"] = slow_clip(files)
    write_json(os.path.join(folder, "expected.json"), expected)


def record_sentencepiece(model, bos, eos):
    """Plain sentencepiece, without the special tokens of a model's library."""
    rows = []
    for text in TEXTS:
        if "\0" in text:
            rows.append(None)
            continue
        proto = model.encode(text, return_type="proto")
        ids, spans = [], []
        for piece in proto.pieces:
            ids.append(piece.id)
            spans += [piece.begin, piece.end]  # bytes
        rows.append({"ids": ids, "spans": short_spans(spans), "decoded": model.decode(ids)})
        if rows[-1]["decoded"] == text:
            del rows[-1]["decoded"]
    return rows


def record_transformers(make):
    """What transformers gives with its special tokens; a sentence when it cannot be asked."""
    try:
        import transformers

        tokenizer = make(transformers)
        return {
            "version": transformers.__version__,
            "class": type(tokenizer).__name__,
            "texts": [tokenizer(text)["input_ids"] for text in TEXTS],
            "pairs": [
                tokenizer(first, second, truncation="longest_first" if longest else False,
                          max_length=longest or None)["input_ids"]
                for first, second, longest in PAIRS],
            "cuts": [
                tokenizer(text, truncation=True, max_length=longest)["input_ids"]
                for text, longest in CUTS]}
    except Exception as error:
        return "failed: " + repr(error)


def from_folder(kind, folder, **settings):
    """Only the sentencepiece file is there, so that is what transformers must convert."""
    with tempfile.TemporaryDirectory() as files:
        for name in ("spiece.model", "tokenizer.model"):
            if os.path.exists(os.path.join(folder, name)):
                shutil.copy(os.path.join(folder, name), files)
        write_json(os.path.join(files, "tokenizer_config.json"),
                   {"tokenizer_class": kind.__name__, **settings})
        return kind.from_pretrained(files, **settings)


RULES = [("FF21", "41"), ("FF22", "42"), ("FF43", "63"), ("FB01", "66 69"), ("FB03", "66 66 69"),
         ("212B", "C5"), ("65 301", "E9"), ("6F 308", "F6"), ("A0", "20"), ("9", "20"), ("A", "20"),
         ("D", "20"), ("3000", "20"), ("200B", "20"), ("2028", "20"), ("2026", "2E 2E 2E"), ("1", ""),
         ("2", ""), ("7", ""), ("7F", ""), ("338F", "6B 67")]


def t5(out):
    import sentencepiece

    folder = os.path.join(out, "t5")
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as files:
        corpus, rules = os.path.join(files, "corpus.txt"), os.path.join(files, "rules.tsv")
        with open(corpus, "w", encoding="utf-8") as file:
            file.write(CORPUS * 3)
        with open(rules, "w", encoding="utf-8") as file:
            file.write("".join(f"{a}\t{b}\n" for a, b in RULES))
        sentencepiece.SentencePieceTrainer.train(
            input=corpus, model_prefix=os.path.join(files, "m"), model_type="unigram",
            vocab_size=500, hard_vocab_limit=False, character_coverage=0.98,
            normalization_rule_tsv=rules, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, num_threads=1)
        shutil.copy(os.path.join(files, "m.model"), os.path.join(folder, "spiece.model"))
    model = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, "spiece.model"))
    write_json(os.path.join(folder, "expected.json"), {
        "plain": record_sentencepiece(model, False, True),
        "transformers": record_transformers(lambda t: from_folder(t.T5Tokenizer, folder, extra_ids=100))})


def llama2(out):
    import sentencepiece

    folder = os.path.join(out, "llama2")
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as files:
        corpus = os.path.join(files, "corpus.txt")
        with open(corpus, "w", encoding="utf-8") as file:
            file.write(CORPUS * 3)
        sentencepiece.SentencePieceTrainer.train(
            input=corpus, model_prefix=os.path.join(files, "m"), model_type="bpe", vocab_size=600,
            byte_fallback=True, character_coverage=0.98, normalization_rule_name="identity",
            remove_extra_whitespaces=False, split_digits=True, hard_vocab_limit=False,
            allow_whitespace_only_pieces=True, unk_id=0, bos_id=1, eos_id=2, pad_id=-1, num_threads=1)
        shutil.copy(os.path.join(files, "m.model"), os.path.join(folder, "tokenizer.model"))
    path = os.path.join(folder, "tokenizer.model")
    model = sentencepiece.SentencePieceProcessor(model_file=path)
    write_json(os.path.join(folder, "expected.json"), {
        "plain": record_sentencepiece(model, True, False),
        "transformers": record_transformers(
            lambda t: from_folder(t.LlamaTokenizer, folder, legacy=True)),
        "not_legacy": record_transformers(
            lambda t: from_folder(t.LlamaTokenizer, folder, legacy=False))})


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    write_json(os.path.join(out, "texts.json"), {"texts": TEXTS, "pairs": PAIRS, "cuts": CUTS})
    jobs = [gpt2, llama3, qwen2, bert, clip, t5, llama2]
    if len(sys.argv) > 2:
        jobs.append(lambda folder: openclip_real(folder, sys.argv[2]))
    if len(sys.argv) > 3:
        jobs.append(lambda folder: bert_real(folder, sys.argv[3]))
    failed = []
    for job in jobs:
        try:
            job(out)
        except Exception:
            failed.append(traceback.format_exc())
    versions = {}
    for name in ("tokenizers", "transformers", "sentencepiece", "open_clip", "regex"):
        try:
            versions[name] = __import__(name).__version__
        except Exception as error:
            versions[name] = repr(error)
    import unicodedata

    versions["python unicode"] = unicodedata.unidata_version
    write_json(os.path.join(out, "versions.json"), versions)
    total = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(out) for name in names)
    print(versions, total, "bytes")
    if failed:
        print("\n".join(failed))
        with open(os.path.join(out, "failed.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
