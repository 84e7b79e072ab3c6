#include "theseus/cli/description.h"

#include <algorithm>
#include <map>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/base/units.h"

namespace theseus::cli {
namespace {

using Object = nlohmann::ordered_json;

Object describe_files(const checkpoint::Checkpoint& checkpoint) {
  std::map<std::string, int64_t> dtypes;
  for (const auto& info : checkpoint.tensors()) {
    dtypes[info.dtype] += info.elements();
  }
  Object files = Object::array();
  for (const auto& file : checkpoint.files()) {
    files.push_back(file.filename().string());
  }
  return {
      {"bytes", checkpoint.bytes()},
      {"tensors", checkpoint.tensors().size()},
      {"dtypes", dtypes},
      {"files", files},
      {"notes", checkpoint.notes()}};
}

Object describe_tower(const model::Tower& tower) {
  Object object = {{"name", tower.name}};
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, int64_t>>{
           {"blocks", tower.blocks},
           {"width", tower.width},
           {"heads", tower.heads},
           {"key_value_heads", tower.key_value_heads},
           {"head_dim", tower.head_dim},
           {"mlp", tower.mlp},
           {"vocabulary", tower.vocabulary},
           {"positions", tower.positions},
           {"image", tower.image},
           {"patch", tower.patch}}) {
    if (value > 0) {
      object[key] = value;
    }
  }
  return object;
}

// Tensors that a torch file stores as one, by its own account.
std::vector<model::Tie> shared_storages(const checkpoint::Checkpoint& checkpoint) {
  std::map<std::pair<size_t, std::string>, std::string> first;
  std::vector<model::Tie> ties;
  for (const auto& info : checkpoint.tensors()) {
    if (!info.storage.empty()) {
      const auto [at, fresh] = first.try_emplace({info.file, info.storage}, info.name);
      if (!fresh) {
        ties.push_back({info.name, at->second});
      }
    }
  }
  return ties;
}

Object describe_ties(const std::vector<model::Tie>& ties) {
  Object list = Object::array();
  for (const auto& tie : ties) {
    list.push_back({{"name", tie.name}, {"tied_to", tie.tied_to}});
  }
  return list;
}

std::string list_text(const Object& list, const char* separator) {
  std::string text;
  for (const auto& item : list) {
    text.append(text.empty() ? "" : separator)
        .append(item.is_string() ? item.get<std::string>() : item.dump());
  }
  return text;
}

std::string tower_text(const Object& tower) {
  std::string text;
  for (const auto& [key, value] : tower.items()) {
    const bool same = key == "key_value_heads" && value == tower.value("heads", Object());
    if (key != "name" && !same) {
      text.append(text.empty() ? "" : ", ").append(key).append(" ").append(value.dump());
    }
  }
  return text;
}

// A name from a file must not begin a row of its own.
std::string one_line(const Object& name) {
  auto text = name.get<std::string>();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string parameters_text(const Object& parameters) {
  size_t names = 4, shapes = 5;
  for (const auto& row : parameters) {
    names = std::max(names, row.at("name").get_ref<const std::string&>().size());
    shapes = std::max(shapes, row.at("shape").dump().size());
  }
  auto text =
      fmt::format("\n{:<{}}  {:<5}  {:<{}}  spaces\n", "name", names, "dtype", "shape", shapes);
  for (const auto& row : parameters) {
    text += fmt::format(
        "{:<{}}  {:<5}  {:<{}}  {}\n", one_line(row.at("name")), names,
        row.at("dtype").get<std::string>(), row.at("shape").dump(), shapes,
        row.contains("spaces") ? list_text(row.at("spaces"), " x ") : "-");
  }
  return text;
}

// Layers of one place in all blocks that are alike as one row, then what is stored whole, such as a head.
std::string adapted_text(const Object& parameters) {
  std::vector<std::pair<std::string, int64_t>> rows;  // and how many layers
  std::string whole;
  for (const auto& one : parameters) {
    const auto shape = one.at("shape").dump();
    if (!one.contains("rank")) {
      whole +=
          fmt::format("{:<12} {} {}, stored whole\n", "tensor", one_line(one.at("name")), shape);
      continue;
    }
    const auto row = fmt::format(
        "{}  {}  rank {}, scale {:.4g}", model::role_of(one_line(one.at("name"))), shape,
        one.at("rank").dump(), one.at("scale").get<double>());
    const auto known = std::find_if(
        rows.begin(), rows.end(), [&](const auto& other) { return other.first == row; });
    if (known == rows.end()) {
      rows.emplace_back(row, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [row, count] : rows) {
    text += fmt::format("{:<12} {:>3} x {}\n", text.empty() ? "layers" : "", count, row);
  }
  return text + whole;
}

std::string files_text(const Object& files) {
  const auto& names = files.at("files");
  auto text = fmt::format("{:<12} {}", "weights", names.front().get<std::string>());
  if (names.size() > 1) {
    text += fmt::format(" ... {} ({} shards)", names.back().get<std::string>(), names.size());
  }
  text += fmt::format(
      "\n{:<12} {} in {} tensors\n", "size", bytes_text(files.at("bytes").get<int64_t>()),
      files.at("tensors").get<int64_t>());
  std::string dtypes;
  for (const auto& [dtype, count] : files.at("dtypes").items()) {
    dtypes += fmt::format(
        "{}{} ({} elements)", dtypes.empty() ? "" : ", ", dtype, count_text(count.get<int64_t>()));
  }
  text += fmt::format("{:<12} {}\n", "dtype", dtypes);
  for (const auto& note : files.at("notes")) {
    text += fmt::format("{:<12} {}\n", "note", note.get<std::string>());
  }
  return text;
}

}  // namespace

Object describe(const model::Model& model) {
  const auto& architecture = model.architecture();
  Object towers = Object::array();
  for (const auto& tower : architecture.towers) {
    towers.push_back(describe_tower(tower));
  }
  Object parameters = Object::array();
  for (const auto& parameter : architecture.parameters) {
    parameters.push_back(
        {{"name", parameter.name},
         {"stored", parameter.stored},
         {"dtype", model.checkpoint().info(parameter.stored).dtype},
         {"shape", parameter.shape},
         {"spaces", parameter.axes},
         {"block", parameter.block}});
  }
  auto ties = architecture.ties;
  for (auto& tie : shared_storages(model.checkpoint())) {
    ties.push_back(std::move(tie));
  }
  return {
      {"kind", "model"},
      {"family", model.location().family},
      {"variant", architecture.variant},
      {"config", model.location().config.filename().string()},
      {"parameter_count", model.parameter_count()},
      {"towers", towers},
      {"inputs", architecture.inputs},
      {"ties", describe_ties(ties)},
      {"not_run", architecture.not_run},
      {"weights", describe_files(model.checkpoint())},
      {"parameters", parameters}};
}

Object describe(const update::Adapter& adapter) {
  Object parameters = Object::array();
  for (const auto& [module, delta] : adapter.low_rank) {
    parameters.push_back(
        {{"name", module},
         {"dtype", c10::toString(delta.up.scalar_type())},
         {"shape", {delta.up.size(0), delta.down.size(1)}},
         {"rank", delta.down.size(0)},
         {"scale", delta.scale}});
  }
  for (const auto& [name, tensor] : adapter.saved) {
    parameters.push_back(
        {{"name", name},
         {"dtype", c10::toString(tensor.scalar_type())},
         {"shape", tensor.sizes().vec()}});
  }
  return {
      {"kind", "adapter"},
      {"family", adapter.is_dora() ? "PEFT DoRA" : "PEFT LoRA"},
      {"base_model", adapter.base_model},
      {"r", adapter.rank},
      {"lora_alpha", adapter.alpha},
      {"use_rslora", adapter.rank_stabilised},
      {"fan_in_fan_out", adapter.fan_in_fan_out},
      {"target_modules", adapter.target_modules},
      {"modules_to_save", adapter.modules_to_save},
      {"layers", adapter.low_rank.size()},
      {"parameter_count", adapter.parameters()},
      {"bytes", adapter.bytes},
      {"parameters", parameters}};
}

Object describe(const checkpoint::Checkpoint& checkpoint) {
  Object parameters = Object::array();
  int64_t count = 0;
  for (const auto& info : checkpoint.tensors()) {
    parameters.push_back({{"name", info.name}, {"dtype", info.dtype}, {"shape", info.shape}});
    count += info.elements();
  }
  return {
      {"kind", "state dict"},
      {"parameter_count", count},
      {"ties", describe_ties(shared_storages(checkpoint))},
      {"weights", describe_files(checkpoint)},
      {"parameters", parameters}};
}

std::string as_text(const Object& description, bool parameters) {
  std::string text;
  const auto line = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) {
      text += fmt::format("{:<12} {}\n", key, value);
    }
  };
  const auto kind = description.at("kind").get<std::string>();
  if (kind == "model") {
    line(
        "family", fmt::format(
                      "{} ({})", description.at("family").get<std::string>(),
                      description.at("variant").get<std::string>()));
  } else {
    line(
        "kind", kind == "adapter" ? description.at("family").get<std::string>() + " adapter"
                                  : "tensors only, not the weights of a model directory");
  }
  for (const char* key : {"base_model", "inputs"}) {
    if (description.contains(key)) {
      const auto& value = description.at(key);
      line(key, value.is_string() ? value.get<std::string>() : list_text(value, " "));
    }
  }
  if (kind == "adapter") {
    line(
        "rank", fmt::format(
                    "r {}, lora_alpha {}{}", description.at("r").dump(),
                    description.at("lora_alpha").dump(),
                    description.at("use_rslora").get<bool>() ? ", rank-stabilised" : ""));
    line(
        "size", fmt::format(
                    "{} in {} layers", bytes_text(description.at("bytes").get<int64_t>()),
                    description.at("layers").dump()));
    text += adapted_text(description.at("parameters"));
  }
  if (description.contains("head")) {
    const auto& head = description.at("head");
    line(
        "head", fmt::format(
                    "beside the encoder, {} classes on {} numbers: {}", head.at("classes").dump(),
                    head.at("width").dump(), list_text(head.at("names"), ", ")));
  }
  line("parameters", count_text(description.at("parameter_count").get<int64_t>()));
  for (const auto& tower : description.value("towers", Object::array())) {
    line(tower.at("name").get<std::string>(), tower_text(tower));
  }
  for (const auto& tie : description.value("ties", Object::array())) {
    line(
        "tied",
        fmt::format(
            "{} = {}", tie.at("name").get<std::string>(), tie.at("tied_to").get<std::string>()));
  }
  line("not run", list_text(description.value("not_run", Object::array()), " "));
  if (description.contains("weights")) {
    text += files_text(description.at("weights"));
  }
  return parameters ? text + parameters_text(description.at("parameters")) : text;
}

}  // namespace theseus::cli
