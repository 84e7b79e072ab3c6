#include "theseus/data/identity.h"

#include <algorithm>
#include <filesystem>

#include <c10/util/StringUtil.h>

#include "theseus/data/sampling.h"
#include "theseus/data/wording.h"

namespace theseus::data {

std::string identity_of(const Examples& examples, int64_t place) {
  if (examples.text) {
    const auto text = worded(examples, examples.wording, place);
    return c10::str(
        text.first.size(), " ", text.second.size(), " ", text.first, text.second, text.answer);
  }
  return std::filesystem::absolute(examples.names[static_cast<size_t>(place)])
      .lexically_normal()
      .string();
}

Identities identities_of(const Examples& examples, const std::vector<int64_t>& places) {
  Identities result;
  for (const auto place : places) {
    result.insert(identity_of(examples, place));
  }
  return result;
}

Identities identities_of(const Examples& examples) {
  return identities_of(examples, every(examples));
}

int64_t count_shared(const Examples& examples, const Identities& others) {
  const auto places = every(examples);
  return std::count_if(places.begin(), places.end(), [&](int64_t place) {
    return others.contains(identity_of(examples, place));
  });
}

}  // namespace theseus::data
