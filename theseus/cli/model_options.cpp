#include "theseus/cli/model_options.h"

#include "theseus/base/device.h"

namespace theseus::cli {

void ModelOptions::add_path(CLI::App& app, const std::string& also) {
  app.add_option("path" + also, path, "model directory, weights file or index file")
      ->required()
      ->type_name("MODEL");
  app.add_option("--family", family, "read it as this family, when its files allow more than one");
  app.add_option("--config", config, "config file of a weights file that has none beside it");
}

void ModelOptions::add_running(CLI::App& app) {
  app.add_option("--adapter", adapter, "PEFT LoRA adapter directory to add");
  app.add_option("--device", device, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--dtype", dtype, "compute in float32, bfloat16 or float16")
      ->capture_default_str();
}

model::OpenOptions ModelOptions::open_options() const {
  return {
      .family = family,
      .config = config,
      .placement = {.device = parse_device(device), .dtype = parse_compute_dtype(dtype)}};
}

model::Model ModelOptions::open() const {
  return model::Model::open(path, open_options());
}

}  // namespace theseus::cli
