#include "theseus/checkpoint/pickle.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/bytes.h"
#include "tests/support/expect_error.h"

namespace theseus::checkpoint {
namespace {

using tests::bytes_of;
using tests::error_of;
using tests::expect_parts;

const std::string kBegin = "\x80\x02";

std::string pickle_error(const std::string& opcodes) {
  const auto text = kBegin + opcodes;
  const auto message = error_of([&] { Pickle(bytes_of(text), "x.pkl"); });
  expect_parts(message, "x.pkl: ");
  return message;
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) {
    result += text;
  }
  return result;
}

int64_t integer_of(const std::string& opcodes) {
  const auto text = kBegin + opcodes + ".";
  const Pickle pickle(bytes_of(text), "x.pkl");
  return pickle.integer(pickle.root());
}

TEST(Pickle, Integers) {
  using namespace std::string_literals;
  EXPECT_EQ(integer_of("K\xff"), 255);
  EXPECT_EQ(integer_of("M\x01\x02"), 513);
  EXPECT_EQ(integer_of("J\xfe\xff\xff\xff"), -2);
  EXPECT_EQ(integer_of("\x8a\x00"s), 0);
  EXPECT_EQ(integer_of("\x8a\x01\xff"), -1);
  EXPECT_EQ(integer_of("\x8a\x02\xff\x00"s), 255);
  EXPECT_EQ(integer_of("\x8a\x08\0\0\0\0\0\0\0\x80"s), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(
      integer_of("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\0"s),
      std::numeric_limits<int64_t>::max());
  // What does not fit 64 bits is a float.
  const auto text = kBegin + "(\x8a\x09\0\0\0\0\0\0\0\x80\0\x8a\x09\0\0\0\0\0\0\0\0\xfft."s;
  const Pickle pickle(bytes_of(text), "x.pkl");
  const auto items = pickle.items(pickle.root());
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(pickle.number(items[0]), 0x1p63);
  EXPECT_EQ(pickle.number(items[1]), -0x1p64);
}

TEST(Pickle, FloatsTextAndContainers) {
  using namespace std::string_literals;
  const auto text = kBegin + "(G\x3f\xf8\0\0\0\0\0\0U\x02hi\x88N]}t."s;
  const Pickle pickle(bytes_of(text), "x.pkl");
  const auto items = pickle.items(pickle.root());
  ASSERT_EQ(items.size(), 6U);
  EXPECT_EQ(pickle.number(items[0]), 1.5);
  EXPECT_EQ(pickle.text(items[1]), "hi");
  EXPECT_TRUE(pickle.boolean(items[2]));
  EXPECT_EQ(pickle.kind(items[3]), PickleKind::kNone);
  EXPECT_EQ(pickle.kind(items[4]), PickleKind::kList);
  EXPECT_EQ(pickle.kind(items[5]), PickleKind::kDict);
  EXPECT_THROW(pickle.integer(items[1]), InternalError);
}

TEST(Pickle, OrderedDictFromPython2Pairs) {
  const auto text = kBegin +
                    "ccollections\nOrderedDict\n](]U\x01"
                    "aaK\x01"
                    "a]U\x01"
                    "baK\x02"
                    "ae\x85R.";
  const Pickle pickle(bytes_of(text), "x.pkl");
  EXPECT_EQ(pickle.integer(*pickle.find(pickle.root(), "b")), 2);
  EXPECT_FALSE(pickle.find(pickle.root(), "c").has_value());
}

TEST(Pickle, DepthCostsNoStack) {
  constexpr int kDepth = 2'000'000;
  const auto text = kBegin + std::string(kDepth, ']') + std::string(kDepth - 1, 'a') + ".";
  const Pickle pickle(bytes_of(text), "x.pkl");
  EXPECT_EQ(pickle.items(pickle.root()).size(), 1U);
}

TEST(Pickle, CyclesAreHarmless) {
  using namespace std::string_literals;
  const auto text = kBegin + "]q\0h\0a."s;
  const Pickle pickle(bytes_of(text), "x.pkl");
  EXPECT_EQ(pickle.items(pickle.root())[0].index, pickle.root().index);
}

TEST(Pickle, CopyingOneListAgainAndAgainIsRefused) {
  using namespace std::string_literals;
  const auto once = "ccollections\nOrderedDict\nq\1](" + repeated("NN\x86", 1000) + "e\x85q\0R"s;
  const auto text = kBegin + once + ".";
  EXPECT_NO_THROW(Pickle(bytes_of(text), "x.pkl"));
  expect_parts(pickle_error(once + repeated("h\1h\0R"s, 1000) + "."), "more values than");
}

TEST(Pickle, GlobalsAreRefusedByName) {
  expect_parts(pickle_error("cos\nsystem\nU\x02ls\x85R."), "'os.system'", "plain state dict");
  expect_parts(
      pickle_error("\x8c\x08"
                   "builtins\x8c\x04"
                   "exec\x93."),
      "'builtins.exec'");
  expect_parts(pickle_error("c\x1b[31m\nx\n."), "'\\x1b[31m.x'");
}

TEST(Pickle, DamageIsRefused) {
  using namespace std::string_literals;
  expect_parts(pickle_error(""), "1 bytes are needed, 0 are left");
  expect_parts(pickle_error("."), "other than one value");
  expect_parts(pickle_error("(."), "other than one value");
  expect_parts(pickle_error("NN."), "other than one value");
  expect_parts(pickle_error("0."), "missing on the stack");
  expect_parts(pickle_error("e."), "a mark is missing");
  expect_parts(pickle_error("(a."), "missing on the stack");
  expect_parts(pickle_error("Na."), "missing on the stack");
  expect_parts(pickle_error("NNa."), "other than a list");
  expect_parts(pickle_error("]NNs."), "other than a dict");
  expect_parts(pickle_error("}(Nu."), "no value");
  expect_parts(pickle_error("h\x05."), "was not kept");
  expect_parts(
      pickle_error("X\xff\xff\xff\xff"
                   "a."),
      "4294967295 bytes are needed");
  expect_parts(
      pickle_error("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                   "a."),
      "bytes are needed");
  expect_parts(pickle_error("\x95\xff\xff\xff\xff\xff\xff\xff\xffN."), "frame");
  expect_parts(pickle_error("ctorch"), "line does not end");
  expect_parts(pickle_error("NNR."), "other than a known name");
  expect_parts(pickle_error("ctorch\nfloat32\n)R."), "torch.float32, which is not a function");
  expect_parts(pickle_error("NNb."), "state of other than a dict");
  expect_parts(pickle_error("NQ."), "persistent id");
  expect_parts(pickle_error("\x80\x06N."), "protocol 6");
  expect_parts(pickle_error("ctorch._utils\n_rebuild_tensor_v2\n)R."), "too few arguments");
  expect_parts(pickle_error("ctorch._utils\n_rebuild_parameter\n)R."), "other than a tensor");
}

}  // namespace
}  // namespace theseus::checkpoint
