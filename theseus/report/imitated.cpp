#include <algorithm>

#include <fmt/format.h>

#include "theseus/report/chapters.h"

// What an imitation asked of the target's layers, and what of it is there.
namespace theseus::report {
namespace {

std::string fitted_on_words(const Entry& entry) {
  const auto count_of = [&](const char* key) {
    const auto side = entry.entry(key);
    const auto count = side ? side->number("sequences") : std::nullopt;
    return count ? fmt::format("{:.0f} inputs", *count) : "inputs";
  };
  return fmt::format(
      " It was fitted on {} of the new kind{}.", count_of(examples_key(entry)),
      entry.entry("familiar") ? fmt::format(" and {} of a familiar one", count_of("familiar"))
                              : "");
}

std::string shares_words(const std::vector<Entry>& layers) {
  std::vector<double> shares;
  for (const auto& layer : layers) {
    if (const auto share = layer.number("share")) {
      shares.push_back(*share);
    }
  }
  if (shares.empty()) {
    return "";
  }
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  return fmt::format(
      " Of the change that was wanted behind a layer, {} to {} of the square is there, on these "
      "inputs; behind the last one {}.",
      percent_text(*least), percent_text(*most), percent_text(shares.back()));
}

Table layer_table(const std::vector<Entry>& layers) {
  Table table = {
      .caption = "Layers that were fitted, in order",
      .columns =
          {{"layer", false},
           {"block of the source", true},
           {"change wanted, of the stream", true},
           {"share that is there", true}},
      .fold = "Layers that were fitted, in order"};
  for (const auto& layer : layers) {
    table.rows.push_back(
        {{layer.text("module")},
         {layer.word("source_block")},
         {number_text(layer.number("wanted"))},
         {number_text(layer.number("share"))}});
  }
  return table;
}

}  // namespace

Chapter tell_imitation(const Document& document) {
  const auto entry = document.entry();
  const auto layers = entry.entries("layers");
  const auto alpha = entry.number("alpha");
  Section section = {
      .title = fmt::format(
          "Imitation: {} by {}", name_of(entry, "tuned", "the tuned model"),
          name_of(entry, "target", "the target"))};
  section.parts.emplace_back(layer_table(layers));
  return {
      .story = fmt::format(
          "{} was fitted, without labels and without carrying weights, to what fine-tuning changed "
          "in the activations from {} to {}: {} layers{}{}.{}{}",
          name_of(entry, "target", "The target"), name_of(entry, "source", "the source"),
          name_of(entry, "tuned", "the tuned model"), layers.size(),
          alpha ? ", times alpha = " + number_text(alpha) : "", written_words(entry),
          fitted_on_words(entry), shares_words(layers)),
      .section = std::move(section)};
}

}  // namespace theseus::report
