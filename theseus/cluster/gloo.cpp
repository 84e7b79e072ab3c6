#include "theseus/cluster/gloo.h"

#include <chrono>
#include <cstdlib>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace theseus::cluster {
namespace {

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

c10::intrusive_ptr<c10d::ProcessGroupGloo> make_gloo(
    const Place& place, const c10::intrusive_ptr<c10d::Store>& store) {
  auto options = c10d::ProcessGroupGloo::Options::create(
      std::chrono::milliseconds(static_cast<int64_t>(place.wait_seconds * 1000)));
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  const auto own = address_towards(place.address, place.port);
  options->devices.push_back(
      interface != nullptr ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
      : own.empty()        ? c10d::ProcessGroupGloo::createDefaultDevice()
                           : c10d::ProcessGroupGloo::createDeviceForHostname(own));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, place.rank, place.size, options);
}

}  // namespace theseus::cluster
