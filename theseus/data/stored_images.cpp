#include "theseus/data/stored_images.h"

#include <archive.h>
#include <archive_entry.h>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/text.h"
#include "theseus/data/image.h"
#include "theseus/data/listing.h"

namespace theseus::data {
namespace {

struct CloseArchive {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
using ArchiveReader = std::unique_ptr<archive, CloseArchive>;

std::string gunzipped(const MappedFile& file, int64_t most) {
  const ArchiveReader reader(archive_read_new());
  require<InternalError>(reader != nullptr, "libarchive has no memory");
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_raw(reader.get());
  const auto fail = [&] {
    const char* reason = archive_error_string(reader.get());
    throw InputError(c10::str(
        file.path().string(), ": cannot unpack: ", reason == nullptr ? "damaged" : reason));
  };
  archive_entry* entry = nullptr;
  const auto bytes = file.bytes();
  if (archive_read_open_memory(reader.get(), bytes.data(), bytes.size()) != ARCHIVE_OK ||
      archive_read_next_header(reader.get(), &entry) != ARCHIVE_OK ||
      archive_filter_code(reader.get(), 0) != ARCHIVE_FILTER_GZIP) {
    fail();
  }
  std::string result;
  std::vector<char> part(1 << 16);
  while (true) {
    const auto count = archive_read_data(reader.get(), part.data(), part.size());
    if (count < 0) {
      fail();
    }
    if (count == 0) {
      return result;
    }
    result.append(part.data(), static_cast<size_t>(count));
    require(
        static_cast<int64_t>(result.size()) <= most, file.path().string(), " unpacks to more than ",
        most, " bytes");
  }
}

Bytes mapped(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  const auto bytes = file->bytes();
  return {std::move(file), bytes};
}

int64_t last_of(const PixelArray& array) {
  return array.first + (array.count - 1) * array.step + (array.height - 1) * array.row_step +
         (array.width - 1) * array.column_step + 2 * array.channel_step;
}

Image image_of(const PixelArray& array, int64_t index) {
  // from_blob takes no const; nothing is written.
  auto* data = const_cast<std::byte*>(array.values.bytes.data()) + array.first + index * array.step;
  const auto view = at::from_blob(
      data, {array.height, array.width, 3}, {array.row_step, array.column_step, array.channel_step},
      at::TensorOptions().dtype(at::kByte));
  // A copy: an image may outlive the file that it is in.
  return {view.clone(at::MemoryFormat::Contiguous)};
}

}  // namespace

Bytes open_bytes(const std::filesystem::path& file, int64_t most) {
  auto whole = mapped(file);
  const bool packed = whole.bytes.size() >= 2 && whole.bytes[0] == std::byte{0x1f} &&
                      whole.bytes[1] == std::byte{0x8b};
  if (!packed) {
    return whole;
  }
  auto text = std::make_shared<const std::string>(gunzipped(MappedFile(file), most));
  const auto bytes = std::as_bytes(std::span(*text));
  return {std::move(text), bytes};
}

Examples examples_of_files(
    const std::vector<std::filesystem::path>& files, std::vector<int64_t> labels) {
  Examples examples;
  examples.labels = std::move(labels);
  examples.names.reserve(files.size());
  for (const auto& file : files) {
    require(is_file(file), "the image ", printable(file.string(), 400), " is not there");
    examples.names.push_back(file.string());
  }
  examples.image = [paths = files](int64_t index) {
    const MappedFile file(paths.at(index));
    return decode_image(file.bytes(), file.path().string());
  };
  return examples;
}

std::function<Image(int64_t)> images_of_arrays(std::vector<PixelArray> arrays) {
  for (const auto& array : arrays) {
    require<InternalError>(
        array.count > 0 && last_of(array) < std::ssize(array.values.bytes),
        "images that reach beyond their bytes");
  }
  return [arrays = std::move(arrays)](int64_t index) {
    for (const auto& array : arrays) {
      if (index < array.count) {
        return image_of(array, index);
      }
      index -= array.count;
    }
    throw InternalError("an image beyond the last");
  };
}

std::function<Image(int64_t)> images_of_bytes(
    std::vector<Bytes> parts, std::vector<std::string> names) {
  return [parts = std::move(parts), names = std::move(names)](int64_t index) {
    return decode_image(parts.at(index).bytes, names.at(index));
  };
}

}  // namespace theseus::data
