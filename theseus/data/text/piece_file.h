#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace theseus::data::text {

// What a model file of sentencepiece holds, as far as it matters for encoding and decoding.
// sentencepiece's own library is not used: it brings a copy of protobuf along whose symbols replace those
// that libtorch needs, and the program ends before main().
struct PieceFile {
  enum class Type { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  enum class Kind { kUnigram = 1, kBytePairs };

  struct Entry {
    std::string piece;
    float score = 0;
    Type type = Type::kNormal;
  };

  std::vector<Entry> entries;  // by id
  Kind kind = Kind::kUnigram;
  bool byte_fallback = false;
  std::string unknown_name = "<unk>";
  std::string begin_name = "<s>";
  std::string end_name = "</s>";
  std::string padding_name = "<pad>";
  std::string character_map;  // see PieceNormaliser
  bool prefix = true;         // a space before the text
  bool strip_spaces = true;   // none around it, single ones in it

  // Throws InputError for what is not such a file and for settings that are not implemented.
  static PieceFile read(std::string_view bytes, const std::string& where);
};

}  // namespace theseus::data::text
