#include "theseus/report/page.h"

#include <gtest/gtest.h>

#include "theseus/report/chapters.h"
#include "theseus/report/report.h"

#include "tests/report/samples.h"
#include "tests/support/expect_error.h"

namespace theseus::report {
namespace {

using tests::expect_parts;

const Section& section(const Page& page, std::string_view title) {
  for (const auto& one : page.sections) {
    if (one.title.starts_with(title)) {
      return one;
    }
  }
  throw std::runtime_error("no section " + std::string(title));
}

template <class Kind>
const Kind& part(const Section& section, std::string_view caption) {
  for (const auto& one : section.parts) {
    const auto* found = std::get_if<Kind>(&one);
    if (found != nullptr && found->caption.starts_with(caption)) {
      return *found;
    }
  }
  throw std::runtime_error("no part " + std::string(caption));
}

std::string story(const Page& page, size_t i) {
  return std::get<Paragraph>(section(page, "What was done").parts.at(i)).text;
}

std::string titles_of(const Table& table) {
  std::string text;
  for (const auto& column : table.columns) {
    text += (text.empty() ? "" : " ") + column.title;
  }
  return text;
}

std::string words_of(const std::vector<Cell>& row) {
  std::string text;
  for (const auto& cell : row) {
    text += (text.empty() ? "" : " ") + cell.text;
  }
  return text;
}

TEST(Page, Imitation) {
  const auto page = make_page({read_document(kImitationSample, "theseus.json")});
  expect_parts(
      story(page, 0), "wide was fitted", "from base to tuned: 4 layers, times alpha = 1",
      "written as a model", "96 inputs of the new kind and 64 inputs of a familiar one",
      "50 % to 75 % of the square is there", "behind the last one 70 %");
  const auto& fitted = section(page, "Imitation: tuned by wide");
  const auto& layers = part<Table>(fitted, "Layers");
  ASSERT_EQ(layers.rows.size(), 4U);
  EXPECT_EQ(layers.rows[1][2].text, "0.25");
  EXPECT_EQ(layers.rows[2][3].text, "0.625");
  for (const auto& row : part<Table>(section(page, "Provenance"), "theseus.json").rows) {
    EXPECT_FALSE(row[0].text.starts_with("layers")) << row[0].text;
  }
}

TEST(Page, Transport) {
  const auto page = make_page({read_document(kTransportSample, "theseus.json")});
  expect_parts(
      story(page, 0), "from base to tuned was carried to wide", "procrustes", "alpha = 0.75",
      "16 inputs", "Of 3 parameters: 2 carried, 1 kept", "has norm 4.472, as carried 4.183",
      "12.5 % of its square is left behind", "lost 0.2 %");
  const auto& carried = section(page, "Transport");
  const auto& spaces = part<Table>(carried, "Spaces");
  ASSERT_EQ(spaces.rows.size(), 3U);
  EXPECT_EQ(titles_of(spaces), "space rank of completed condition asymmetry orthogonality");
  EXPECT_EQ(words_of(spaces.rows[1]), "visual.1.a 12 48 36 - 1e-12 3e-08");
  EXPECT_EQ(words_of(spaces.rows[2]), "visual.final 48 48 0 - - -");
  const auto& worst = part<Table>(carried, "Worst parameters");
  ASSERT_EQ(worst.rows.size(), 2U);
  EXPECT_EQ(worst.rows[0][0].text, "blocks.0.fc.weight");
  EXPECT_EQ(worst.rows[0][3].text, "-0.25");
  EXPECT_EQ(worst.rows[1][4].text, "-");
  EXPECT_EQ(part<Table>(carried, "Left behind").rows[0][2].text, "other classes");
  EXPECT_EQ(part<Table>(carried, "Depth: divided").rows[1][1].text, "0.25 of 0 + 0.75 of 1");
  const auto& similarity = part<Table>(carried, "Similarity");
  EXPECT_EQ(titles_of(similarity), "source block target block 0 target block 1");
  EXPECT_EQ(words_of(similarity.rows.at(1)), "1 0.1 0.8");
  const auto& fates = part<Table>(carried, "What became");
  ASSERT_EQ(fates.rows.size(), 2U);
  EXPECT_EQ(fates.rows[1][1].text, "2");
  EXPECT_EQ(fates.rows[1][3].text, "visual.*.a x visual.*.b");
}

TEST(Page, Sweep) {
  const auto page = make_page({read_document(kSweepSample, "sweep.json")});
  expect_parts(
      story(page, 0), "3 values of alpha from 0 to 1",
      "alpha = 0.5, with accuracy 0.6125 (0.59 to 0.63)", "the target alone has 0.5");
  const auto& curve = part<Curve>(section(page, "Alpha"), "accuracy");
  EXPECT_EQ(curve.points.front().alpha, 0);
  const auto table = as_table(curve);
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_TRUE(table.rows[1][1].best);
  EXPECT_EQ(table.rows[1][4].text, "best");
  EXPECT_EQ(table.rows[2][4].text, "");
}

TEST(Page, TheBestOfEachColumnIsMarked) {
  const auto page = make_page({read_document(kCompareSample, "compare.json")});
  const auto& table = part<Table>(section(page, "Comparison"), "");
  EXPECT_EQ(table.rows[0][0].text, "naive (10 shots)");
  EXPECT_FALSE(table.rows[0][1].best);
  EXPECT_EQ(table.rows[0][1].asides, (std::vector<std::string>{"0.4 to 0.6"}));
  EXPECT_EQ(table.rows[0][2].text, "-");
  EXPECT_TRUE(table.rows[1][1].best);
  EXPECT_TRUE(table.rows[1][2].best);
  expect_parts(story(page, 0), "2 ways were compared on 2 tasks", "procrustes (10 shots) in 2");
}

TEST(Page, SmallerIsBetterWhereTheDocumentSaysSo) {
  auto text = kCompareSample;
  text.insert(1, "\"higher_is_better\": false, ");
  const auto page = make_page({read_document(text, "compare.json")});
  const auto& table = part<Table>(section(page, "Comparison"), "");
  EXPECT_TRUE(table.rows[0][1].best);
  EXPECT_FALSE(table.rows[1][1].best);
}

TEST(Page, Diagnose) {
  const auto page = make_page({read_document(kDiagnoseSample, "diagnose.json")});
  expect_parts(story(page, 0), "Diagnosis: likely", "-0.0625 before mapping and 0.75 after");
  const auto& found = section(page, "Diagnosis");
  const auto& spaces = part<Table>(found, "Spaces");
  EXPECT_EQ(titles_of(spaces), "space before after rank of condition energy");
  EXPECT_EQ(words_of(spaces.rows.at(1)), "visual.1.q -0.25 0.625 4 4 - -");
}

TEST(Page, DiagnoseShowsCentredCosinesAndResiduals) {
  const auto page = make_page({read_document(
      R"({"kind": "diagnose", "verdict": "may work", "spaces": [
        {"space": "visual.0.q", "before": 0.1, "after": 0.9, "centred": 0.5, "residual": 0.75},
        {"space": "visual.1.q", "before": 0.2, "after": 0.8, "centred": -0.5, "residual": 1.25}]})",
      "diagnose.json")});
  const auto& found = section(page, "Diagnosis");
  const auto& table = part<Table>(found, "Spaces");
  ASSERT_EQ(table.rows.size(), 2U);
  expect_parts(
      as_markdown(page), "| space | before | after | centred | residual |",
      "| visual.1.q | 0.2 | 0.8 | -0.5 | 1.25 |");
  expect_parts(as_html(page), "-0.5", "1.25");
}

