// A tar is blocks of 512 bytes: a header, the bytes of the member, padding, the next header. Fields of the
// header by offset: name 0 (100 bytes), size 124 (12, octal), checksum 148 (8), type 156, "ustar" 257,
// prefix of the name 345 (155).

#include "theseus/data/tar_index.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/labels.h"

namespace theseus::data {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kLongestExtra = size_t{1} << 20;

std::string_view text_field(std::string_view header, size_t offset, size_t size) {
  const auto field = header.substr(offset, size);
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

std::optional<uint64_t> octal(std::string_view field) {
  uint64_t value = 0;
  bool any = false;
  for (const char character : field) {
    if (character >= '0' && character <= '7') {
      value = value * 8 + static_cast<uint64_t>(character - '0');
      any = true;
    } else if (character != ' ' || any) {
      break;
    }
  }
  return any ? std::optional<uint64_t>(value) : std::nullopt;
}

// Octal, or with the highest bit set a big-endian number (GNU, above 8 GiB).
std::optional<uint64_t> size_field(std::string_view header) {
  const auto field = header.substr(124, 12);
  if ((static_cast<unsigned char>(field[0]) & 0x80) == 0) {
    return octal(field);
  }
  uint64_t value = 0;
  for (const char byte : field.substr(4)) {
    value = value << 8 | static_cast<unsigned char>(byte);
  }
  return value;
}

bool checksum_holds(std::string_view header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return octal(header.substr(148, 8)) == sum;
}

class Indexer {
 public:
  explicit Indexer(const MappedFile& file)
      : path_(file.path().string()), text_(as_text(file.bytes())) {}

  std::vector<TarMember> run() {
    while (at_ + kBlock <= text_.size()) {
      const auto header = text_.substr(at_, kBlock);
      if (header.find_first_not_of('\0') == std::string_view::npos) {
        const auto more = text_.find_first_not_of('\0', at_);
        require(
            more == std::string_view::npos, path_, ": the tar ends at byte ", at_,
            ", and behind it there is more; tars put one behind the other are not read, "
            "'tar --concatenate' makes one of them");
        return std::move(members_);
      }
      require(
          checksum_holds(header), path_, ": the header at byte ", at_,
          " is damaged, or this is not an uncompressed tar");
      take(header);
    }
    // A tar that was cut between two members looks like one that was never closed.
    throw InputError(c10::str(
        path_, ": the tar is cut short at byte ", text_.size(),
        ", without the block of zeros at its end; copy it anew, or write it with 'tar cf'"));
  }

 private:
  void take(std::string_view header) {
    auto size = size_field(header);
    if (pax_size_.has_value() && header[156] != 'x' && header[156] != 'g') {
      size = pax_size_;
    }
    const auto begin = at_ + kBlock;
    require(
        size.has_value() && *size <= text_.size() - begin, path_, ": the member at byte ", at_,
        " reaches beyond the end of the file; the tar is cut short");
    const auto padded = (*size + kBlock - 1) / kBlock * kBlock;
    at_ = std::min(begin + padded, text_.size());
    take_member(header, begin, *size);
  }

  void take_member(std::string_view header, size_t begin, size_t size) {
    const char type = header[156];
    const auto content = text_.substr(begin, size);
    if (type == 'L' || type == 'x') {
      require(size <= kLongestExtra, path_, ": a name of ", size, " bytes");
      if (type == 'L') {
        long_name_ = content.substr(0, std::min(content.find('\0'), size));
      } else {
        take_pax(content);
      }
      return;
    }
    require(type != 'S' && !sparse_, path_, ": sparse members are not read");
    if (type == '0' || type == '\0' || type == '7') {
      members_.push_back({long_name_.empty() ? plain_name(header) : long_name_, begin, size});
    }
    if (type != 'g' && type != 'K') {
      long_name_.clear();
      pax_size_.reset();
    }
  }

  static std::string plain_name(std::string_view header) {
    const std::string name(text_field(header, 0, 100));
    const auto prefix = text_field(header, 345, 155);
    // GNU's own headers, "ustar  ", keep times where ustar has the prefix.
    const bool prefixed = header.substr(257, 6) == std::string_view("ustar\0", 6);
    return prefixed && !prefix.empty() ? std::string(prefix) + "/" + name : name;
  }

  // Lines "LENGTH KEY=VALUE\n", the length that of the whole line.
  void take_pax(std::string_view content) {
    while (!content.empty() && content[0] != '\0') {
      const auto space = std::min(content.find(' '), content.size());
      const auto length = find_integer(content.substr(0, space));
      require(
          length.has_value() && *length > static_cast<int64_t>(space) + 1 &&
              *length <= std::ssize(content),
          path_, ": damaged pax header");
      const auto line = content.substr(space + 1, static_cast<size_t>(*length) - space - 2);
      content.remove_prefix(static_cast<size_t>(*length));
      const auto equals = std::min(line.find('='), line.size());
      take_pax_entry(line.substr(0, equals), line.substr(std::min(equals + 1, line.size())));
    }
  }

  void take_pax_entry(std::string_view key, std::string_view value) {
    if (key == "path") {
      long_name_ = value;
    } else if (key == "size") {
      const auto size = find_integer(value);
      require(size.has_value() && *size >= 0, path_, ": damaged size '", printable(value), "'");
      pax_size_ = static_cast<uint64_t>(*size);
    }
    sparse_ = sparse_ || key.starts_with("GNU.sparse");
  }

  std::string path_;
  std::string_view text_;
  size_t at_ = 0;
  std::string long_name_;
  std::optional<uint64_t> pax_size_;
  bool sparse_ = false;
  std::vector<TarMember> members_;
};

}  // namespace

std::vector<TarMember> index_tar(const MappedFile& file) {
  return Indexer(file).run();
}

}  // namespace theseus::data
