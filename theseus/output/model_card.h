#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace theseus::output {

constexpr const char* kCardFile = "README.md";

// The library that loads a family's models, in the Hugging Face Hub's word: transformers, open_clip,
// timm.
std::string library_of(const std::string& family);

// A model card in Markdown with a YAML header. `provenance` is an object with any keys, shown in their
// order; these are read besides: source, tuned and target (a text, or an object with name or path),
// alpha, version, command (a text, or a list of arguments), kind ("finetune": it was trained). Values cannot break out of their place:
// they are escaped. `library` is library_of(family), or "peft" for an adapter.
std::string model_card(const nlohmann::ordered_json& provenance, const std::string& library);

// The card as `directory`/README.md, which appears whole or not at all.
void write_model_card(
    const std::filesystem::path& directory,
    const nlohmann::ordered_json& provenance,
    const std::string& library);

}  // namespace theseus::output
