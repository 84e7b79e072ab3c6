#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace theseus {

// What tells contents apart, whatever they are called: "xxh3:" and 32 hexadecimal digits.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void add(const void* data, size_t size);
  void add(std::string_view text) { add(text.data(), text.size()); }
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hash_of_text(std::string_view text);
// Of a file's bytes, which are read once in a process as long as the file does not change. Throws InputError.
std::string hash_of_file(const std::filesystem::path& path);

// What the file system says of a file, with which its contents change; empty when it says nothing.
std::string stamp_of(const std::filesystem::path& path);

}  // namespace theseus
