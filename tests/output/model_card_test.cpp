#include "theseus/output/model_card.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "theseus/model/family.h"
#include "theseus/output/markdown.h"

#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

using tests::expect_parts;
using Object = nlohmann::ordered_json;

TEST(Markdown, TextShowsAsItIs) {
  EXPECT_EQ(markdown_text("a|b\nc"), "a\\|b c");
  EXPECT_EQ(
      markdown_text("[x](y) <b> *z* _u_ `c` \\ ~ $m$ &amp;"),
      "\\[x\\](y) \\<b\\> \\*z\\* \\_u\\_ \\`c\\` \\\\ \\~ \\$m\\$ \\&amp;");
  EXPECT_EQ(markdown_text("\x1b[31m"), "\\\\x1b\\[31m");
  EXPECT_EQ(markdown_text("\xff"), "\xef\xbf\xbd");
}

TEST(Markdown, ACodeBlockCannotBeClosedFromInside) {
  EXPECT_EQ(markdown_code("x"), "```\nx\n```\n");
  EXPECT_EQ(markdown_code("a\n````\nb"), "`````\na\n````\nb\n`````\n");
}

TEST(Markdown, YamlText) {
  EXPECT_EQ(yaml_text("a: \"b\" # c\n---"), R"("a: \"b\" # c\n---")");
  EXPECT_EQ(yaml_text("\\"), R"("\\")");
  EXPECT_EQ(yaml_text("h\xc3\xa9 \xf0\x9f\x98\x80"), "\"h\xc3\xa9 \xf0\x9f\x98\x80\"");
  EXPECT_EQ(yaml_text("\xc2\x85"), R"("\x85")");
}

TEST(ModelCard, TellsWhatWasDone) {
  const Object provenance = {
      {"source", "org/small"},
      {"tuned", {{"path", "/models/small-chat/"}, {"sha", "12"}}},
      {"target", "/cache/models--org--large/snapshots/abc"},
      {"alpha", 1.5},
      {"options", {{"center", true}, {"layers", {1, 2}}}},
      {"certificates", Object::array({{{"space", "a"}}, {{"space", "b"}}})},
      {"version", "0.1.0"},
      {"command", {"theseus", "transport", "--out", "my model's"}}};
  const auto card = model_card(provenance, "transformers");
  EXPECT_TRUE(card.starts_with(
      "---\nbase_model: \"org/large\"\nbase_model_relation: finetune\n"
      "library_name: \"transformers\"\ntags:\n- theseus\n---\n\n# **org/large** with"));
  expect_parts(
      card, "**org/small**", "**small-chat**", "theseus 0.1.0", "times 1.5", "| alpha | 1.5 |",
      "| options.center | true |", "| options.layers | 1, 2 |", "| certificates | 2 entries |",
      "| tuned.path | /models/small-chat/ |", "```\ntheseus transport --out 'my model'\\''s'\n```");
  EXPECT_EQ(card.find("| command"), std::string::npos);
}

TEST(ModelCard, ValuesCannotLeaveTheirPlace) {
  const Object provenance = {
      {"target", "a\"\ntags: [evil]\n---\n<script>"},
      {"k|ey", "x | y\n| z"},
      {"command", "a\n```\n# heading"}};
  const auto card = model_card(provenance, "peft");
  expect_parts(
      card, "base_model_relation: adapter", "| k\\|ey | x \\| y \\| z |", "````\na\n```\n");
  EXPECT_EQ(card.find("\ntags: [evil]"), std::string::npos);
  EXPECT_EQ(card.find(" <script>"), std::string::npos);
}

TEST(ModelCard, SaysLittleWhenLittleIsKnown) {
  const auto card = model_card(Object::object(), "timm");
  expect_parts(card, "library_name: \"timm\"", "# A model with");
  EXPECT_EQ(card.find("base_model"), std::string::npos);
  EXPECT_EQ(card.find("reproduce"), std::string::npos);
}

TEST(ModelCard, EveryFamilyHasALibrary) {
  for (const auto& family : model::all_families()) {
    const auto library = library_of(std::string(family.name));
    const bool known = library == "transformers" || library == "open_clip" || library == "timm";
    EXPECT_TRUE(known) << family.name;
  }
  EXPECT_EQ(library_of("openclip"), "open_clip");
  EXPECT_EQ(library_of("timm_vit"), "timm");
  EXPECT_EQ(library_of("llama"), "transformers");
}

TEST(ModelCard, IsWrittenAsReadme) {
  const tests::ScratchDir dir;
  write_model_card(dir.path(), {{"alpha", 1}}, "timm");
  EXPECT_EQ(tests::read_bytes(dir / "README.md"), model_card({{"alpha", 1}}, "timm"));
}

}  // namespace
}  // namespace theseus::output
