#define PCRE2_CODE_UNIT_WIDTH 8
#include "theseus/data/text/pattern.h"

#include <algorithm>
#include <cstdint>
#include <pcre2.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/text/unicode.h"

namespace theseus::data::text {
namespace {

constexpr std::string_view kWordClass = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}";

// The same expression in PCRE2's words. PCRE2's \s has U+180E, which is no white space any more, and
// its \w lacks marks.
class Translation {
 public:
  Translation(std::string_view expression, const std::string& where)
      : in_(expression), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) {
      if (in_[at_] == '\\' && at_ + 1 < in_.size()) {
        escape(in_[at_ + 1]);
        at_ += 2;
      } else {
        plain(in_[at_]);
        ++at_;
      }
    }
    return out_;
  }

 private:
  void escape(char letter) {
    refuse(letter == 'h' || letter == 'H', "\\h");
    refuse(letter == 'W' && in_class_, "\\W in a class");
    if (letter == 's' || letter == 'S') {
      out_.append(letter == 's' ? "\\p{White_Space}" : "\\P{White_Space}");
    } else if (letter == 'w' && in_class_) {
      out_.append(kWordClass);
    } else if (letter == 'w' || letter == 'W') {
      out_.append(letter == 'w' ? "[" : "[^").append(kWordClass).append("]");
    } else {
      out_.append({'\\', letter});
    }
  }

  void plain(char letter) {
    if (in_class_) {
      const bool first = class_begin_ == at_;
      const char next = at_ + 1 < in_.size() ? in_[at_ + 1] : '\0';
      refuse(letter == '[' && next != ':', "a class in a class");
      refuse(letter == '&' && next == '&', "&& in a class");
      in_class_ = letter != ']' || first || in_[at_ - 1] == ':';
    } else if (letter == '[') {
      in_class_ = true;
      class_begin_ = at_ + (at_ + 1 < in_.size() && in_[at_ + 1] == '^' ? 2 : 1);
    }
    out_.push_back(letter);
  }

  void refuse(bool found, std::string_view what) const {
    require(
        !found, where_, ": ", what, " is not implemented in regular expressions: ", printable(in_));
  }

  std::string_view in_;
  const std::string& where_;
  size_t at_ = 0;
  bool in_class_ = false;
  size_t class_begin_ = 0;
  std::string out_;
};

template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* object) const { release(object); }
};
using Code = std::unique_ptr<pcre2_code, Release<pcre2_code, pcre2_code_free>>;
using MatchData =
    std::unique_ptr<pcre2_match_data, Release<pcre2_match_data, pcre2_match_data_free>>;
using MatchContext =
    std::unique_ptr<pcre2_match_context, Release<pcre2_match_context, pcre2_match_context_free>>;
using CompileContext = std::
    unique_ptr<pcre2_compile_context, Release<pcre2_compile_context, pcre2_compile_context_free>>;

std::string message_of(int code) {
  PCRE2_UCHAR message[256] = {};
  pcre2_get_error_message(code, message, sizeof(message));
  return reinterpret_cast<const char*>(message);
}

}  // namespace

struct Pattern::Compiled {
  Code code;
  std::string expression;
  std::string where;
};

Pattern::Pattern(std::string_view expression, const std::string& where)
    : compiled_(std::make_unique<Compiled>()) {
  compiled_->expression = Translation(expression, where).run();
  compiled_->where = where;
  const CompileContext context(pcre2_compile_context_create(nullptr));
  require<InternalError>(context != nullptr, "no memory for a regular expression");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE place = 0;
  compiled_->code.reset(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(compiled_->expression.data()), compiled_->expression.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &place,
      context.get()));
  require(
      compiled_->code != nullptr, where, ": the regular expression ", printable(expression),
      " cannot be used: ", message_of(error));
  pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE);  // without it, it is only slower
}

Pattern::~Pattern() = default;

std::vector<Range> Pattern::matches(std::string_view text) const {
  const MatchData data(pcre2_match_data_create(1, nullptr));
  const MatchContext context(pcre2_match_context_create(nullptr));
  require<InternalError>(data && context, "no memory for matching a regular expression");
  const size_t steps = std::min<size_t>(10'000'000 + 100 * text.size(), UINT32_MAX);
  pcre2_set_match_limit(context.get(), static_cast<uint32_t>(steps));
  pcre2_set_heap_limit(context.get(), 1 << 20);  // KiB
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::vector<Range> found;
  for (size_t at = 0; at <= text.size();) {
    const uint32_t options = PCRE2_NO_UTF_CHECK;  // it would read the whole text each time
    int count = pcre2_match(
        compiled_->code.get(), subject, text.size(), at, options, data.get(), context.get());
    if (count == PCRE2_ERROR_JIT_STACKLIMIT) {
      count = pcre2_match(
          compiled_->code.get(), subject, text.size(), at, options | PCRE2_NO_JIT, data.get(),
          context.get());
    }
    if (count == PCRE2_ERROR_NOMATCH) {
      break;
    }
    require(
        count >= 0, compiled_->where, ": matching ", printable(compiled_->expression),
        " failed: ", message_of(count));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    const Range range = {ends[0], ends[1]};
    require(range.begin <= range.end, compiled_->where, ": \\K in a lookahead is not implemented");
    found.push_back(range);
    const bool empty = range.begin == range.end;
    at = range.end + (empty && range.end < text.size() ? code_point(text, range.end).size : empty);
  }
  return found;
}

std::string Pattern::quoted(std::string_view literal) {
  std::string out;
  for (const char letter : literal) {
    if (std::string_view("\\^$.|?*+()[]{}-&#").find(letter) != std::string_view::npos) {
      out.push_back('\\');
    }
    out.push_back(letter);
  }
  return out;
}

}  // namespace theseus::data::text
