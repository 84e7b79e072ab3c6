#include "theseus/data/text/normalise.h"

#include <algorithm>
#include <cstdint>
#include <utf8proc.h>

#include "theseus/base/error.h"
#include "theseus/data/text/unicode.h"

namespace theseus::data::text {
namespace {

struct Part {
  utf8proc_int32_t value;
  Aligned::Origin origin;
};

utf8proc_propval_t combining_class(utf8proc_int32_t value) {
  return utf8proc_get_property(value)->combining_class;
}

// Whether a character may combine with what stands before it. A little too often is harmless.
bool continues(char32_t value) {
  if (value < 0x300) {
    return false;
  }
  // U+11A7 stands for no final consonant and combines with nothing; utf8proc would swallow it.
  const bool jamo = value >= 0x1160 && value <= 0x11FF && value != 0x11A7;
  const bool halfwidth_mark = value == 0xFF9E || value == 0xFF9F;
  return jamo || halfwidth_mark || is_mark(value) ||
         combining_class(static_cast<utf8proc_int32_t>(value)) != 0;
}

void decompose(char32_t value, Aligned::Origin origin, bool compatible, std::vector<Part>& out) {
  const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  utf8proc_int32_t buffer[32];
  int boundary = 0;
  const auto size = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(value), buffer, 32, static_cast<utf8proc_option_t>(options),
      &boundary);
  require<InternalError>(size >= 0 && size <= 32, "a character with ", size, " parts");
  for (utf8proc_ssize_t i = 0; i < size; ++i) {
    out.push_back({buffer[i], origin});
  }
}

// Canonical order. utf8proc's own takes quadratic time for long runs of marks.
void order_marks(std::vector<Part>& parts) {
  const auto starter = [](const Part& part) { return combining_class(part.value) == 0; };
  auto at = parts.begin();
  while (at != parts.end()) {
    const auto first = std::find_if_not(at, parts.end(), starter);
    const auto last = std::find_if(first, parts.end(), starter);
    std::stable_sort(first, last, [](const Part& a, const Part& b) {
      return combining_class(a.value) < combining_class(b.value);
    });
    at = last;
  }
}

void compose(std::vector<Part>& parts, Aligned::Origin whole) {
  std::vector<utf8proc_int32_t> values;
  for (const Part& part : parts) {
    values.push_back(part.value);
  }
  const auto size = utf8proc_normalize_utf32(
      values.data(), static_cast<utf8proc_ssize_t>(values.size()),
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  require<InternalError>(size >= 0, "composing characters failed");
  parts.resize(static_cast<size_t>(size));
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i] = {values[i], whole};
  }
}

// One character and those that may combine with it.
void append_form(const Aligned& in, Range range, Form form, Aligned& out) {
  const bool compatible = form == Form::kNfkc || form == Form::kNfkd;
  std::vector<Part> parts;
  for (size_t at = range.begin; at < range.end;) {
    const CodePoint found = code_point(in.text, at);
    decompose(found.value, in.origins[at], compatible, parts);
    at += found.size;
  }
  order_marks(parts);
  if (form == Form::kNfc || form == Form::kNfkc) {
    const Range whole = in.origin(range);
    compose(parts, {static_cast<uint32_t>(whole.begin), static_cast<uint32_t>(whole.end)});
  }
  Aligned made;
  for (const Part& part : parts) {
    std::string bytes;
    append_utf8(bytes, static_cast<char32_t>(part.value));
    made.append(bytes, part.origin);
  }
  if (made.text == std::string_view(in.text).substr(range.begin, range.size())) {
    out.append(in, range);  // each keeps its own origin
  } else {
    out.append(made, {0, made.text.size()});
  }
}

