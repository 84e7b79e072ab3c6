// Token i of the source with token i of the target; padding left out.

#include "theseus/stats/matcher.h"

namespace theseus::stats::matchers {

const Matcher& text() {
  static const Matcher matcher = {
      .summary = "token by token, padding left out", .match = one_to_one};
  return matcher;
}

}  // namespace theseus::stats::matchers
