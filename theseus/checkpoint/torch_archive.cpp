// What torch.save has written since 1.6: a zip of stored entries under one folder,
//   <archive>/data.pkl      the object, with tensors as (storage, offset, size, stride)
//   <archive>/data/<key>    the bytes of one storage
//   <archive>/byteorder     "little" or "big"; absent before 2.1
#include "theseus/checkpoint/torch_archive.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/dtype.h"
#include "theseus/checkpoint/pickle.h"
#include "theseus/checkpoint/zip.h"

namespace theseus::checkpoint {
namespace {

// A pickled 10-byte number opens the format before the zip.
bool begins_like_legacy(std::span<const std::byte> file) {
  constexpr std::string_view kMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  constexpr size_t kLongestPreamble = 16;
  const auto begin = as_text(file).substr(0, kLongestPreamble + kMagic.size());
  return begin.starts_with('\x80') && begin.find(kMagic) != std::string_view::npos;
}

bool is_tar(std::span<const std::byte> file) {
  constexpr size_t kMagicAt = 257;
  return file.size() > kMagicAt && as_text(file.subspan(kMagicAt)).starts_with("ustar");
}

void check_container(std::span<const std::byte> file, const std::string& origin) {
  require(
      !begins_like_legacy(file) && !is_tar(file), origin, " is in the ",
      is_tar(file) ? "tar" : "pickle",
      " format of torch before 1.6, which is not read: load it with a newer torch and save it "
      "again (torch.save(torch.load(path), path))");
  require(
      begins_like_zip(file), origin,
      " is not a file that torch.save writes (a zip archive): it begins with '",
      printable(as_text(file), 16), "'");
}

// The archive's folder with its slash.
std::string archive_folder(const std::vector<ZipEntry>& entries, const std::string& origin) {
  std::string result;
  for (const ZipEntry& entry : entries) {
    const size_t slash = entry.name.find('/');
    const std::string folder = slash == std::string::npos ? "" : entry.name.substr(0, slash + 1);
    const auto rest = std::string_view(entry.name).substr(folder.size());
    require(
        rest != "constants.pkl" && !rest.starts_with("code/"), origin,
        " is a TorchScript archive (it has '", printable(entry.name),
        "'), which holds a program: save model.state_dict() with torch.save instead");
    if (rest == "data.pkl" && !folder.empty()) {
      require(
          result.empty(), origin, ": two pickles, '", printable(result), "data.pkl' and '",
          printable(entry.name), "'");
      result = folder;
    }
  }
  require(
      !result.empty(), origin,
      " is a zip archive, but not one that torch.save writes: none of its ", entries.size(),
      " entries is <archive>/data.pkl");
  require_stored(entries, origin);
  return result;
}

class ArchiveReader {
 public:
  ArchiveReader(std::span<const std::byte> file, const std::string& origin)
      : file_(file),
        origin_(origin),
        entries_(read_zip(file, origin)),
        folder_(archive_folder(entries_, origin)),
        pickle_(find("data.pkl")->bytes, origin + ": " + printable(folder_) + "data.pkl") {
    const auto* order = find("byteorder");
    require(
        order == nullptr || as_text(order->bytes) == "little", origin, ": byte order '",
        order == nullptr ? "" : printable(as_text(order->bytes), 16),
        "'; only little-endian files are read");
  }

  TorchArchive read();

 private:
  using Value = Pickle::Value;
  const ZipEntry* find(std::string_view name) const;
  bool is_named_tensor(Value key, Value value) const {
    return pickle_.kind(key) == PickleKind::kText && pickle_.kind(value) == PickleKind::kTensor;
  }
  bool holds_tensors(Value value) const;
  Value choose_state_dict(std::string& note) const;
  std::string list_others(Value dict, std::string_view chosen) const;
  std::string list_skipped(Value dict) const;
  using Describe = std::function<std::optional<std::string>(Value key, Value value)>;
  std::string list_keys(Value dict, const Describe& describe) const;
  ArchivedTensor locate(std::string_view name, const PickledTensor& tensor) const;

  std::span<const std::byte> file_;
  const std::string& origin_;
  std::vector<ZipEntry> entries_;
  std::string folder_;
  Pickle pickle_;
};

const ZipEntry* ArchiveReader::find(std::string_view name) const {
  const auto full = folder_ + std::string(name);
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), full,
      [](const ZipEntry& entry, const std::string& wanted) { return entry.name < wanted; });
  return found == entries_.end() || found->name != full ? nullptr : &*found;
}

bool ArchiveReader::holds_tensors(Value value) const {
  if (pickle_.kind(value) != PickleKind::kDict) {
    return false;
  }
  const auto items = pickle_.items(value);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (is_named_tensor(items[i], items[i + 1])) {
      return true;
    }
  }
  return false;
}

// The keys of `dict`, each with the words that `describe` gives for it; nothing leaves it out.
std::string ArchiveReader::list_keys(Value dict, const Describe& describe) const {
  constexpr int kLongestList = 20;
  const auto items = pickle_.items(dict);
  std::string result;
  int listed = 0;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    const auto kind = pickle_.kind(items[i]);
    const auto key = kind == PickleKind::kText ? printable(pickle_.text(items[i]))
                                               : c10::str("(", kind_word(kind), ")");
    const auto words = describe(items[i], items[i + 1]);
    if (words && ++listed > kLongestList) {
      return result + ", ...";
    }
    if (words) {
      result.append(result.empty() ? "" : ", ").append(key).append(*words);
    }
  }
  return result;
}

