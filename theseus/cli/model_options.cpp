#include "theseus/cli/model_options.h"

#include "theseus/base/device.h"
#include "theseus/cli/device_option.h"
#include "theseus/model/room.h"

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
  add_device(app, device);
  app.add_option("--dtype", dtype, "compute in float32, bfloat16 or float16")
      ->capture_default_str();
}

model::Model ModelOptions::open(bool quiet) const {
  model::OpenOptions open = {
      .family = family, .config = config, .placement = {.dtype = parse_compute_dtype(dtype)}};
  open.placement.device =
      device_of(device, quiet, model::room_for(path, open.placement.dtype, open));
  return model::Model::open(path, open);
}

}  // namespace theseus::cli
