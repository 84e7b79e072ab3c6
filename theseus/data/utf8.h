#pragma once

#include <string>
#include <string_view>

namespace theseus::data {

// The text of a file or of a part of one, without a byte order mark. Throws InputError that names `origin`, the line and the
// byte unless all of it is UTF-8.
std::string_view utf8_text(std::string_view bytes, const std::string& origin);

bool is_utf8(std::string_view bytes);

}  // namespace theseus::data