TEST(Page, SweepThatGainedNothingSaysSo) {
  const auto page = make_page({read_document(
      R"({"kind": "sweep", "metric": "accuracy", "curve": [
        {"alpha": 0, "value": 0.5}, {"alpha": 1, "value": 0.25}],
        "best": {"alpha": 0, "value": 0.5}, "base": {"value": 0.5}})",
      "sweep.json")});
  expect_parts(story(page, 0), "The best is alpha = 0", "The update did not help.");
  const auto gained = as_markdown(make_page({read_document(kSweepSample, "sweep.json")}));
  EXPECT_EQ(gained.find("did not help"), std::string::npos);
}

TEST(Page, OptionalFieldsMayBeMissing) {
  for (const char* text :
       {R"({"theseus": "1", "spaces": [], "parameters": []})",
        R"({"theseus": "1", "spaces": [{}, {"space": null}], "parameters": [{}], "update": {}})",
        R"({"theseus": "1", "spaces": [], "towers": []})", R"({"kind": "evaluate", "value": 1})",
        R"({"kind": "sweep", "curve": [{"alpha": 0, "value": 1}]})", R"({"kind": "compare"})",
        R"({"kind": "compare", "rows": [{}, {"cells": {"a": {}}}]})", R"({"kind": "diagnose"})",
        R"({"kind": "diagnose", "spaces": [{"space": "a.99999999999999999999.b", "rank": 1}]})"}) {
    const auto page = make_page({read_document(text, "some.json")});
    EXPECT_NE(as_html(page).find("</html>"), std::string::npos) << text;
    EXPECT_NE(as_markdown(page).find("## Provenance"), std::string::npos) << text;
  }
}

TEST(Page, NotTooLargeToShow) {
  const auto rows_of = [](int64_t count) {
    nlohmann::json document = {{"kind", "diagnose"}, {"spaces", nlohmann::json::array()}};
    for (int64_t i = 0; i < count; ++i) {
      document["spaces"].push_back({{"space", "a"}, {"after", 0.5}});
    }
    const auto page = make_page({read_document(document.dump(), "diagnose.json")});
    return part<Table>(section(page, "Diagnosis"), "Spaces").rows.size();
  };
  EXPECT_EQ(rows_of(5000), 5000U);
  EXPECT_THROW(rows_of(5001), std::runtime_error);
}

