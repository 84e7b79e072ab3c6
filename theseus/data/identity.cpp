#include "theseus/data/identity.h"

#include <filesystem>

#include <c10/util/StringUtil.h>

#include "theseus/data/sampling.h"
#include "theseus/data/wording.h"

namespace theseus::data {
namespace {

std::string place_of(const std::string& name) {
  return std::filesystem::absolute(name).lexically_normal().string();
}

}  // namespace

std::string identity_of(const Examples& examples, int64_t place) {
  if (examples.text) {
    const auto text = worded(examples, examples.wording, place);
    return c10::str(
        text.first.size(), " ", text.second.size(), " ", text.first, text.second, text.answer);
  }
  return place_of(examples.names[static_cast<size_t>(place)]);
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

Identities places_of(const Examples& examples) {
  Identities result;
  for (const auto& name : examples.names) {
    result.insert(place_of(name));
  }
  return result;
}

}  // namespace theseus::data
