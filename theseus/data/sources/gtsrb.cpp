// German traffic signs. Class names are those of CLIP's prompts, with their spelling: a classification head
// made from others would not be the papers'.

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/records.h"
#include "theseus/data/splits.h"
#include "theseus/data/stored_images.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& class_names() {
  static const std::vector<std::string> names = {
      "red and white circle 20 kph speed limit",
      "red and white circle 30 kph speed limit",
      "red and white circle 50 kph speed limit",
      "red and white circle 60 kph speed limit",
      "red and white circle 70 kph speed limit",
      "red and white circle 80 kph speed limit",
      "end / de-restriction of 80 kph speed limit",
      "red and white circle 100 kph speed limit",
      "red and white circle 120 kph speed limit",
      "red and white circle red car and black car no passing",
      "red and white circle red truck and black car no passing",
      "red and white triangle road intersection warning",
      "white and yellow diamond priority road",
      "red and white upside down triangle yield right-of-way",
      "stop",
      "empty red and white circle",
      "red and white circle no truck entry",
      "red circle with white horizonal stripe no entry",
      "red and white triangle with exclamation mark warning",
      "red and white triangle with black left curve approaching warning",
      "red and white triangle with black right curve approaching warning",
      "red and white triangle with black double curve approaching warning",
      "red and white triangle rough / bumpy road warning",
      "red and white triangle car skidding / slipping warning",
      "red and white triangle with merging / narrow lanes warning",
      "red and white triangle with person digging / construction / road work warning",
      "red and white triangle with traffic light approaching warning",
      "red and white triangle with person walking warning",
      "red and white triangle with child and person walking warning",
      "red and white triangle with bicyle warning",
      "red and white triangle with snowflake / ice warning",
      "red and white triangle with deer warning",
      "white circle with gray strike bar no speed limit",
      "blue circle with white right turn arrow mandatory",
      "blue circle with white left turn arrow mandatory",
      "blue circle with white forward arrow mandatory",
      "blue circle with white forward or right turn arrow mandatory",
      "blue circle with white forward or left turn arrow mandatory",
      "blue circle with white keep right arrow mandatory",
      "blue circle with white keep left arrow mandatory",
      "blue circle with white arrows indicating a traffic circle",
      "white circle with gray strike bar indicating no passing for cars has ended",
      "white circle with gray strike bar indicating no passing for trucks has ended",
  };
  return names;
}

const std::vector<std::string>& train_folders() {
  static const std::vector<std::string> names = {
      "GTSRB/Final_Training/Images", "Final_Training/Images", "GTSRB/Training", "Training"};
  return names;
}
const std::vector<std::string>& test_folders() {
  static const std::vector<std::string> names = {"GTSRB/Final_Test/Images", "Final_Test/Images"};
  return names;
}

std::vector<std::string> splits_in(const fs::path& path) {
  std::vector<std::string> splits;
  const auto train = find_below(path, train_folders());
  if (train.has_value() && is_folder(*train / "00000")) {
    splits.emplace_back("train");
  }
  if (find_below(path, test_folders()).has_value()) {
    splits.emplace_back("test");
  }
  return splits;
}

bool recognises(const fs::path& path) {
  return is_folder(path) && !splits_in(path).empty();
}

struct Listed {
  std::vector<fs::path> files;
  std::vector<int64_t> labels;
};

Listed train_images(const fs::path& path, const ClassNames& classes) {
  Listed listed;
  const auto folder = below(path, "training images", train_folders());
  for (const auto& name : folders_in(folder)) {
    const auto where = (folder / printable(name)).string();
    const auto number = find_integer(name);
    require(
        number.has_value() && name.size() == 5, where,
        ": expected a folder called by the number of a class, as in 00014");
    const auto images = images_in(folder / name);
    require(!images.empty(), "the class folder ", where, " has no images");
    for (const auto& image : images) {
      listed.files.push_back(folder / name / image);
      listed.labels.push_back(classes.checked(*number, where));
    }
  }
  return listed;
}

Listed test_images(const fs::path& path, const ClassNames& classes) {
  const auto folder = below(path, "test images", test_folders());
  const auto table = below(
      path, "labels of the test images",
      {"GT-final_test.csv", "GTSRB/GT-final_test.csv", "GTSRB/Final_Test/Images/GT-final_test.csv",
       "GTSRB/Final_Test/GT-final_test.csv", "Final_Test/Images/GT-final_test.csv",
       "Final_Test/GT-final_test.csv"});
  const Records records(table, RecordForm::kSemicolons);
  Listed listed;
  for (int64_t i = 0; i < records.size(); ++i) {
    auto fields = records.fields(i);
    const auto where = records.name(i);
    require(
        fields.contains("Filename") && fields.contains("ClassId"), where,
        ": expected the columns Filename and ClassId; the table without ClassId is that of the "
        "contest, before its labels were published");
    const auto number = find_integer(trimmed(fields["ClassId"]));
    require(
        number.has_value(), where, ": ClassId '", printable(fields["ClassId"]),
        "' is not a number");
    listed.files.push_back(folder / fields["Filename"]);
    listed.labels.push_back(classes.checked(*number, where));
  }
  return listed;
}

Examples open(const fs::path& path, const std::string& asked) {
  const auto there = splits_in(path);
  require(
      !there.empty(), path.string(),
      " has no GTSRB; looked for [GTSRB/]{Final_Training/Images,Training}/000NN and "
      "[GTSRB/]Final_Test/Images");
  const auto split = choose_split(there, asked, path);
  const ClassNames classes(class_names(), "GTSRB");
  auto listed = split == "train" ? train_images(path, classes) : test_images(path, classes);
  auto examples = examples_of_files(listed.files, std::move(listed.labels));
  examples.split = split;
  examples.classes = classes.names();
  examples.templates = {
      "a zoomed in photo of a \"{c}\" traffic sign.", "a centered photo of a \"{c}\" traffic sign.",
      "a close up photo of a \"{c}\" traffic sign."};
  return examples;
}

}  // namespace

const Source& gtsrb() {
  static const Source source = {
      .summary =
          "German traffic signs: GTSRB/Final_Training/Images/000NN, "
          "GTSRB/Final_Test/Images with GT-final_test.csv",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
