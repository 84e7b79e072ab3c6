#include "theseus/base/text.h"
#include "theseus/checkpoint/tensor_file.h"
#include "theseus/checkpoint/tensor_view.h"
#include "theseus/checkpoint/torch_archive.h"

namespace theseus::checkpoint::formats {
namespace {

class TorchZipFile : public TensorFile {
 public:
  explicit TorchZipFile(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
    auto archive = read_torch_archive(file_->bytes(), file_->path().string());
    note_ = std::move(archive.note);
    for (ArchivedTensor& tensor : archive.tensors) {
      TensorInfo info;
      info.name = std::move(tensor.name);
      info.dtype = tensor.dtype;
      info.shape = std::move(tensor.shape);
      info.bytes = tensor.bytes;
      info.storage = std::move(tensor.storage);
      tensors_.push_back(std::move(info));
      places_.push_back({tensor.begin, std::move(tensor.strides)});
    }
  }

  std::span<const TensorInfo> tensors() const override { return tensors_; }
  std::string note() const override { return note_; }

  at::Tensor tensor(size_t index) const override {
    const TensorInfo& info = tensors_.at(index);
    const Place& place = places_[index];
    const auto where = c10::str(file_->path().string(), ": tensor '", printable(info.name), "'");
    return view_mapped(
        file_, {place.begin, scalar_type(info.dtype, where), info.shape, place.strides}, where);
  }

  void forget(size_t index) const override {
    file_->forget(places_.at(index).begin, static_cast<size_t>(tensors_[index].bytes));
  }

 private:
  struct Place {
    size_t begin;
    std::vector<int64_t> strides;
  };

  std::shared_ptr<const MappedFile> file_;
  std::string note_;
  std::vector<TensorInfo> tensors_;
  std::vector<Place> places_;
};

}  // namespace

const Format& torch_zip() {
  static const Format format = {
      {".pt", ".pth", ".bin", ".ckpt"},
      begins_like_torch,
      [](std::shared_ptr<const MappedFile> file) -> std::unique_ptr<TensorFile> {
        return std::make_unique<TorchZipFile>(std::move(file));
      },
  };
  return format;
}

}  // namespace theseus::checkpoint::formats
