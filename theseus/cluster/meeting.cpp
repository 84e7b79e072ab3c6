#include "theseus/cluster/meeting.h"

#include <thread>
#include <type_traits>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "theseus/base/error.h"

namespace theseus::cluster {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kPause = 20ms;
constexpr const char* kStatus = "status";      // of a job that failed
constexpr const char* kFinished = "finished";  // the first process came to its end

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

// What `body` returns, which asks the store. The store is gone when the first process is.
template <class Body>
std::invoke_result_t<Body> ask(const Body& body) {
  try {
    return body();
  } catch (const InputError&) {
    throw;
  } catch (const std::exception&) {
    throw InputError(
        "process 0, where the processes meet, is gone: it has said why, or was killed; what was "
        "saved is kept, and the same command goes on from there");
  }
}

// That this process knows how the job ended.
std::string left_key(int rank) {
  return c10::str("left/", rank);
}

}  // namespace

Meeting::Meeting(const Place& place) : place_(place), store_(open_store(place)) {
  ask([&] { wait_for_all(); });
}

void Meeting::wait_for_all() const {
  const auto seconds = place_.meet_seconds;
  require(
      store_->add(c10::str("came/", place_.rank), 1) == 1, "two processes have RANK ", place_.rank,
      ", or another job meets at ", place_.address, ":", place_.port);
  store_->set(size_key(place_.rank), bytes_of(std::to_string(place_.size)));
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::string missing;
  for (int rank = 0; rank < place_.size; ++rank) {
    while (!store_->check({size_key(rank)}) && Clock::now() < end) {
      std::this_thread::sleep_for(kPause);
    }
    if (!store_->check({size_key(rank)})) {
      missing.append(missing.empty() ? "" : ", ").append(std::to_string(rank));
      continue;
    }
    const auto size = text_of(store_->get(size_key(rank)));
    require(
        size == std::to_string(place_.size), "WORLD_SIZE is ", place_.size, " for process ",
        place_.rank, " and ", size, " for process ", rank);
  }
  require(
      missing.empty(), "of ", place_.size, " processes these did not come to ", place_.address, ":",
      place_.port, " within ", seconds, " s: ", missing);
}

c10::intrusive_ptr<c10d::Store> Meeting::store(const std::string& name) const {
  return c10::make_intrusive<c10d::PrefixStore>(name, store_);
}

std::optional<int> Meeting::find_end() const {
  return ask([&]() -> std::optional<int> {
    if (!store_->check({kStatus})) {
      return std::nullopt;
    }
    const auto status = std::stoi(text_of(store_->get(kStatus)));
    leave();
    if (place_.first()) {
      wait_for_others(5s);  // else they would find the store gone, and not why
    }
    return status;
  });
}

void Meeting::leave() const {
  store_->set(left_key(place_.rank), bytes_of("1"));
}

// The first process keeps the store, so it leaves last. Who is busy does not know yet, and who was
// lost never will.
void Meeting::wait_for_others(std::chrono::seconds at_most) const {
  const auto end = Clock::now() + at_most;
  for (int rank = 1; rank < place_.size; ++rank) {
    while (!store_->check({left_key(rank)}) && Clock::now() < end) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

bool Meeting::fail(int status) const {
  try {
    const bool fastest = store_->add("failed", 1) == 1;
    if (fastest) {
      store_->set(kStatus, bytes_of(std::to_string(status)));
    }
    leave();
    if (place_.first()) {
      wait_for_others(5s);
    }
    return fastest;
  } catch (const std::exception&) {
    return true;  // the store is gone: nobody else can say it for us
  }
}

std::optional<int> Meeting::finish() const {
  if (place_.first()) {
    store_->set(kFinished, bytes_of("1"));
    wait_for_others(10s);
    return std::nullopt;
  }
  for (bool finished = false; !finished; std::this_thread::sleep_for(kPause)) {
    finished = store_->check({kFinished});
    if (const auto status = find_end()) {
      return status;
    }
  }
  leave();
  return std::nullopt;
}

}  // namespace theseus::cluster
