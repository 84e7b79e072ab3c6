#pragma once

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>
#include <c10/core/Device.h>

namespace theseus::cli {

// --device, "auto" unless it is given.
void add_device(CLI::App& app, std::string& device);

// The device of --device. With "auto" the choice is said on stderr where there is a GPU, unless `quiet`; the GPU must have
// room for `bytes`. Throws InputError.
c10::Device device_of(const std::string& text, bool quiet, int64_t bytes = 0);

}  // namespace theseus::cli