// A sigma is final after a letter and before none, whatever case-ignorable characters lie between.
// `cased_before`: the last character that was not case-ignorable is cased.
bool is_final(std::string_view text, size_t next, bool cased_before) {
  if (!cased_before) {
    return false;
  }
  while (next < text.size()) {
    const CodePoint found = code_point(text, next);
    if (!is_case_ignorable(found.value)) {
      return !is_cased(found.value);
    }
    next += found.size;
  }
  return true;
}

Aligned clean(const Aligned& in) {
  Aligned out;
  for (size_t at = 0; at < in.text.size();) {
    const CodePoint found = code_point(in.text, at);
    const bool line = found.value == '\t' || found.value == '\n' || found.value == '\r';
    const bool dropped = !line && (found.value == 0 || found.value == kReplacement ||
                                   is_other(found.value));  // other white space among them
    if (!dropped && is_space(found.value)) {
      out.append(" ", in.origins[at]);
    } else if (!dropped) {
      out.append(in, {at, at + found.size});
    }
    at += found.size;
  }
  return out;
}

Aligned spaced_ideographs(const Aligned& in) {
  Aligned out;
  for (size_t at = 0; at < in.text.size();) {
    const CodePoint found = code_point(in.text, at);
    const bool spaced = is_ideograph(found.value);
    out.append(spaced ? " " : "", in.origins[at]);
    out.append(in, {at, at + found.size});
    out.append(spaced ? " " : "", in.origins[at]);
    at += found.size;
  }
  return out;
}

}  // namespace

Aligned unicode_form(const Aligned& in, Form form) {
  Aligned out;
  out.text.reserve(in.text.size());
  out.origins.reserve(in.text.size());
  for (size_t at = 0; at < in.text.size();) {
    const CodePoint first = code_point(in.text, at);
    size_t end = at + first.size;
    while (end < in.text.size()) {
      const CodePoint next = code_point(in.text, end);
      if (!continues(next.value)) {
        break;
      }
      end += next.size;
    }
    if (end == at + 1) {
      out.append(in, {at, end});  // one ASCII character
    } else {
      append_form(in, {at, end}, form, out);
    }
    at = end;
  }
  return out;
}

Aligned lower_case(const Aligned& in, bool final_sigma) {
  constexpr char32_t kSigma = 0x3A3;
  Aligned out;
  out.text.reserve(in.text.size());
  out.origins.reserve(in.text.size());
  bool cased = false;
  for (size_t at = 0; at < in.text.size();) {
    const CodePoint found = code_point(in.text, at);
    std::string lower;
    if (final_sigma && found.value == kSigma && is_final(in.text, at + found.size, cased)) {
      lower = "\xCF\x82";
    } else {
      append_lower(lower, found.value);
    }
    out.append(lower, in.origins[at]);
    cased = is_case_ignorable(found.value) ? cased : is_cased(found.value);
    at += found.size;
  }
  return out;
}

Aligned without(const Aligned& in, bool (*drop)(char32_t)) {
  Aligned out;
  for (size_t at = 0; at < in.text.size();) {
    const CodePoint found = code_point(in.text, at);
    if (!drop(found.value)) {
      out.append(in, {at, at + found.size});
    }
    at += found.size;
  }
  return out;
}

Aligned replaced(const Aligned& in, const std::vector<Range>& places, std::string_view by) {
  Aligned out;
  size_t at = 0;
  for (const Range& place : places) {
    out.append(in, {at, place.begin});
    const Range origin = in.origin(place);
    out.append(by, {static_cast<uint32_t>(origin.begin), static_cast<uint32_t>(origin.end)});
    at = place.end;
  }
  out.append(in, {at, in.text.size()});
  return out;
}

Aligned bert_form(const Aligned& in, const BertSettings& settings) {
  Aligned made = settings.clean ? clean(in) : in;
  if (settings.ideographs) {
    made = spaced_ideographs(made);
  }
  if (settings.strip_accents) {
    made = without(unicode_form(made, Form::kNfd), is_nonspacing);
  }
  return settings.lower ? lower_case(made) : made;
}

}  // namespace theseus::data::text
