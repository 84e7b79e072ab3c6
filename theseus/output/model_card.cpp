#include "theseus/output/model_card.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/model/family.h"
#include "theseus/output/markdown.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using Object = nlohmann::ordered_json;

std::string plain_text(const Object& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Object::error_handler_t::replace);
}

// "", when there is no such key.
std::string word(const Object& provenance, const char* key) {
  if (!provenance.contains(key) || provenance.at(key).is_null()) {
    return {};
  }
  const auto& value = provenance.at(key);
  for (const char* inner : {"name", "path"}) {
    if (value.is_object() && value.contains(inner)) {
      return plain_text(value.at(inner));
    }
  }
  return value.is_structured() ? std::string() : plain_text(value);
}

// .../models--org--name/snapshots/... is org/name. "" for any other path.
std::string hub_name(const fs::path& path) {
  constexpr std::string_view kCache = "models--";
  for (const auto& part : path) {
    auto name = part.string();
    if (name.starts_with(kCache)) {
      name.erase(0, kCache.size());
      const auto split = name.find("--");
      return split == std::string::npos
                 ? name
                 : c10::str(name.substr(0, split), "/", name.substr(split + 2));
    }
  }
  return {};
}

// The Hub takes only its own names, and refuses a card with a path: "org/name" or the last part.
std::string short_name(const std::string& text) {
  if (const auto hub = hub_name(text); !hub.empty()) {
    return hub;
  }
  const bool name = std::count(text.begin(), text.end(), '/') <= 1 && !text.starts_with('/') &&
                    !text.starts_with('.') && !text.ends_with('/');
  if (name) {
    return text;
  }
  auto path = fs::path(text).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

std::string header(const Object& provenance, const std::string& library) {
  std::string text = "---\n";
  if (const auto base = short_name(word(provenance, "target")); !base.empty()) {
    text += c10::str("base_model: ", yaml_text(base), "\n");
    text += c10::str("base_model_relation: ", library == "peft" ? "adapter" : "finetune", "\n");
  }
  return c10::str(text, "library_name: ", yaml_text(library), "\ntags:\n- theseus\n---\n");
}

// "**name**", or `otherwise` where the provenance does not say.
std::string shown(const Object& provenance, const char* key, const std::string& otherwise) {
  const auto text = short_name(word(provenance, key));
  return text.empty() ? otherwise : c10::str("**", markdown_text(text), "**");
}

bool is_trained(const Object& provenance) {
  return word(provenance, "kind") == "finetune";
}

std::string training_story(const Object& provenance, const std::string& library) {
  return c10::str(
      "This is ", library == "peft" ? "a LoRA adapter for " : "",
      shown(provenance, "target", "a model"), ", fine-tuned by theseus ",
      markdown_text(word(provenance, "theseus")),
      ". The licences of the model and of the data apply.\n");
}

std::string story(const Object& provenance, const std::string& library) {
  if (is_trained(provenance)) {
    return training_story(provenance, library);
  }
  const auto version = word(provenance, "version");
  const auto alpha = word(provenance, "alpha");
  const auto target = shown(provenance, "target", "a model");
  return c10::str(
      "This is ", library == "peft" ? "a LoRA adapter for " : "", target,
      ". It holds the fine-tune that made ", shown(provenance, "tuned", "another model"), " from ",
      shown(provenance, "source", "its base model"), ", carried over by theseus",
      version.empty() ? "" : " ", markdown_text(version), ".\n\n",
      "The target was not trained: what fine-tuning changed in the source was moved into the "
      "target's activation spaces and added to its weights",
      alpha.empty() ? "" : ", times ", markdown_text(alpha),
      ". Check it on your task before you rely on it: how much of the skill arrives depends on how "
      "alike the two models are. The licences of the target and of the fine-tuned model apply.\n");
}

bool is_plain_list(const Object& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const Object& item) {
           return !item.is_structured();
         });
}

// One row for each value; long lists and large objects by their size, they are in the provenance file.
void add_rows(const std::string& key, const Object& value, std::string& table) {
  constexpr size_t kMost = 24;
  if (value.is_object() && value.size() <= kMost) {
    for (const auto& [inner, item] : value.items()) {
      add_rows(key.empty() ? inner : key + "." + inner, item, table);
    }
    return;
  }
  std::string cell;
  if (is_plain_list(value) && value.size() <= kMost) {
    for (const auto& item : value) {
      cell.append(cell.empty() ? "" : ", ").append(plain_text(item));
    }
  } else {
    cell = value.is_structured() ? c10::str(value.size(), " entries") : plain_text(value);
  }
  table += c10::str("| ", markdown_text(key), " | ", markdown_text(cell), " |\n");
}

// An argument as a shell takes it.
std::string quoted(const std::string& argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
    return argument;
  }
  std::string result = "'";
  for (const char character : argument) {
    result += character == '\'' ? std::string("'\\''") : std::string(1, character);
  }
  return result + "'";
}

std::string command_text(const Object& command) {
  if (!command.is_array()) {
    return plain_text(command);
  }
  std::string result;
  for (const auto& argument : command) {
    result.append(result.empty() ? "" : " ").append(quoted(plain_text(argument)));
  }
  return result;
}

// What a reader should know; empty without notes.
std::string notes_section(const Object& provenance) {
  const auto notes = provenance.value("notes", Object::array());
  std::string text;
  for (const auto& note : notes.is_array() ? notes : Object::array()) {
    text += c10::str("- ", markdown_text(plain_text(note)), "\n");
  }
  return text.empty() ? "" : "\n## What to know\n\n" + text;
}

}  // namespace

std::string library_of(const std::string& family) {
  const auto& found = find_plugin(model::all_families(), "model family", family);
  if (found.config_file == "open_clip_config.json") {
    return "open_clip";
  }
  return found.key == "architecture" ? "timm" : "transformers";
}

std::string model_card(const Object& provenance, const std::string& library) {
  require<InternalError>(provenance.is_object(), "the provenance is not an object");
  std::string table = "| | |\n|---|---|\n";
  for (const auto& [key, value] : provenance.items()) {
    if (key != "command" && key != "notes") {
      add_rows(key, value, table);
    }
  }
  auto card = c10::str(
      header(provenance, library), "\n# ", shown(provenance, "target", "A model"),
      is_trained(provenance) ? ", fine-tuned" : " with a fine-tune carried over", "\n\n",
      story(provenance, library), "\n## How it was made\n\n", table);
  card += notes_section(provenance);
  if (provenance.contains("command") && !provenance.at("command").is_null()) {
    card.append("\n## How to reproduce it\n\n");
    card.append(markdown_code(command_text(provenance.at("command"))));
  }
  return card;
}

void write_model_card(
    const fs::path& directory, const Object& provenance, const std::string& library) {
  const auto text = model_card(provenance, library);
  AtomicFile file(directory / kCardFile, static_cast<int64_t>(text.size()));
  file.append(text);
  file.commit();
}

}  // namespace theseus::output
