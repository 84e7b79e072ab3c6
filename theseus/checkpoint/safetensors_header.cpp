// A safetensors file is an 8-byte little-endian header length, a JSON object
//   {"__metadata__": {text: text}, NAME: {"dtype": ..., "shape": [...], "data_offsets": [b, e]}}
// and the tensors' bytes, where b and e count from the end of the header.
#include "theseus/checkpoint/safetensors_header.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/json.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/dtype.h"

namespace theseus::checkpoint {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr std::string_view kMetadata = "__metadata__";

uint64_t header_length(std::span<const std::byte> file) {
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | std::to_integer<uint64_t>(file[i]);
  }
  return length;
}

std::string_view header_text(std::span<const std::byte> file, const std::string& origin) {
  require(
      file.size() >= kLengthBytes, origin, " is truncated: ", file.size(),
      " bytes, but a safetensors file begins with an 8-byte header length");
  const uint64_t length = header_length(file);
  require(
      length <= kMaxSafetensorsHeader, origin, ": header of ", length, " bytes; at most ",
      kMaxSafetensorsHeader, " are read; the file begins with '", printable(as_text(file), 16),
      "' (is it safetensors?)");
  require(
      length <= file.size() - kLengthBytes, origin, " is truncated: the header is ", length,
      " bytes long, but only ", file.size() - kLengthBytes, " bytes follow its length");
  const auto text = as_text(file.subspan(kLengthBytes, length));
  require(
      text.starts_with('{'), origin, ": the header is not a JSON object: it begins with '",
      printable(text, 16), "'");
  return text;
}

std::vector<int64_t> integer_list(const Json& record, std::string_view key) {
  const auto& raw = record.raw();
  const auto found = raw.find(std::string(key));
  require(
      found == raw.end() || found->is_array(), record.where(key),
      ": expected a list of integers, found ", record.dump(key));
  require(found != raw.end(), record.where(key), " is missing");
  return record.integers(key);
}

std::string dtype_words() {
  std::string result;
  for (const Dtype& dtype : all_dtypes()) {
    result.append(result.empty() ? "" : " ").append(dtype.word);
  }
  return result;
}

int64_t declared_bytes(const Json& record, const SafetensorsRecord& tensor) {
  for (const int64_t extent : tensor.shape) {
    require(extent >= 0, record.where("shape"), ": extent ", extent, " is negative");
  }
  const auto elements = checked_elements(tensor.shape);
  const auto bytes = elements ? packed_bytes(*find_dtype(tensor.dtype), *elements) : std::nullopt;
  require(
      bytes.has_value(), record.where("shape"), ": ", record.dump("shape"), " of ", tensor.dtype,
      elements ? " is not a whole number of bytes that fits 64 bits" : " overflows 64 bits");
  return *bytes;
}

SafetensorsRecord read_record(const Json& record, std::string name, size_t data, size_t file_size) {
  SafetensorsRecord tensor;
  tensor.name = std::move(name);
  const std::string word = record.text("dtype");
  const Dtype* dtype = find_dtype(word);
  require(
      dtype != nullptr, record.where("dtype"), ": unknown dtype '", printable(word),
      "'; the format has ", dtype_words());
  tensor.dtype = dtype->word;
  tensor.shape = integer_list(record, "shape");
  require(
      tensor.shape.size() <= kMaxDimensions, record.where("shape"), ": ", tensor.shape.size(),
      " dimensions; at most ", kMaxDimensions, " are read");
  const auto offsets = integer_list(record, "data_offsets");
  const auto where = record.where("data_offsets");
  require(
      offsets.size() == 2, where, ": expected [begin, end], found ", offsets.size(), " numbers");
  const auto [begin, end] = std::pair(offsets[0], offsets[1]);
  require(begin >= 0, where, ": ", begin, " is negative");
  require(begin <= end, where, ": reversed: begin ", begin, " is after end ", end);
  require(
      static_cast<uint64_t>(end) <= file_size - data, where, ": end ", end,
      " is past the end of the data, which is ", file_size - data, " bytes long (truncated file?)");
  const int64_t bytes = declared_bytes(record, tensor);
  require(
      end - begin == bytes, where, ": ", end - begin, " bytes, but ", record.dump("shape"), " of ",
      word, " takes ", bytes);
  tensor.begin = data + static_cast<size_t>(begin);
  tensor.end = data + static_cast<size_t>(end);
  return tensor;
}

// The reference reader insists on this too: a hole could hide other content in the file.
void check_layout(
    const std::vector<SafetensorsRecord>& tensors,
    size_t data,
    size_t file_size,
    const std::string& origin) {
  std::vector<const SafetensorsRecord*> order;
  order.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const auto* left, const auto* right) {
    return std::pair(left->begin, left->end) < std::pair(right->begin, right->end);
  });
  size_t expected = data;
  for (const auto* tensor : order) {
    require(
        tensor->begin == expected, origin, ": tensor '", printable(tensor->name), "' begins at ",
        tensor->begin - data,
        tensor->begin < expected ? ", overlapping the tensor before it, which ends at "
                                 : ", leaving a hole after ",
        expected - data);
    expected = tensor->end;
  }
  require(
      expected == file_size, origin, ": the tensors end at ", expected - data, " but the data is ",
      file_size - data, " bytes long");
}

std::map<std::string, std::string> read_metadata(const Json& header) {
  std::map<std::string, std::string> result;
  if (header.has(kMetadata)) {
    const Json metadata = header.object(kMetadata);
    for (const auto& key : metadata.keys()) {
      result.emplace(key, metadata.text(key));
    }
  }
  return result;
}

}  // namespace

bool begins_like_safetensors(std::span<const std::byte> file) {
  return file.size() > kLengthBytes && header_length(file) <= kMaxSafetensorsHeader &&
         std::to_integer<char>(file[kLengthBytes]) == '{';
}

SafetensorsHeader read_safetensors_header(
    std::span<const std::byte> file, const std::string& origin) {
  const auto text = header_text(file, origin);
  const Json header = Json::parse(text, origin);
  const size_t data = kLengthBytes + text.size();
  SafetensorsHeader result;
  result.metadata = read_metadata(header);
  for (auto& name : header.keys()) {
    if (name != kMetadata) {
      result.tensors.push_back(read_record(header.object(name), name, data, file.size()));
    }
  }
  check_layout(result.tensors, data, file.size(), origin);
  return result;
}

}  // namespace theseus::checkpoint
