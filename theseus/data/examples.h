#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "theseus/base/plugin.h"

namespace theseus::data {

struct Image;  // theseus/data/image.h: sources of text do without tensors

// The named fields of one text example, such as text, or premise and hypothesis.
using Fields = std::map<std::string, std::string>;

// How fields become a model's input: "{field}" stands for a field, "{class}" for the name of the label,
// "{{" and "}}" for braces. See wording.h.
struct Wording {
  std::string first = "{text}";
  std::string second;  // empty: not a pair
  std::string answer;  // what a model should write; empty: nothing
};

// What a folder or file of examples holds, in the order in which it is stored. Contents are read when they
// are asked for, by any number of threads at once.
struct Examples {
  std::string source;                  // name of the layout; set by open_examples
  std::string split;                   // that was opened; empty: there are no splits
  std::vector<std::string> names;      // of each, for messages: a path, FILE:LINE
  std::vector<int64_t> labels;         // of each; empty: unlabelled
  std::vector<std::string> classes;    // name of each label, all different; empty: unknown
  std::vector<std::string> templates;  // zero-shot prompts; {c} stands for the class
  // One of the two. Both throw InputError with the name when an example cannot be read.
  std::function<Image(int64_t)> image;
  std::function<Fields(int64_t)> text;
  // Of texts, unless the user says another. The second is for models that write their answer, such as T5;
  // its `first` is empty where there is no such wording.
  Wording wording;
  Wording prompted = {"", "", ""};

  int64_t size() const { return static_cast<int64_t>(names.size()); }
};

// A split to open: train, without that val, without that what there is. For examples that nothing is measured on.
inline constexpr const char* kNotTest = "not test";

// A split to open: val, without that the only one there is. For examples to choose by, which are neither learnt
// from nor what a result is reported on.
inline constexpr const char* kHeldOut = "held out";

// A split to open: val, without that what "" gives. For a strength to be chosen by.
inline constexpr const char* kValidation = "validation where there is one";

// One way in which examples lie on disk.
struct Source {
  std::string_view summary;
  // Whether an unnamed PATH is to be read this way; null when the layout has to be named. May throw
  // InputError for what cannot be listed.
  std::function<bool(const std::filesystem::path& path)> recognises;
  // `split`: "train", "val", "test", kNotTest, kHeldOut, kValidation, or "" for what there is (where there
  // are several, test; without one, or where its labels are kept back as in GLUE, val). Throws InputError
  // for what is missing, empty or contradictory.
  std::function<Examples(const std::filesystem::path& path, const std::string& split)> open;
  bool general = false;  // gives way to a source that recognises more than this one does
};

std::span<const Plugin<Source>> all_sources();

// "NAME:PATH", or a PATH whose layout one source recognises; what exists under the whole of `words` is a
// PATH, colons or not. Throws InputError for none or several.
Examples open_examples(const std::string& words, const std::string& split);

}  // namespace theseus::data
