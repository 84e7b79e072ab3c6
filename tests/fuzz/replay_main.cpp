// Runs a fuzz target without libFuzzer: every file of the given directories, then mutations of
// them, the same ones in every run. A target's own mutator is used where it has one.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(
    uint8_t* data, size_t size, size_t max_size, unsigned int seed);

namespace {

constexpr int kMutations = 5000;
constexpr size_t kMaxGrowth = 4096;

void run(const std::string& input) {
  // A copy of its own size, so that a checker of memory sees the first byte past the end.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::vector<std::string> read_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> contents;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return contents;
}

// Changes bytes, repeats a part or cuts the end.
void mutate(std::string& input, std::mt19937_64& random) {
  const auto place = [&] { return static_cast<size_t>(random() % (input.size() + 1)); };
  for (uint64_t changes = 1 + random() % 4; changes > 0 && !input.empty(); --changes) {
    switch (random() % 4) {
      case 0:
        input[random() % input.size()] = static_cast<char>(random());
        break;
      case 1:
        input[random() % input.size()] ^= static_cast<char>(1U << random() % 8);
        break;
      case 2:
        input.insert(place(), input.substr(place(), random() % 16));
        break;
      default:
        input.erase(place(), random() % 16);
    }
  }
}

void mutate_as_target(std::string& input, std::mt19937_64& random) {
  if (LLVMFuzzerCustomMutator == nullptr) {
    mutate(input, random);
    return;
  }
  const size_t size = input.size();
  input.resize(size + kMaxGrowth);
  input.resize(LLVMFuzzerCustomMutator(
      reinterpret_cast<uint8_t*>(input.data()), size, input.size(),
      static_cast<unsigned int>(random())));
}

}  // namespace

// What libFuzzer offers to a target's own mutator.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  static std::mt19937_64 random(2);
  std::string input(reinterpret_cast<const char*>(data), size);
  mutate(input, random);
  input.resize(std::min(input.size(), max_size));
  std::copy(input.begin(), input.end(), data);
  return input.size();
}

int main(int argc, char** argv) {
  std::vector<std::string> seeds;
  for (int i = 1; i < argc; ++i) {
    const auto more = read_files(argv[i]);
    seeds.insert(seeds.end(), more.begin(), more.end());
  }
  if (seeds.empty()) {
    std::cerr << "no corpus\n";
    return 1;
  }
  std::for_each(seeds.begin(), seeds.end(), run);
  std::mt19937_64 random(1);
  for (int i = 0; i < kMutations; ++i) {
    auto input = seeds[random() % seeds.size()];
    mutate_as_target(input, random);
    run(input);
  }
  std::cout << seeds.size() << " files and " << kMutations << " mutations\n";
  return 0;
}
