#include "theseus/data/text/tokenizer_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/text/unicode.h"

namespace theseus::data::text {
namespace {

[[noreturn]] void refuse(const Json& step, std::string_view kind) {
  throw InputError(c10::str(
      step.where(), ": the ", kind, " ", printable(step.dump("type")), " is not implemented"));
}

// {"Regex": "..."} or {"String": "..."}.
std::shared_ptr<const Pattern> read_pattern(const Json& step) {
  const Json pattern = step.object("pattern");
  require_known(pattern, {"Regex", "String"});
  const std::string expression =
      pattern.has("Regex") ? pattern.text("Regex") : Pattern::quoted(pattern.text("String"));
  return std::make_shared<const Pattern>(expression, pattern.where());
}

Normaliser replace_step(const Json& step) {
  require_known(step, {"type", "pattern", "content"});
  return [pattern = read_pattern(step), by = step.text("content")](const Aligned& in) {
    return replaced(in, pattern->matches(in.text), by);
  };
}

void append_normalisers(const Json& step, std::vector<Normaliser>& out) {
  const std::string type = step.text("type");
  const std::pair<std::string_view, Form> forms[] = {
      {"NFC", Form::kNfc}, {"NFD", Form::kNfd}, {"NFKC", Form::kNfkc}, {"NFKD", Form::kNfkd}};
  for (const auto& entry : forms) {
    if (type == entry.first) {
      out.push_back([form = entry.second](const Aligned& in) { return unicode_form(in, form); });
      return;
    }
  }
  if (type == "Sequence") {
    for (const Json& part : objects(step, "normalizers")) {
      append_normalisers(part, out);
    }
  } else if (type == "Lowercase") {
    out.push_back([](const Aligned& in) { return lower_case(in); });
  } else if (type == "StripAccents") {
    out.push_back([](const Aligned& in) { return without(in, is_mark); });
  } else if (type == "Replace") {
    out.push_back(replace_step(step));
  } else if (type == "BertNormalizer") {
    out.push_back([settings = read_bert_settings(step)](const Aligned& in) {
      return bert_form(in, settings);
    });
  } else {
    refuse(step, "normalizer");
  }
}

Matches read_behavior(const Json& step) {
  const std::pair<std::string_view, Matches> known[] = {
      {"Removed", Matches::kRemoved},
      {"Isolated", Matches::kIsolated},
      {"MergedWithPrevious", Matches::kMergedWithPrevious},
      {"MergedWithNext", Matches::kMergedWithNext},
      {"Contiguous", Matches::kContiguous}};
  const std::string name = step.text("behavior");
  for (const auto& entry : known) {
    if (entry.first == name) {
      return entry.second;
    }
  }
  throw InputError(
      c10::str(step.where("behavior"), ": '", printable(name), "' is not implemented"));
}

void append_byte_level(const Json& step, SplitSteps& out) {
  require_known(step, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (step.boolean("add_prefix_space", true)) {
    out.splitters.push_back(add_prefix_spaces);
  }
  if (step.boolean("use_regex", true)) {
    out.splitters.push_back(split_like_gpt2());
  }
  out.bytes = true;
}

void append_splitters(const Json& step, SplitSteps& out) {
  const std::string type = step.text("type");
  require(
      !out.bytes, step.where(), ": ", printable(type),
      " after ByteLevel would split the names of bytes, which is not implemented");
  if (type == "Sequence") {
    for (const Json& part : objects(step, "pretokenizers")) {
      append_splitters(part, out);
    }
  } else if (type == "ByteLevel") {
    append_byte_level(step, out);
  } else if (type == "Split") {
    require_known(step, {"type", "pattern", "behavior", "invert"});
    out.splitters.push_back(
        split_at(read_pattern(step), read_behavior(step), step.boolean("invert", false)));
  } else if (type == "Digits") {
    require_known(step, {"type", "individual_digits"});
    const auto matches =
        step.boolean("individual_digits", false) ? Matches::kIsolated : Matches::kContiguous;
    const auto digits = std::make_shared<const Pattern>("\\p{N}", step.where());
    out.splitters.push_back(split_at(digits, matches, false));
  } else if (type == "BertPreTokenizer") {
    out.splitters.push_back(split_like_bert);
  } else {
    refuse(step, "pre_tokenizer");
  }
}

// [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, ...]
std::vector<Slot> read_slots(const Json& step, std::string_view key) {
  std::vector<Slot> slots;
  for (const Json& item : objects(step, key)) {
    require_known(item, {"SpecialToken", "Sequence"});
    const bool added = item.has("SpecialToken");
    const Json body = item.object(added ? "SpecialToken" : "Sequence");
    const int64_t type = body.integer("type_id", 0);
    const std::string id = body.text("id");
    if (!added) {
      require(id == "A" || id == "B", body.where("id"), ": a sequence is A or B, found ", id);
      slots.push_back({id == "A" ? Slot::Kind::kFirst : Slot::Kind::kSecond, 0, type});
      continue;
    }
    for (const int64_t token : step.object("special_tokens").object(id).integers("ids")) {
      slots.push_back({Slot::Kind::kAdded, token, type});
    }
  }
  return slots;
}

void require_slots(const std::vector<Slot>& slots, size_t seconds, const Json& step) {
  const auto count = [&slots](Slot::Kind kind) {
    return static_cast<size_t>(std::count_if(
        slots.begin(), slots.end(), [kind](const Slot& slot) { return slot.kind == kind; }));
  };
  require(
      count(Slot::Kind::kFirst) == 1 && count(Slot::Kind::kSecond) == seconds, step.where(),
      ": a template with ", count(Slot::Kind::kFirst), " times A and ", count(Slot::Kind::kSecond),
      " times B is not implemented");
}

void read_template(const Json& step, Pipeline& pipeline) {
  require_known(step, {"type", "single", "pair", "special_tokens"});
  pipeline.layout.single = read_slots(step, "single");
  require_slots(pipeline.layout.single, 0, step);
  pipeline.layout.pair = step.has("pair") ? read_slots(step, "pair") : std::vector<Slot>();
  if (!pipeline.layout.pair.empty()) {
    require_slots(pipeline.layout.pair, 1, step);
  }
}

// ["</s>", 2]
Slot read_named(const Json& step, std::string_view key) {
  require(step.has(key), step.where(key), ": expected [name, id]");
  const auto& pair = step.raw().at(std::string(key));
  require(
      pair.is_array() && pair.size() == 2 && pair[1].is_number_integer(), step.where(key),
      ": expected [name, id], found ", printable(step.dump(key)));
  return {Slot::Kind::kAdded, pair[1].get<int64_t>(), 0};
}

// <s> A </s> </s> B </s>, or BERT's [CLS] A [SEP] B [SEP] with types.
void read_fixed_layout(const Json& step, bool roberta, Pipeline& pipeline) {
  require_known(step, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
  const Slot cls = read_named(step, "cls");
  const Slot sep = read_named(step, "sep");
  const Slot first = {Slot::Kind::kFirst, 0, 0};
  const int64_t type = roberta ? 0 : 1;
  const Slot second = {Slot::Kind::kSecond, 0, type};
  const Slot last = {Slot::Kind::kAdded, sep.id, type};
  pipeline.layout.single = {cls, first, sep};
  pipeline.layout.pair = roberta ? std::vector<Slot>{cls, first, sep, sep, second, last}
                                 : std::vector<Slot>{cls, first, sep, second, last};
  if (roberta && step.boolean("trim_offsets", true)) {
    pipeline.trims.push_back(step.boolean("add_prefix_space", true));
  }
}

void append_post(const Json& step, Pipeline& pipeline) {
  const std::string type = step.text("type");
  if (type == "Sequence") {
    for (const Json& part : objects(step, "processors")) {
      append_post(part, pipeline);
    }
  } else if (type == "ByteLevel") {
    require_known(step, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    if (step.boolean("trim_offsets", true)) {
      pipeline.trims.push_back(step.boolean("add_prefix_space", true));
    }
  } else if (type == "TemplateProcessing") {
    read_template(step, pipeline);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    read_fixed_layout(step, type == "RobertaProcessing", pipeline);
  } else {
    refuse(step, "post_processor");
  }
}

}  // namespace

std::string model_type(const Json& file) {
  const Json model = file.object("model");
  return model.text("type", model.has("merges") ? "BPE" : "WordPiece");
}

void require_known(const Json& object, const std::vector<std::string_view>& known) {
  for (const std::string& key : object.keys()) {
    const bool is_known = std::find(known.begin(), known.end(), key) != known.end();
    require(
        is_known || !object.has(key), object.where(), ": '", printable(key),
        "' is not implemented");
  }
}

std::vector<Json> objects(const Json& parent, std::string_view key) {
  std::vector<Json> made;
  if (!parent.has(key)) {
    return made;
  }
  const auto& list = parent.raw().at(std::string(key));
  require(list.is_array(), parent.where(key), ": expected a list");
  for (size_t i = 0; i < list.size(); ++i) {
    require(list[i].is_object(), parent.where(key), ": expected a list of objects");
    made.push_back(Json::parse(list[i].dump(), c10::str(parent.where(key), "[", i, "]")));
  }
  return made;
}

std::vector<Normaliser> read_normalisers(const Json& file) {
  std::vector<Normaliser> made;
  if (file.has("normalizer")) {
    append_normalisers(file.object("normalizer"), made);
  }
  return made;
}

BertSettings read_bert_settings(const Json& step) {
  require_known(step, {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  BertSettings settings;
  settings.clean = step.boolean("clean_text", true);
  settings.ideographs = step.boolean("handle_chinese_chars", true);
  settings.lower = step.boolean("lowercase", true);
  settings.strip_accents = step.boolean("strip_accents", settings.lower);
  return settings;
}

SplitSteps read_splitters(const Json& file) {
  SplitSteps made;
  if (file.has("pre_tokenizer")) {
    append_splitters(file.object("pre_tokenizer"), made);
  }
  return made;
}

void read_post_processor(const Json& file, Pipeline& pipeline) {
  if (file.has("post_processor")) {
    append_post(file.object("post_processor"), pipeline);
  }
}

void read_steps(const Json& file, const TokenSettings& settings, Pipeline& pipeline) {
  require_known(
      file, {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
             "post_processor", "decoder", "model"});
  for (const Json& token : objects(file, "added_tokens")) {
    pipeline.added.push_back(read_added_token(token, token.integer("id")));
  }
  join_added(pipeline.added, settings.added, file.where());
  pipeline.normalisers = read_normalisers(file);
  pipeline.splitters = read_splitters(file).splitters;
  read_post_processor(file, pipeline);
  const auto id = [&](const std::string& role) {
    const std::string name = settings.name(role, "");
    return name.empty() ? std::nullopt : find_token(*pipeline.vocabulary, pipeline.added, name);
  };
  pipeline.end = id("eos_token").value_or(id("sep_token").value_or(-1));
  const std::optional<int64_t> pad = id("pad_token");
  if (pad) {
    pipeline.padding = *pad;
  } else if (file.has("padding")) {
    pipeline.padding = file.object("padding").integer("pad_id", 0);
  } else {
    pipeline.padding = std::max<int64_t>(pipeline.end, 0);
  }
}

}  // namespace theseus::data::text
