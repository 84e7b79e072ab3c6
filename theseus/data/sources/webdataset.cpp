// The layout of CLIP benchmarks: DIR/SPLIT/N.tar with KEY.png (or jpg, jpeg) and KEY.cls, DIR/SPLIT/nshards.txt,
// DIR/classnames.txt, DIR/zeroshot_classification_templates.txt.

#include <unordered_map>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/splits.h"
#include "theseus/data/stored_images.h"
#include "theseus/data/tar_index.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostShards = 1000000;

std::vector<std::string> splits_in(const fs::path& path) {
  std::vector<std::string> splits;
  for (const char* split : {"train", "val", "test"}) {
    if (is_file(path / split / "nshards.txt") || is_file(path / split / "0.tar")) {
      splits.emplace_back(split);
    }
  }
  return splits;
}

bool recognises(const fs::path& path) {
  return !splits_in(path).empty();
}

// Shards behind a gap, or behind the number that nshards.txt says.
void require_no_more(const fs::path& folder, int64_t read) {
  for (const auto& name : files_in(folder)) {
    const auto number =
        name.ends_with(".tar") ? find_integer(fs::path(name).stem().string()) : std::nullopt;
    require(
        !number || *number < read, (folder / name).string(), " would be left out: ", read,
        " shards are there from 0.tar on, or are said by nshards.txt; give all of them, numbered "
        "without a gap");
  }
}

std::vector<fs::path> shards_of(const fs::path& folder) {
  std::vector<fs::path> shards;
  const auto list = folder / "nshards.txt";
  int64_t count = kMostShards;
  if (is_file(list)) {
    const auto lines = lines_of(list);
    count = lines.size() == 1 ? find_integer(lines[0]).value_or(0) : 0;
    require(count > 0 && count <= kMostShards, list.string(), ": expected the number of shards");
  }
  for (int64_t i = 0; i < count; ++i) {
    const auto shard = folder / c10::str(i, ".tar");
    if (!is_file(list) && !is_file(shard)) {
      break;
    }
    require(
        is_file(shard), shard.string(), " is missing; ", list.string(), " says that there are ",
        count, " shards");
    shards.push_back(shard);
  }
  require_no_more(folder, std::ssize(shards));
  return shards;
}

struct Pair {
  std::string key;
  std::string image_name;
  Bytes image;
  std::string label;  // empty: none
};

class Shard {
 public:
  explicit Shard(const fs::path& path) : file_(std::make_shared<const MappedFile>(path)) {
    for (const auto& member : index_tar(*file_)) {
      take(member);
    }
  }

  // In the order of their first members.
  std::vector<Pair> pairs() const {
    std::vector<Pair> found;
    for (const auto& pair : pairs_) {
      if (!pair.image_name.empty()) {
        found.push_back(pair);
      } else {
        require(
            pair.label.empty(), file_->path().string(), ": ", printable(pair.key),
            ".cls is a label without an image; expected ", printable(pair.key),
            ".png, .jpg or .jpeg in the same tar");
      }
    }
    require(!found.empty(), file_->path().string(), " has no images (KEY.png, KEY.jpg, KEY.jpeg)");
    return found;
  }

 private:
  void take(const TarMember& member) {
    const auto slash = member.name.rfind('/');
    const auto dot = member.name.find('.', slash == std::string::npos ? 0 : slash + 1);
    if (dot == std::string::npos) {
      return;
    }
    const auto name = c10::str(file_->path().string(), ":", printable(member.name));
    const auto ending = lower(std::string_view(member.name).substr(dot));
    require(ending != ".webp", name, ": WebP images are not read; convert them to PNG or JPEG");
    const bool image = ending == ".png" || ending == ".jpg" || ending == ".jpeg";
    if (!image && ending != ".cls") {
      return;
    }
    const auto bytes = file_->bytes().subspan(member.offset, member.size);
    auto& pair = of(member.name.substr(0, dot));
    require(
        image ? pair.image_name.empty() : pair.label.empty(), name, ": the key has two ",
        image ? "images" : "labels");
    if (image) {
      pair.image_name = name;
      pair.image = {file_, bytes};
    } else {
      pair.label = trimmed(as_text(bytes));
      require(
          find_integer(pair.label).has_value(), name, ": expected a number, found '",
          printable(pair.label, 40), "'");
    }
  }

  Pair& of(const std::string& key) {
    const auto [place, added] = places_.emplace(key, pairs_.size());
    if (added) {
      pairs_.push_back({.key = key});
    }
    return pairs_[place->second];
  }

  std::shared_ptr<const MappedFile> file_;
  std::vector<Pair> pairs_;
  std::unordered_map<std::string, size_t> places_;
};

std::vector<std::string> templates_of(const fs::path& path) {
  const auto file = path / "zeroshot_classification_templates.txt";
  auto lines = is_file(file) ? lines_of(file) : std::vector<std::string>();
  for (const auto& line : lines) {
    require(
        line.find("{c}") != std::string::npos, file.string(), ": '", printable(line),
        "' has no {c}, which stands for the class");
  }
  return lines;
}

Examples open(const fs::path& path, const std::string& asked) {
  const auto there = splits_in(path);
  require(
      !there.empty(), path.string(),
      " has no shards; looked for {train,val,test}/nshards.txt and {train,val,test}/0.tar");
  Examples examples;
  examples.split = choose_split(there, asked, path);
  std::vector<Bytes> images;
  std::vector<std::string> words;
  for (const auto& shard : shards_of(path / examples.split)) {
    for (auto& pair : Shard(shard).pairs()) {
      examples.names.push_back(pair.image_name);
      images.push_back(std::move(pair.image));
      if (!pair.label.empty()) {
        words.push_back(pair.label);
      }
      require(
          words.empty() || words.size() == images.size(), pair.image_name,
          ": some images have a label (KEY.cls) and this one or those before it have none");
    }
  }
  const auto classes = find_class_names(path, "");
  examples.labels = numbered(words, examples.names, classes);
  examples.classes = classes.has_value() ? classes->names() : std::vector<std::string>();
  examples.templates = templates_of(path);
  examples.image = images_of_bytes(std::move(images), examples.names);
  return examples;
}

}  // namespace

const Source& webdataset() {
  static const Source source = {
      .summary = "CLIP benchmarks' shards: DIR/{train,val,test}/N.tar with KEY.png and KEY.cls",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
