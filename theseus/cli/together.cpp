#include "theseus/cli/together.h"

#include "theseus/base/error.h"
#include "theseus/cli/command.h"

namespace theseus::cli {

int status_of(const std::exception& error) {
  if (const auto* elsewhere = dynamic_cast<const cluster::EndedElsewhere*>(&error)) {
    return elsewhere->status();
  }
  return dynamic_cast<const InputError*>(&error) != nullptr     ? kYourInput
         : dynamic_cast<const NumericError*>(&error) != nullptr ? kNoTrustworthyNumber
                                                                : kOurBug;
}

void require_one_process(std::string_view what) {
  const auto place = cluster::find_place();
  if (!place.first()) {
    throw cluster::EndedElsewhere(kYourInput);
  }
  require(
      place.alone(), what, " runs as one process: start it without a launcher (WORLD_SIZE is ",
      place.size, ")");
}

int run_together(const std::function<int(const cluster::Processes& processes)>& body) {
  const cluster::Processes processes(cluster::find_place());
  try {
    return with_context({}, [&] { return body(processes); });
  } catch (const cluster::EndedElsewhere&) {
    throw;
  } catch (const std::exception& error) {
    const auto status = status_of(error);
    if (!processes.fail(status)) {
      throw cluster::EndedElsewhere(status);
    }
    throw;
  }
}

}  // namespace theseus::cli
