#include "theseus/data/mat_file.h"

#include <cmath>
#include <matio.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"

namespace theseus::data {
namespace {

using Variable = std::shared_ptr<matvar_t>;

int64_t elements(const matvar_t& variable) {
  int64_t count = variable.rank > 0 ? 1 : 0;
  for (int i = 0; i < variable.rank; ++i) {
    require(
        !__builtin_mul_overflow(count, variable.dims[i], &count) && count >= 0,
        "an array of impossible size");
  }
  return count;
}

// Whether the values that the shape promises were read: libmatio leaves out what it cannot read and keeps
// the shape.
bool is_whole(const matvar_t& variable, int64_t count, int64_t size) {
  int64_t bytes = 0;
  return variable.data != nullptr && !__builtin_mul_overflow(count, size, &bytes) &&
         bytes <= static_cast<int64_t>(variable.nbytes);
}

template <class T>
int64_t value_at(const matvar_t& variable, int64_t index) {
  const auto value = static_cast<const T*>(variable.data)[index];
  require(
      static_cast<double>(value) == std::floor(static_cast<double>(value)) &&
          std::abs(static_cast<double>(value)) < 1e15,
      "expected a whole number, found ", static_cast<double>(value));
  return static_cast<int64_t>(value);
}

int64_t integer_at(const matvar_t& variable, int64_t index) {
  require(
      index < elements(variable) && is_whole(variable, elements(variable), variable.data_size),
      "expected a number, found nothing");
  switch (variable.class_type) {
    case MAT_C_DOUBLE:
      return value_at<double>(variable, index);
    case MAT_C_SINGLE:
      return value_at<float>(variable, index);
    case MAT_C_UINT8:
      return value_at<uint8_t>(variable, index);
    case MAT_C_INT8:
      return value_at<int8_t>(variable, index);
    case MAT_C_UINT16:
      return value_at<uint16_t>(variable, index);
    case MAT_C_INT16:
      return value_at<int16_t>(variable, index);
    case MAT_C_UINT32:
      return value_at<uint32_t>(variable, index);
    case MAT_C_INT32:
      return value_at<int32_t>(variable, index);
    default:
      throw InputError("expected numbers, found another kind of value");
  }
}

// libmatio's own search takes a struct whose names were not read for a sound one.
int64_t place_of(matvar_t& variable, const std::string& field) {
  const auto count = static_cast<int64_t>(Mat_VarGetNumberOfFields(&variable));
  const auto* names = Mat_VarGetStructFieldnames(&variable);
  for (int64_t i = 0; names != nullptr && i < count; ++i) {
    if (names[i] != nullptr && names[i] == field) {
      return i;
    }
  }
  throw InputError("there is no such field");
}

std::string text_of(const matvar_t& variable) {
  require(variable.class_type == MAT_C_CHAR, "expected a string, found another kind of value");
  const auto count = elements(variable);
  require(count == 0 || is_whole(variable, count, variable.data_size), "a damaged string");
  if (variable.data_size == 1) {
    return {static_cast<const char*>(variable.data), static_cast<size_t>(count)};
  }
  require(count == 0 || variable.data_size == 2, "a string of a kind that is not read");
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    const auto letter = static_cast<const uint16_t*>(variable.data)[i];
    require(letter < 0x80, "a string with letters outside ASCII, which are not read");
    text.push_back(static_cast<char>(letter));
  }
  return text;
}

}  // namespace

struct MatFile::State {
  std::string path;
  mat_t* file = nullptr;

  // Says where a value was wrong.
  template <class Body>
  auto inside(const std::string& variable, Body&& body) const {
    return with_context(c10::str("reading '", variable, "' of ", path), body);
  }

  Variable read(const std::string& name) const {
    Variable variable(Mat_VarRead(file, name.c_str()), [](matvar_t* v) { Mat_VarFree(v); });
    require(variable != nullptr, path, " has no variable '", name, "', or it is damaged");
    return variable;
  }

  template <class Value, class Take>
  std::vector<Value> field(const std::string& name, const std::string& field, Take take) const {
    const auto variable = read(name);
    return inside(name + "." + field, [&] {
      require(variable->class_type == MAT_C_STRUCT, "expected an array of structs");
      const auto fields = static_cast<int64_t>(Mat_VarGetNumberOfFields(variable.get()));
      const auto place = place_of(*variable, field);
      require(
          is_whole(*variable, elements(*variable), fields * int64_t{sizeof(matvar_t*)}),
          "a damaged array of structs");
      const auto* const* parts = static_cast<const matvar_t* const*>(variable->data);
      std::vector<Value> values;
      for (int64_t i = 0; i < elements(*variable); ++i) {
        const auto* element = parts[i * fields + place];
        require(element != nullptr, "element ", i, " is missing");
        values.push_back(take(*element));
      }
      return values;
    });
  }
};

MatFile::MatFile(const std::filesystem::path& path) : state_(std::make_unique<State>()) {
  const MappedFile readable(path);  // says what is wrong with the path
  state_->path = path.string();
  state_->file = Mat_Open(path.c_str(), MAT_ACC_RDONLY);
  require(state_->file != nullptr, path.string(), " is not a MATLAB file");
}

MatFile::~MatFile() {
  if (state_->file != nullptr) {
    Mat_Close(state_->file);
  }
}

bool MatFile::has(const std::string& name) const {
  const Variable variable(
      Mat_VarReadInfo(state_->file, name.c_str()), [](matvar_t* v) { Mat_VarFree(v); });
  return variable != nullptr;
}

MatFile::ByteArray MatFile::bytes(const std::string& name) const {
  const auto variable = state_->read(name);
  return state_->inside(name, [&] {
    require(
        variable->class_type == MAT_C_UINT8 && variable->data_size == 1 &&
            is_whole(*variable, elements(*variable), 1),
        "expected an array of 8-bit numbers");
    ByteArray array;
    array.shape.assign(variable->dims, variable->dims + variable->rank);
    array.values = {
        variable,
        {static_cast<const std::byte*>(variable->data), static_cast<size_t>(elements(*variable))}};
    return array;
  });
}

std::vector<int64_t> MatFile::integers(const std::string& name) const {
  const auto variable = state_->read(name);
  return state_->inside(name, [&] {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < elements(*variable); ++i) {
      values.push_back(integer_at(*variable, i));
    }
    return values;
  });
}

std::vector<std::string> MatFile::texts(const std::string& name) const {
  const auto variable = state_->read(name);
  return state_->inside(name, [&] {
    require(
        variable->class_type == MAT_C_CELL &&
            is_whole(*variable, elements(*variable), sizeof(matvar_t*)),
        "expected a cell array of strings");
    std::vector<std::string> values;
    for (int64_t i = 0; i < elements(*variable); ++i) {
      const auto* cell = Mat_VarGetCell(variable.get(), static_cast<int>(i));
      require(cell != nullptr, "cell ", i, " is missing");
      values.push_back(text_of(*cell));
    }
    return values;
  });
}

std::vector<int64_t> MatFile::integers(const std::string& name, const std::string& field) const {
  return state_->field<int64_t>(
      name, field, [](const matvar_t& element) { return integer_at(element, 0); });
}

std::vector<std::string> MatFile::texts(const std::string& name, const std::string& field) const {
  return state_->field<std::string>(
      name, field, [](const matvar_t& element) { return text_of(element); });
}

}  // namespace theseus::data
