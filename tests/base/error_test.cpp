#include "theseus/base/error.h"

#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "theseus/base/plugin.h"

namespace theseus {
namespace {

// What leaves with_context("reading x") when `thrown` leaves its body.
template <class Expected, class Thrown>
std::string translated(const Thrown& thrown) {
  try {
    with_context("reading x", [&] { throw thrown; });
  } catch (const Expected& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Error, SaysTheFailureFirstAndThenTheTrail) {
  InputError error("no such tensor");
  error.add_context("opening model.safetensors");
  error.add_context("inspecting dir");
  EXPECT_STREQ(
      error.what(), "no such tensor\n  while opening model.safetensors\n  while inspecting dir");
}

TEST(Error, CopiesKeepTheTrail) {
  InputError error("wrong");
  error.add_context("reading x");
  const Error copy = error;
  EXPECT_STREQ(copy.what(), "wrong\n  while reading x");
}

TEST(Require, ThrowsTheAskedKindWithItsPartsJoined) {
  EXPECT_NO_THROW(require(true, "unused"));
  try {
    require<NumericError>(false, "row ", 3, " of ", 'q', " is not finite");
    FAIL();
  } catch (const NumericError& error) {
    EXPECT_STREQ(error.what(), "row 3 of q is not finite");
  }
  EXPECT_THROW(require(false, "by default the caller's to mend"), InputError);
}

TEST(WithContext, ReturnsWhatTheBodyReturns) {
  EXPECT_EQ(with_context("counting", [] { return 3; }), 3);
  std::vector<int> values = {1};
  int& first = with_context("looking", [&]() -> int& { return values[0]; });
  EXPECT_EQ(&first, values.data());
}

TEST(WithContext, KeepsTheKindOfOurErrors) {
  EXPECT_EQ(translated<InputError>(InputError("a")), "a\n  while reading x");
  EXPECT_EQ(translated<NumericError>(NumericError("a")), "a\n  while reading x");
  EXPECT_EQ(translated<InternalError>(InternalError("a")), "a\n  while reading x");
}

TEST(WithContext, NestedContextsAreListedFromTheInside) {
  const auto inner = [] { with_context("inner", [] { throw InputError("wrong"); }); };
  try {
    with_context("outer", inner);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "wrong\n  while inner\n  while outer");
  }
}

TEST(WithContext, OutOfMemoryIsForTheCallerToMend) {
  EXPECT_EQ(translated<InputError>(std::bad_alloc()), "out of memory\n  while reading x");
}

TEST(WithContext, TheFileSystemsRefusalsAreForTheCallerToMend) {
  const std::filesystem::filesystem_error refusal(
      "cannot list", "/data/models", std::make_error_code(std::errc::permission_denied));
  const auto message = translated<InputError>(refusal);
  EXPECT_NE(message.find("/data/models"), std::string::npos) << message;
  EXPECT_NE(message.find("Permission denied"), std::string::npos) << message;
}

TEST(WithContext, OtherExceptionsAreOurBug) {
  EXPECT_EQ(translated<InternalError>(std::out_of_range("at")), "at\n  while reading x");
}

TEST(WithContext, LibtorchErrorsLoseTheirStackFrames) {
  try {
    with_context("adding", [] { TORCH_CHECK(false, "shapes [2] and [3] do not match"); });
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "shapes [2] and [3] do not match\n  while adding");
  }
}

TEST(WithContext, LibtorchOutOfMemoryIsForTheCallerToMend) {
  for (const char* text :
       {"CUDA out of memory. Tried to allocate 2 GiB",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"}) {
    EXPECT_THROW(with_context("adding", [&] { TORCH_CHECK(false, text); }), InputError) << text;
  }
}

TEST(ThrowTranslated, LeavesOurErrorsOursAndAnEmptyTrailEmpty) {
  const auto through = [](auto thrown) {
    try {
      throw thrown;
    } catch (const std::exception&) {
      throw_translated("");
    }
  };
  try {
    through(NumericError("not finite"));
    FAIL();
  } catch (const NumericError& error) {
    EXPECT_STREQ(error.what(), "not finite");
  }
  try {
    through(std::logic_error("odd"));
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "odd");
  }
}

TEST(FindPlugin, FindsByNameAndOtherwiseNamesWhatThereIs) {
  const int one = 1;
  const int two = 2;
  const Plugin<int> rows[] = {{"bert", &one}, {"llama", &two}};
  const std::span<const Plugin<int>> table(rows);
  EXPECT_EQ(&find_plugin(table, "model family", "llama"), &two);
  try {
    find_plugin(table, "model family", "lama");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "unknown model family 'lama'; this build has: bert llama");
  }
}

}  // namespace
}  // namespace theseus
