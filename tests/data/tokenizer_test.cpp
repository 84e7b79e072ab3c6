#include "theseus/data/tokenizer.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "theseus/base/text.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::tests {
namespace {

namespace fs = std::filesystem;
using data::Encoding;
using data::open_tokenizer;
using data::Tokenizer;
using nlohmann::json;

std::vector<std::string> names() {
  return {"gpt2",       "roberta_like", "llama3", "qwen2", "bert_uncased",
          "bert_cased", "bert_odd",     "clip",   "t5",    "llama2"};
}

std::string repeated(std::string_view what, size_t bytes) {
  std::string made;
  while (made.size() < bytes) {
    made.append(what);
  }
  return made;
}

// Bytes of every kind, many of them not UTF-8.
std::string noise(unsigned seed, size_t size) {
  std::mt19937 random(seed);
  const std::vector<std::string> parts = {
      "a",
      "the ",
      " ",
      "\n",
      "'s",
      "\xC3\xA9",
      "\xCC\x81",
      "\xF0\x9F\x98\x80",
      "\xE2\x80\x8D",
      "\xFF",
      "\xC3",
      "\xE4\xB8",
      "\xED\xA0\x80",
      "\xE6\x88\x91",
      "12",
      "&amp;",
      "<|endoftext|>",
      "[MASK]",
      "</s>",
      "\xCE\xA3",
      std::string(1, '\0'),
      "\xF4\x90\x80\x80",
      "\xE1\x84\x92"};
  std::string made;
  while (made.size() < size) {
    made.append(parts[random() % parts.size()]);
  }
  return made;
}

// One byte-level tokenizer.json with a part replaced.
void write_changed(const ScratchDir& to, const std::string& path, const json& value) {
  json file = json::parse(read_bytes(kTokenizerFixtures / "gpt2/tokenizer.json"));
  file[json::json_pointer(path)] = value;
  to.file("tokenizer.json", file.dump());
}

std::string refusal(const std::string& path, const json& value) {
  const ScratchDir directory;
  write_changed(directory, path, value);
  return error_of([&] { open_tokenizer(directory.path()); });
}

TEST(Tokenizer, ByteLevelsDecodeToTheText) {
  const json texts = json::parse(read_bytes(kTokenizerFixtures / "texts.json")).at("texts");
  for (const std::string name : {"gpt2", "llama3"}) {
    const auto tokenizer = open_tokenizer(kTokenizerFixtures / name);
    for (const json& item : texts) {
      const auto text = item.get<std::string>();
      const bool special =
          text.find("<|") != std::string::npos || text.find("[MASK]") != std::string::npos;
      if (!special) {
        EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, nullptr, 0).ids), text) << name;
      }
    }
    EXPECT_EQ(
        tokenizer->decode(tokenizer->encode("a\xFF\xC3(", nullptr, 0).ids),
        "a\xEF\xBF\xBD\xEF\xBF\xBD(");
  }
}

// In order, at characters, and with nothing left out but what a tokenizer drops.
TEST(Tokenizer, SpansCoverTheText) {
  for (const std::string& name : names()) {
    const auto tokenizer = open_tokenizer(kTokenizerFixtures / name);
    const bool covers = name == "gpt2" || name == "qwen2";
    for (unsigned seed = 0; seed < 20; ++seed) {
      const std::string text = noise(seed, 200);
      SCOPED_TRACE(c10::str(name, ": ", printable(text, 400)));
      const Encoding found = tokenizer->encode(text, nullptr, 0);
      ASSERT_EQ(found.ids.size(), found.spans.size());
      ASSERT_EQ(found.ids.size(), found.types.size());
      int64_t reached = 0;
      for (size_t i = 0; i < found.ids.size(); ++i) {
        EXPECT_GE(found.ids[i], 0);
        EXPECT_LT(found.ids[i], tokenizer->vocabulary());
        const auto span = found.spans[i];
        ASSERT_LE(span.first, span.second);
        ASSERT_LE(span.second, static_cast<int64_t>(text.size()));
        EXPECT_TRUE(!covers || span.first <= reached) << "a hole before " << span.first;
        reached = std::max(reached, span.second);
      }
      EXPECT_TRUE(!covers || reached == static_cast<int64_t>(text.size()));
    }
  }
}

