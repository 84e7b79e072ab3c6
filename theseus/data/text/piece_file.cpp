#include "theseus/data/text/piece_file.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::data::text {
namespace {

// The fields of a protobuf message, one after the other.
class Fields {
 public:
  Fields(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  // False at the end.
  bool next() {
    if (bytes_.empty()) {
      return false;
    }
    const uint64_t key = varint();
    number_ = key >> 3;
    value_ = 0;
    content_ = {};
    switch (key & 7) {
      case 0:
        value_ = varint();
        break;
      case 1:
        content_ = take(8);
        break;
      case 2:
        content_ = take(varint());
        break;
      case 5:
        content_ = take(4);
        break;
      default:
        fail();
    }
    return true;
  }

  uint64_t number() const { return number_; }
  uint64_t value() const { return value_; }
  std::string_view content() const { return content_; }
  float real() const {
    if (content_.size() != sizeof(float)) {
      fail();
    }
    float made = 0;
    std::memcpy(&made, content_.data(), sizeof(float));
    return made;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
    fail();
  }

  std::string_view take(uint64_t size) {
    if (size > bytes_.size()) {
      fail();
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  [[noreturn]] void fail() const {
    throw InputError(c10::str(where_, ": is not a sentencepiece model, or is cut short"));
  }

  std::string_view bytes_;
  const std::string& where_;
  uint64_t number_ = 0;
  uint64_t value_ = 0;
  std::string_view content_;
};

PieceFile::Entry read_entry(std::string_view bytes, const std::string& where) {
  PieceFile::Entry entry;
  for (Fields fields(bytes, where); fields.next();) {
    switch (fields.number()) {
      case 1:
        entry.piece = fields.content();
        break;
      case 2:
        entry.score = fields.real();
        break;
      case 3:
        require(
            fields.value() >= 1 && fields.value() <= 6, where, ": a piece has the type ",
            fields.value());
        entry.type = static_cast<PieceFile::Type>(fields.value());
        break;
      default:
        break;
    }
  }
  require(!entry.piece.empty(), where, ": is not a sentencepiece model: a piece is empty");
  return entry;
}

void read_training(std::string_view bytes, const std::string& where, PieceFile& file) {
  for (Fields fields(bytes, where); fields.next();) {
    switch (fields.number()) {
      case 3:
        require(
            fields.value() == 1 || fields.value() == 2, where, ": a sentencepiece model of type ",
            fields.value(), " is not implemented, only 1 (unigram) and 2 (BPE)");
        file.kind = static_cast<PieceFile::Kind>(fields.value());
        break;
      case 24:
        require(fields.value() == 0, where, ": treat_whitespace_as_suffix is not implemented");
        break;
      case 35:
        file.byte_fallback = fields.value() != 0;
        break;
      case 45:
        file.unknown_name = fields.content();
        break;
      case 46:
        file.begin_name = fields.content();
        break;
      case 47:
        file.end_name = fields.content();
        break;
      case 48:
        file.padding_name = fields.content();
        break;
      default:
        break;
    }
  }
}

void read_normaliser(std::string_view bytes, const std::string& where, PieceFile& file) {
  for (Fields fields(bytes, where); fields.next();) {
    switch (fields.number()) {
      case 2:
        file.character_map = fields.content();
        break;
      case 3:
        file.prefix = fields.value() != 0;
        break;
      case 4:
        file.strip_spaces = fields.value() != 0;
        break;
      case 5:
        require(fields.value() != 0, where, ": escape_whitespaces false is not implemented");
        break;
      default:
        break;
    }
  }
}

void refuse_denormaliser(std::string_view bytes, const std::string& where) {
  for (Fields fields(bytes, where); fields.next();) {
    require(
        fields.number() != 2 || fields.content().empty(), where,
        ": a map of characters for decoding is not implemented");
  }
}

}  // namespace

PieceFile PieceFile::read(std::string_view bytes, const std::string& where) {
  PieceFile file;
  for (Fields fields(bytes, where); fields.next();) {
    switch (fields.number()) {
      case 1:
        file.entries.push_back(read_entry(fields.content(), where));
        break;
      case 2:
        read_training(fields.content(), where, file);
        break;
      case 3:
        read_normaliser(fields.content(), where, file);
        break;
      case 5:
        refuse_denormaliser(fields.content(), where);
        break;
      default:
        break;
    }
  }
  const auto unknowns = std::count_if(
      file.entries.begin(), file.entries.end(),
      [](const Entry& entry) { return entry.type == Type::kUnknown; });
  require(
      unknowns == 1, where, ": is not a sentencepiece model: ", file.entries.size(), " pieces, ",
      unknowns, " of them for what is unknown");
  require(file.entries.size() < size_t{1} << 24, where, ": has more than 2^24 pieces");
  return file;
}

}  // namespace theseus::data::text