std::string ArchiveReader::list_others(Value dict, std::string_view chosen) const {
  return list_keys(dict, [&](Value key, Value) {
    const bool is_chosen = pickle_.kind(key) == PickleKind::kText && pickle_.text(key) == chosen;
    return is_chosen ? std::nullopt : std::optional<std::string>("");
  });
}

std::string ArchiveReader::list_skipped(Value dict) const {
  return list_keys(dict, [&](Value key, Value value) {
    return is_named_tensor(key, value)
               ? std::nullopt
               : std::optional(c10::str(" (", kind_word(pickle_.kind(value)), ")"));
  });
}

Pickle::Value ArchiveReader::choose_state_dict(std::string& note) const {
  const Value root = pickle_.root();
  require(
      pickle_.kind(root) == PickleKind::kDict, origin_, " holds ", kind_word(pickle_.kind(root)),
      ", not a state dict (a dict of named tensors)");
  for (const auto key : kStateDictKeys) {
    const auto nested = pickle_.find(root, key);
    if (nested && holds_tensors(*nested)) {
      note = c10::str("read from key '", key, "'");
      const auto others = list_others(root, key);
      note.append(others.empty() ? "" : "; other keys: " + others);
      return *nested;
    }
  }
  require(
      holds_tensors(root), origin_, " holds no state dict: no tensors at the top or under ",
      c10::Join(", ", std::span(kStateDictKeys)), "; it has: ", list_skipped(root));
  return root;
}

// The last element that a view touches, from its first; nothing when that overflows.
std::optional<int64_t> last_element(const PickledTensor& tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    int64_t step = 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return std::nullopt;
    }
  }
  return last;
}

void check_view(
    const PickledTensor& tensor, int64_t elements, int64_t held, const std::string& where) {
  const bool strides_valid = std::all_of(
      tensor.strides.begin(), tensor.strides.end(), [](int64_t stride) { return stride >= 0; });
  require(
      strides_valid && tensor.offset >= 0, where, ": strides [", c10::Join(", ", tensor.strides),
      "] and offset ", tensor.offset, " must not be negative");
  require(
      elements <= held && tensor.offset <= held, where, " has ", elements, " elements from ",
      tensor.offset, " on, but its storage holds ", held);
  if (elements > 0) {
    const auto last = last_element(tensor);
    require(
        last && *last < held - tensor.offset, where, ": offset ", tensor.offset, ", size [",
        c10::Join(", ", tensor.shape), "] and stride [", c10::Join(", ", tensor.strides),
        "] leave its storage of ", held, " elements");
  }
}

ArchivedTensor ArchiveReader::locate(std::string_view name, const PickledTensor& tensor) const {
  const auto where = c10::str(origin_, ": tensor '", printable(name), "'");
  const auto entry_name = "data/" + std::string(tensor.storage);
  const auto* entry = find(entry_name);
  require(entry != nullptr, where, ": the archive lacks its bytes, '", printable(entry_name), "'");
  require(
      static_cast<uint64_t>(tensor.storage_bytes) <= entry->bytes.size(), where, ": a storage of ",
      tensor.storage_bytes, " bytes, but '", printable(entry_name), "' holds ",
      entry->bytes.size());
  const auto elements = checked_elements(tensor.shape);
  require(
      elements.has_value(), where, ": size [", c10::Join(", ", tensor.shape),
      "] is negative or overflows 64 bits");
  const int64_t width = find_dtype(tensor.dtype)->bits / 8;
  check_view(tensor, *elements, tensor.storage_bytes / width, where);
  ArchivedTensor result;
  result.name = name;
  result.dtype = tensor.dtype;
  result.shape = tensor.shape;
  result.strides = tensor.strides;
  result.begin = static_cast<size_t>(entry->bytes.data() - file_.data()) +
                 static_cast<size_t>(tensor.offset * width);
  result.bytes = *elements * width;
  result.storage = c10::str(
      tensor.storage, "+", tensor.offset, " ", tensor.dtype, "[", c10::Join(",", tensor.shape),
      "]/[", c10::Join(",", tensor.strides), "]");
  return result;
}

TorchArchive ArchiveReader::read() {
  TorchArchive result;
  const Value dict = choose_state_dict(result.note);
  const auto items = pickle_.items(dict);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (is_named_tensor(items[i], items[i + 1])) {
      result.tensors.push_back(locate(pickle_.text(items[i]), pickle_.tensor(items[i + 1])));
    }
  }
  const auto skipped = list_skipped(dict);
  if (!skipped.empty()) {
    result.note.append(result.note.empty() ? "" : "; ").append("not read: ").append(skipped);
  }
  auto& tensors = result.tensors;
  std::sort(tensors.begin(), tensors.end(), [](const auto& left, const auto& right) {
    return left.name < right.name;
  });
  for (size_t i = 1; i < tensors.size(); ++i) {
    require(
        tensors[i].name != tensors[i - 1].name, origin_, ": the name '", printable(tensors[i].name),
        "' appears twice");
  }
  return result;
}

}  // namespace

bool begins_like_torch(std::span<const std::byte> file) {
  return begins_like_zip(file) || begins_like_legacy(file);
}

TorchArchive read_torch_archive(std::span<const std::byte> file, const std::string& origin) {
  check_container(file, origin);
  return ArchiveReader(file, origin).read();
}

}  // namespace theseus::checkpoint
