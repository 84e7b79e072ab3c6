#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>
#include <c10/core/Device.h>

namespace theseus::cli {

// --device, "auto" unless it is given.
void add_device(CLI::App& app, std::string& device);

// The device of --device. With "auto" the choice is said on stderr where there is a GPU, unless `quiet`. `model`: a
// model that is kept whole on the device, so many times, or nothing. Throws InputError.
c10::Device device_of(
    const std::string& text,
    bool quiet,
    const std::filesystem::path& model = {},
    int64_t copies = 1);

}  // namespace theseus::cli
