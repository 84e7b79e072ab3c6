#include "theseus/cluster/processes.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>
#include <type_traits>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/cluster/connect.h"

namespace theseus::cluster {
namespace {

using namespace std::chrono_literals;
using Tensors = std::vector<at::Tensor>;

// Gloo holds a copy of what it sums: of so many elements at a time.
constexpr int64_t kPiece = int64_t{1} << 23;

at::Tensor byte_tensor(const std::string& text) {
  auto bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::copy(text.begin(), text.end(), bytes.data_ptr<uint8_t>());  // none where there is no text
  return bytes;
}

std::string text_of(const at::Tensor& bytes) {
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(bytes.numel())};
}

// A parcel as text: what its tensors are, without their values.
std::string outline(const Parcel& parcel) {
  auto tensors = nlohmann::json::array();
  for (const auto& tensor : parcel.tensors) {
    tensors.push_back(
        {{"type", static_cast<int>(tensor.scalar_type())}, {"shape", tensor.sizes().vec()}});
  }
  return nlohmann::json{{"text", parcel.text}, {"tensors", tensors}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Parcel empty_parcel(const std::string& outline) {
  const auto json = nlohmann::json::parse(outline);
  Parcel parcel{json.at("text").get<std::string>(), {}};
  for (const auto& tensor : json.at("tensors")) {
    parcel.tensors.push_back(at::empty(
        tensor.at("shape").get<std::vector<int64_t>>(),
        static_cast<at::ScalarType>(tensor.at("type").get<int>())));
  }
  return parcel;
}

// Calls `each` with pieces of `tensor`, which is contiguous and on the CPU.
template <class Each>
void in_pieces(const at::Tensor& tensor, const Each& each) {
  const auto flat = tensor.view(-1);
  for (int64_t first = 0; first < flat.numel(); first += kPiece) {
    Tensors piece = {flat.narrow(0, first, std::min(kPiece, flat.numel() - first))};
    each(piece);
  }
}

at::Tensor on_host(const at::Tensor& tensor) {
  return tensor.to(at::kCPU).contiguous();
}

}  // namespace

struct Processes::Group {
  // What c10d throws says where in it a connection broke, and not why. A process that is being interrupted like the one
  // we lost has a second to end first.
  template <class Body>
  std::invoke_result_t<Body> run(const char* doing, const Body& body) const {
    try {
      return body();
    } catch (const std::exception& error) {
      const std::string text = error.what();
      const bool late = text.find("imed out") != std::string::npos;
      std::this_thread::sleep_for(1s);
      throw InputError(c10::str(
          late ? c10::str("another process did not answer within ", place.wait_seconds, " s")
               : std::string("another process has ended: it has said why, or was killed, or its "
                             "machine is gone"),
          " (", doing, "); what was saved is kept, and the same command goes on from there"));
    }
  }

  explicit Group(const Place& where) : place(where), gloo(connect(where)) {}

  void broadcast(Tensors& tensors) const { gloo->broadcast(tensors)->wait(); }
  void broadcast(const at::Tensor& tensor) const {
    in_pieces(tensor, [&](Tensors& piece) { broadcast(piece); });
  }

  std::string broadcast_text(const std::string& text) const {
    auto length = at::tensor(static_cast<int64_t>(text.size()), at::kLong).view({1});
    broadcast(length);
    auto bytes = place.first() ? byte_tensor(text) : at::empty({length.item<int64_t>()}, at::kByte);
    broadcast(bytes);
    return text_of(bytes);
  }

  void send(const at::Tensor& tensor) const {
    in_pieces(tensor, [&](Tensors& piece) { gloo->send(piece, 0, 0)->wait(); });
  }
  void receive(const at::Tensor& tensor, int from) const {
    in_pieces(tensor, [&](Tensors& piece) { gloo->recv(piece, from, 0)->wait(); });
  }

  Place place;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
};

Processes::Processes() = default;
Processes::~Processes() = default;
Processes::Processes(Processes&&) noexcept = default;
Processes& Processes::operator=(Processes&&) noexcept = default;

Processes::Processes(const Place& place)
    : place_(place), group_(place.alone() ? nullptr : std::make_unique<Group>(place)) {}

void Processes::sum(at::Tensor& tensor) const {
  if (alone()) {
    return;
  }
  require<InternalError>(
      tensor.scalar_type() == at::kDouble || tensor.scalar_type() == at::kLong, "a sum of ",
      tensor.scalar_type());
  const auto host = on_host(tensor);  // the same tensor where it can be
  group_->run("summing up", [&] {
    in_pieces(host, [&](Tensors& piece) { group_->gloo->allreduce(piece)->wait(); });
  });
  tensor = host.to(tensor.device());
}

std::string Processes::from_first(const std::string& text) const {
  return alone() ? text
                 : group_->run("following process 0", [&] { return group_->broadcast_text(text); });
}

Parcel Processes::from_first(const Parcel& parcel) const {
  if (alone()) {
    return parcel;
  }
  return group_->run("following process 0", [&] {
    const auto found = group_->broadcast_text(first() ? outline(parcel) : "");
    auto result = first() ? parcel : empty_parcel(found);
    for (auto& tensor : result.tensors) {
      tensor = on_host(tensor);
      group_->broadcast(tensor);
    }
    return result;
  });
}

void Processes::copy_from_first(const std::filesystem::path& path) const {
  if (alone()) {
    return;
  }
  std::error_code ignored;
  const auto size = std::stoll(
      from_first(std::to_string(first() ? std::filesystem::file_size(path, ignored) : 0)));
  std::ifstream in;
  std::ofstream out;
  if (first()) {
    in.open(path, std::ios::binary);
  } else {
    out.open(path, std::ios::binary);
  }
  auto bytes = at::empty({std::min<int64_t>(size, 8 * kPiece)}, at::kByte);
  for (int64_t done = 0; done < size; done += bytes.numel()) {
    const auto part = bytes.narrow(0, 0, std::min<int64_t>(bytes.numel(), size - done));
    auto* data = static_cast<char*>(part.data_ptr());
    if (first()) {
      in.read(data, part.numel());
    }
    group_->run("copying the examples", [&] { group_->broadcast(part); });
    if (!first()) {
      out.write(data, part.numel());
    }
  }
  out.close();
  require(first() ? !in.fail() : !out.fail(), "cannot copy ", path.string());
}

std::vector<Parcel> Processes::gather_in_first(const Parcel& mine) const {
  if (alone()) {
    return {};
  }
  return group_->run("gathering maps", [&] {
    std::vector<Parcel> parcels;
    if (!first()) {
      const auto text = byte_tensor(outline(mine));
      group_->send(at::tensor(text.numel(), at::kLong).view({1}));
      group_->send(text);
      for (const auto& tensor : mine.tensors) {
        group_->send(on_host(tensor));
      }
      return parcels;
    }
    for (int rank = 1; rank < size(); ++rank) {
      const auto length = at::empty({1}, at::kLong);
      group_->receive(length, rank);
      const auto text = at::empty({length.item<int64_t>()}, at::kByte);
      group_->receive(text, rank);
      parcels.push_back(empty_parcel(text_of(text)));
      for (const auto& tensor : parcels.back().tensors) {
        group_->receive(tensor, rank);
      }
    }
    return parcels;
  });
}

const Processes& alone() {
  static const Processes one;
  return one;
}

}  // namespace theseus::cluster