TEST(Tokenizer, InvalidBytesAreReplaced) {
  const auto tokenizer = open_tokenizer(kTokenizerFixtures / "gpt2");
  const Encoding broken = tokenizer->encode("a\xF0\x9F\x98z", nullptr, 0);
  const Encoding whole = tokenizer->encode("a\xEF\xBF\xBDz", nullptr, 0);
  EXPECT_EQ(broken.ids, whole.ids);
  EXPECT_EQ(broken.spans[1], (std::pair<int64_t, int64_t>(1, 4)));
  EXPECT_EQ(broken.spans.back(), (std::pair<int64_t, int64_t>(4, 5)));
}

TEST(Tokenizer, CutsKeepWhatIsAdded) {
  const std::string text = repeated("a photo of a cat and a dog ", 2000);
  for (const std::string& name : names()) {
    SCOPED_TRACE(name);
    const auto tokenizer = open_tokenizer(kTokenizerFixtures / name);
    const Encoding full = tokenizer->encode(text, nullptr, 0);
    for (const int64_t longest : {4, 77}) {
      const Encoding cut = tokenizer->encode(text, nullptr, longest);
      EXPECT_EQ(static_cast<int64_t>(cut.ids.size()), longest);
      EXPECT_TRUE(cut.truncated);
      EXPECT_EQ(cut.ids.front(), full.ids.front());
      const bool ends = full.spans.back() == std::pair<int64_t, int64_t>(0, 0);
      EXPECT_TRUE(!ends || cut.ids.back() == full.ids.back());
    }
  }
}

TEST(Tokenizer, PairsAreCutAtTheLonger) {
  const auto tokenizer = open_tokenizer(kTokenizerFixtures / "bert_uncased");
  const std::string_view second = "b b b";
  const Encoding found = tokenizer->encode("a a a a a a a a", &second, 10);
  EXPECT_EQ(std::count(found.types.begin(), found.types.end(), 1), 4);  // three and [SEP]
  EXPECT_EQ(found.ids.size(), 10u);
  expect_parts(error_of([&] { tokenizer->encode("a", &second, 2); }), "at most 2", "adds 3");
}

TEST(Tokenizer, Roles) {
  const auto bert = open_tokenizer(kTokenizerFixtures / "bert_uncased");
  EXPECT_EQ(bert->padding(), 0);
  EXPECT_EQ(bert->end(), 3);
  EXPECT_EQ(bert->words(), "WordPiece, 620, vocab.txt");
  const auto t5 = open_tokenizer(kTokenizerFixtures / "t5");
  EXPECT_EQ(t5->padding(), 0);
  EXPECT_EQ(t5->end(), 1);
  const auto clip = open_tokenizer(kTokenizerFixtures / "clip");
  EXPECT_EQ(clip->end(), 874);
  EXPECT_EQ(clip->padding(), 874);
  EXPECT_EQ(clip->words(), "CLIP's BPE, 875, tokenizer.json");
  const auto qwen = open_tokenizer(kTokenizerFixtures / "qwen2");
  EXPECT_EQ(qwen->vocabulary(), 523);
  EXPECT_EQ(qwen->words(), "byte-level BPE, 523, tokenizer.json");
}

TEST(Tokenizer, T5Sentinels) {
  const auto tokenizer = open_tokenizer(kTokenizerFixtures / "t5");
  const int64_t size = tokenizer->vocabulary();
  const Encoding found = tokenizer->encode("a photo <extra_id_0> a <extra_id_99>", nullptr, 0);
  ASSERT_GT(found.ids.size(), 4u);
  EXPECT_EQ(std::count(found.ids.begin(), found.ids.end(), size - 1), 1);
  EXPECT_EQ(found.ids[found.ids.size() - 2], size - 100);
  EXPECT_EQ(found.ids.back(), 1);
  EXPECT_EQ(found.spans[found.spans.size() - 2], (std::pair<int64_t, int64_t>(23, 36)));
  EXPECT_EQ(tokenizer->decode(found.ids), "a photo a");
  const Encoding unknown = tokenizer->encode("<extra_id_100>", nullptr, 0);
  EXPECT_LT(*std::max_element(unknown.ids.begin(), unknown.ids.end()), size - 100);
}

