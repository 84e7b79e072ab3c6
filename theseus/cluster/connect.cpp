#include "theseus/cluster/connect.h"

#include <chrono>
#include <cstdlib>
#include <netdb.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "theseus/base/error.h"

namespace theseus::cluster {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kPause = 20ms;

c10::intrusive_ptr<c10d::Store> open_store(const Place& place) {
  const auto seconds = place.meet_seconds;
  c10d::TCPStoreOptions options;
  options.port = place.port;
  options.isServer = place.first() && !place.store_is_there;
  options.waitWorkers = false;  // they are counted below, by their ranks
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  const auto where = c10::str(place.address, ":", place.port);
  try {
    return c10::make_intrusive<c10d::PrefixStore>(
        place.prefix, c10::make_intrusive<c10d::TCPStore>(place.address, options));
  } catch (const std::exception& error) {
    const std::string text = error.what();
    const bool taken = text.find("ddress already in use") != std::string::npos ||
                       text.find("EADDRINUSE") != std::string::npos;
    require(
        !taken, "port ", place.port,
        " of this machine is taken, so the processes cannot meet there; choose another "
        "MASTER_PORT");
    throw InputError(
        options.isServer
            ? c10::str("cannot listen at ", where, " (MASTER_ADDR and MASTER_PORT)")
            : c10::str(
                  "process ", place.rank, " of ", place.size, " did not reach process 0 at ", where,
                  " (MASTER_ADDR and MASTER_PORT) within ", seconds, " s"));
  }
}

std::vector<uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string text_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::string size_key(int rank) {
  return c10::str("size/", rank);
}

void wait_for_all(const Place& place, c10d::Store& store) {
  const auto seconds = place.meet_seconds;
  require(
      store.add(c10::str("came/", place.rank), 1) == 1, "two processes have RANK ", place.rank,
      ", or another job meets at ", place.address, ":", place.port);
  store.set(size_key(place.rank), bytes_of(std::to_string(place.size)));
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::string missing;
  for (int rank = 0; rank < place.size; ++rank) {
    while (!store.check({size_key(rank)}) && Clock::now() < end) {
      std::this_thread::sleep_for(kPause);
    }
    if (!store.check({size_key(rank)})) {
      missing.append(missing.empty() ? "" : ", ").append(std::to_string(rank));
      continue;
    }
    const auto size = text_of(store.get(size_key(rank)));
    require(
        size == std::to_string(place.size), "WORLD_SIZE is ", place.size, " for process ",
        place.rank, " and ", size, " for process ", rank);
  }
  require(
      missing.empty(), "of ", place.size, " processes these did not come to ", place.address, ":",
      place.port, " within ", seconds, " s: ", missing);
}

// The address of this machine that the one called `host` sees, so that others can reach us there: a
// machine's own name often leads to 127.0.1.1. Empty: cannot be told. Nothing is sent.
std::string address_towards(const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return "";
  }
  std::string result;
  for (auto* each = found; each != nullptr && result.empty(); each = each->ai_next) {
    const int socket = ::socket(each->ai_family, each->ai_socktype, each->ai_protocol);
    sockaddr_storage own = {};
    socklen_t size = sizeof(own);
    char text[NI_MAXHOST] = {};
    if (socket >= 0 && ::connect(socket, each->ai_addr, each->ai_addrlen) == 0 &&
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        ::getnameinfo(
            reinterpret_cast<sockaddr*>(&own), size, text, sizeof(text), nullptr, 0,
            NI_NUMERICHOST) == 0) {
      result = text;
    }
    if (socket >= 0) {
      ::close(socket);
    }
  }
  ::freeaddrinfo(found);
  return result;
}

}  // namespace

c10::intrusive_ptr<c10d::ProcessGroupGloo> connect(const Place& place) {
  const auto store = open_store(place);
  try {
    wait_for_all(place, *store);
  } catch (const InputError&) {
    throw;
  } catch (const std::exception&) {
    throw InputError(
        "process 0, where the processes meet, is gone: it has said why, or was killed");
  }
  auto options = c10d::ProcessGroupGloo::Options::create(
      std::chrono::milliseconds(static_cast<int64_t>(place.wait_seconds * 1000)));
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  const auto own = address_towards(place.address, place.port);
  options->devices.push_back(
      interface != nullptr ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
      : own.empty()        ? c10d::ProcessGroupGloo::createDefaultDevice()
                           : c10d::ProcessGroupGloo::createDeviceForHostname(own));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>("gloo", store), place.rank, place.size, options);
}

}  // namespace theseus::cluster