TEST(Page, SeveralDocuments) {
  const auto page = make_page(
      {read_document(kTransportSample, "a.json"), read_document(kEvaluateSample, "b.json"),
       read_document(kEvaluateSample, "c.json"), read_document(kSweepSample, "d.json")});
  std::vector<std::string> titles;
  for (const auto& one : page.sections) {
    titles.push_back(one.title);
  }
  EXPECT_EQ(
      titles, (std::vector<std::string>{
                  "What was done", "Measurements", "Alpha", "Transport: tuned to wide", "Notes",
                  "Provenance"}));
  EXPECT_EQ(part<Table>(page.sections[1], "What").rows.size(), 2U);
  EXPECT_EQ(
      std::get<Listing>(page.sections[4].parts[0]).items[0],
      "a.json: visual.*.a: 12 of 48 directions");
  EXPECT_EQ(page.sections[5].parts.size(), 4U);
}

TEST(Report, ATrainingHasItsCurves) {
  const auto page = make_page({read_document(kFinetuneSample, "runs/cold/theseus.json")});
  expect_parts(
      story(page, 0), "wide was fine-tuned on digits for 30 steps of 16 examples",
      "accuracy went from 0.1 to 0.9 at step 20");
  const auto& losses = part<Lines>(section(page, "Training: cold"), "Loss by step");
  ASSERT_EQ(losses.lines.size(), 2);
  EXPECT_EQ(losses.lines[0].name, "training");
  EXPECT_EQ(losses.lines[0].spots.size(), 3);
  EXPECT_EQ(losses.lines[1].spots[2].y, 0.5);
  const auto table = as_table(losses);
  ASSERT_EQ(table.rows.size(), 4);
  EXPECT_EQ(table.rows[0][1].text, "-");  // nothing was learnt from before step 0
  EXPECT_EQ(table.rows[3][2].text, "0.6");
  expect_parts(as_html(page), "<polyline class=\"line of1\"", "validation");
  expect_parts(as_markdown(page), "| step | training | validation |");
  EXPECT_THROW(section(page, "Trainings compared"), std::runtime_error);
}

TEST(Report, TrainingsAreComparedByTheStepsTheyTake) {
  const auto cold = read_document(kFinetuneSample, "runs/cold/theseus.json");
  const auto warm = read_document(kWarmSample, "runs/warm/theseus.json");
  const auto page = make_page({warm, cold});
  const auto& compared = section(page, "Trainings compared");
  const auto& table = part<Table>(compared, "Steps to the same accuracy");
  ASSERT_EQ(table.columns.size(), 3);
  EXPECT_EQ(table.columns[1].title, "cold");
  EXPECT_EQ(table.columns[2].title, "warm (from carried)");
  ASSERT_EQ(table.rows.size(), 5);
  EXPECT_EQ(table.rows[0][0].text, "0.5");  // half of the way from 0.1 to 0.9
  EXPECT_EQ(table.rows[0][1].text, "10");
  EXPECT_EQ(table.rows[0][2].text, "0");
  EXPECT_EQ(table.rows[3][0].text, "0.9");
  EXPECT_EQ(table.rows[3][1].text, "20");
  EXPECT_EQ(table.rows[3][2].text, "10");
  EXPECT_EQ(table.rows[4][0].text, "0.95");  // only one comes to that
  EXPECT_EQ(table.rows[4][1].text, "not reached");
  EXPECT_EQ(table.rows[4][2].text, "10");
  // One that never gets better leaves only what the other comes to.
  auto flat = kFinetuneSample;
  for (const char* value : {"0.5, \"loss\"", "0.9, \"loss\"", "0.8, \"loss\""}) {
    flat.replace(flat.find(value), 3, "0.1");
  }
  const auto stuck = make_page({warm, read_document(flat, "runs/cold/theseus.json")});
  const auto& rest =
      part<Table>(section(stuck, "Trainings compared"), "Steps to the same accuracy");
  ASSERT_EQ(rest.rows.size(), 1);
  EXPECT_EQ(rest.rows[0][1].text, "not reached");
  EXPECT_EQ(rest.rows[0][2].text, "10");
  auto other = kWarmSample;
  other.replace(other.find("xxh3:1"), 6, "xxh3:2");
  const auto apart = make_page({cold, read_document(other, "runs/warm/theseus.json")});
  const auto& words = section(apart, "Trainings compared").parts.front();
  expect_parts(std::get<Paragraph>(words).text, "different examples");
  EXPECT_THROW(part<Table>(section(apart, "Trainings compared"), "Steps"), std::runtime_error);
  auto cut = kFinetuneSample;
  cut.replace(cut.find("\"losses\""), 8, "\"lost\"");
  cut.replace(cut.find("\"curve\""), 7, "\"gone\"");
  tests::error_of([&] { make_page({read_document(cut, "x.json")}); });
}

}  // namespace
}  // namespace theseus::report
