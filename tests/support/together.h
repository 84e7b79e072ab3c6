#pragma once

#include <exception>
#include <functional>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "theseus/cluster/processes.h"

namespace theseus::tests {

inline uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

// Runs `body` in threads that stand for processes; what each threw, or null.
inline std::vector<std::exception_ptr> run_together(
    int size, const std::function<void(const cluster::Processes&)>& body) {
  const auto port = free_port();
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const cluster::Processes processes(
            {.rank = rank,
             .size = size,
             .address = "127.0.0.1",
             .port = port,
             .meet_seconds = 60,
             .wait_seconds = 60});
        body(processes);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return errors;
}

}  // namespace theseus::tests
