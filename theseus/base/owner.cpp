#include "theseus/base/owner.h"

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

namespace theseus {

bool owner_has_ended(const std::filesystem::path& path, std::string_view process, int mode) {
  pid_t number = 0;
  const auto* end = process.data() + process.size();
  const auto parsed = std::from_chars(process.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number <= 0 || ::kill(number, 0) == 0 ||
      errno != ESRCH) {
    return false;
  }
  const int descriptor = ::open(path.c_str(), mode | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  const bool ended = descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  if (descriptor >= 0) {
    ::close(descriptor);
  }
  return ended;
}

}  // namespace theseus