// However long a run of unknown characters is, it is one token.
TEST(Tokenizer, LongRunsOfUnknownCharacters) {
  const auto tokenizer = open_tokenizer(kTokenizerFixtures / "t5");
  const auto runs = [&](size_t bytes) {
    const std::string run = repeated("\xE2\x9A\x80", bytes);
    const Encoding found = tokenizer->encode("a " + run + " a" + run + "a", nullptr, 0);
    EXPECT_EQ(
        found.spans[found.spans.size() - 3].second - found.spans[found.spans.size() - 3].first,
        static_cast<int64_t>(run.size()));
    return found.ids;
  };
  EXPECT_EQ(runs(30'000), runs(300));
}

// Of this thread on its processor: others that use the machine do not count.
double processor_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double fastest(const Tokenizer& tokenizer, const std::string& text) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5; ++i) {
    const auto begin = processor_seconds();
    EXPECT_FALSE(tokenizer.encode(text, nullptr, 0).ids.empty());
    best = std::min(best, processor_seconds() - begin);
  }
  return best;
}

// Eight times the text takes about eight times as long; with quadratic steps it would be 64 times.
TEST(Tokenizer, LongTextsTakeLinearTime) {
  const std::vector<std::string> patterns = {
      "a", "ab", " ", "\n", "<", "'", "\xCC\x81\xCC\xA3", "\xE6\x88\x91", "\xFF", "the "};
  for (const std::string name : {"gpt2", "llama3", "qwen2", "bert_uncased", "clip", "t5"}) {
    const auto tokenizer = open_tokenizer(kTokenizerFixtures / name);
    for (const std::string& pattern : patterns) {
      const double once = fastest(*tokenizer, "x" + repeated(pattern, 6'000));
      const double eight = fastest(*tokenizer, "x" + repeated(pattern, 48'000));
      EXPECT_LT(eight, 32 * once + 2e-3) << name << " with " << printable(pattern);
    }
  }
}

TEST(Tokenizer, AMegabyteOfOneWord) {
  for (const std::string& name : names()) {
    const auto tokenizer = open_tokenizer(kTokenizerFixtures / name);
    const Encoding found = tokenizer->encode(std::string(1'000'000, 'x'), nullptr, 512);
    EXPECT_TRUE(found.truncated || found.ids.size() <= 3) << name;
  }
}

TEST(Tokenizer, RefusesWhatIsNotImplemented) {
  expect_parts(refusal("/model/dropout", 0.1), "model.dropout", "random merges");
  expect_parts(refusal("/normalizer", {{"type", "Nmt"}}), "normalizer", "Nmt", "not implemented");
  expect_parts(refusal("/pre_tokenizer", {{"type", "Metaspace"}}), "pre_tokenizer", "Metaspace");
  expect_parts(refusal("/post_processor", {{"type", "Odd"}}), "post_processor", "Odd");
  expect_parts(refusal("/decoder", {{"type", "Metaspace"}}), "decoder", "Metaspace");
  expect_parts(refusal("/model/new_setting", true), "new_setting", "not implemented");
  expect_parts(refusal("/pre_tokenizer/new_setting", true), "new_setting", "not implemented");
  expect_parts(refusal("/new_part", {{"type", "x"}}), "new_part");
  expect_parts(refusal("/model/continuing_subword_prefix", "##"), "continuing_subword_prefix");
  expect_parts(refusal("/model/type", "Unigram"), "Unigram", "spiece.model");
  expect_parts(refusal("/model/byte_fallback", true), "byte_fallback", "tokenizer.model");
  const auto split = [](const std::string& expression) {
    return refusal(
        "/pre_tokenizer",
        {{"type", "Sequence"},
         {"pretokenizers",
          json::array(
              {{{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}},
               {{"type", "ByteLevel"}}})}});
  };
  expect_parts(split("(a"), "regular expression", "(a");
  expect_parts(split("[a&&b]"), "&& in a class");
  expect_parts(split("\\h+"), "\\h");
}

TEST(Tokenizer, RefusesBrokenFiles) {
  expect_parts(refusal("/model/merges/0", "a b c"), "merges", "a b c");
  expect_parts(refusal("/model/merges/0", {"a"}), "merges");
  expect_parts(refusal("/model/merges/0", {"zzz", "a"}), "'zzz' is not in the vocabulary");
  expect_parts(refusal("/model/vocab/a", -1), "'a' has the id -1");
  expect_parts(refusal("/model/vocab/a", 1), "the same id 1");
  expect_parts(refusal("/model/vocab/a", "x"), "is no integer");
  expect_parts(refusal("/model/vocab", 3), "vocab");
  const ScratchDir directory;
  expect_parts(error_of([&] { open_tokenizer(directory.path()); }), "tokenizer.json", "vocab.txt");
  expect_parts(error_of([&] { open_tokenizer(directory / "none"); }), "is no directory");
  directory.file("spiece.model", "not a model");
  expect_parts(error_of([&] { open_tokenizer(directory.path()); }), "not a sentencepiece model");
  const ScratchDir other;
  other.file("bpe_simple_vocab_16e6.txt.gz", "not gzip");
  error_of([&] { open_tokenizer(other.path()); });
  const ScratchDir words;
  words.file("vocab.txt", "a\nb\n");
  expect_parts(error_of([&] { open_tokenizer(words.path()); }), "[PAD]", "not in the vocabulary");
}

// Cut or changed anywhere, a model is refused or works; nothing is read outside it.
TEST(Tokenizer, DamagedPieceModels) {
  const std::vector<std::pair<std::string, std::string>> models = {
      {"t5", "spiece.model"}, {"llama2", "tokenizer.model"}};
  std::mt19937 random(7);
  size_t refused = 0;
  for (const auto& model : models) {
    const std::string whole = read_bytes(kTokenizerFixtures / model.first / model.second);
    for (size_t i = 0; i < 150; ++i) {
      const ScratchDir directory;
      std::string bytes = i % 2 == 0 ? whole.substr(0, random() % whole.size()) : whole;
      for (int j = 0; i % 2 == 1 && j < 3; ++j) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      directory.file(model.second, bytes);
      try {
        open_tokenizer(directory.path())->encode(noise(static_cast<unsigned>(i), 300), nullptr, 0);
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100u);
}

TEST(Tokenizer, TwoKindsOfFilesAreAmbiguousWithoutTokenizerJson) {
  const ScratchDir directory;
  directory.file("vocab.txt", read_bytes(kTokenizerFixtures / "bert_uncased/vocab.txt"));
  directory.file("spiece.model", read_bytes(kTokenizerFixtures / "t5/spiece.model"));
  expect_parts(
      error_of([&] { open_tokenizer(directory.path()); }), "two kinds", "sentencepiece",
      "wordpiece");
  directory.file("tokenizer.json", read_bytes(kTokenizerFixtures / "gpt2/tokenizer.json"));
  EXPECT_EQ(open_tokenizer(directory.path())->words(), "byte-level BPE, 520, tokenizer.json");
}

TEST(Tokenizer, EveryKindSaysWhatItIs) {
  for (const auto& plugin : data::all_tokenizers()) {
    EXPECT_FALSE(plugin.object->summary.empty()) << plugin.name;
    const ScratchDir empty;
    EXPECT_EQ(plugin.object->find_files(empty.path()), nullptr) << plugin.name;
  }
}

TEST(Tokenizer, DecodeRefusesUnknownIds) {
  const auto tokenizer = open_tokenizer(kTokenizerFixtures / "gpt2");
  expect_parts(error_of([&] { tokenizer->decode({520}); }), "has no token 520");
  expect_parts(error_of([&] { tokenizer->decode({-1}); }), "has no token -1");
}

}  // namespace
}  // namespace theseus::tests
