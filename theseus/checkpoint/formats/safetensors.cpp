#include "theseus/base/text.h"
#include "theseus/checkpoint/safetensors_header.h"
#include "theseus/checkpoint/tensor_file.h"
#include "theseus/checkpoint/tensor_view.h"

namespace theseus::checkpoint::formats {
namespace {

class SafetensorsFile : public TensorFile {
 public:
  explicit SafetensorsFile(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
    auto header = read_safetensors_header(file_->bytes(), file_->path().string());
    for (auto& record : header.tensors) {
      TensorInfo info;
      info.name = std::move(record.name);
      info.dtype = record.dtype;
      info.shape = std::move(record.shape);
      info.bytes = static_cast<int64_t>(record.end - record.begin);
      begins_.push_back(record.begin);
      tensors_.push_back(std::move(info));
    }
  }

  std::span<const TensorInfo> tensors() const override { return tensors_; }

  at::Tensor tensor(size_t index) const override {
    const TensorInfo& info = tensors_.at(index);
    const auto where = c10::str(file_->path().string(), ": tensor '", printable(info.name), "'");
    return view_mapped(
        file_, {begins_[index], scalar_type(info.dtype, where), info.shape, {}}, where);
  }

  void forget(size_t index) const override {
    file_->forget(begins_.at(index), static_cast<size_t>(tensors_[index].bytes));
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<TensorInfo> tensors_;
  std::vector<size_t> begins_;
};

}  // namespace

const Format& safetensors() {
  static const Format format = {
      {".safetensors"},
      begins_like_safetensors,
      [](std::shared_ptr<const MappedFile> file) -> std::unique_ptr<TensorFile> {
        return std::make_unique<SafetensorsFile>(std::move(file));
      },
  };
  return format;
}

}  // namespace theseus::checkpoint::formats
