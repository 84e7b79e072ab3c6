#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "theseus/model/model.h"

namespace theseus::cli {

// The arguments with which every command that runs a model names it.
struct ModelOptions {
  std::string path;
  std::string family;
  std::string config;
  std::string adapter;
  std::string device = "cpu";  // of commands that run nothing
  std::string dtype = "float32";

  // MODEL --family --config; `also`: other names of MODEL, as in ",--target".
  void add_path(CLI::App& app, const std::string& also = "");
  void add_running(CLI::App& app);  // --adapter --device --dtype

  // Opens the model; throws InputError. The adapter is not attached. `quiet`: the device is not named.
  model::Model open(bool quiet = false) const;
};

}  // namespace theseus::cli
