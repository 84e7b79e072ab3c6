// A small replica of every layout is written and opened.

#include <algorithm>
#include <archive.h>
#include <archive_entry.h>
#include <matio.h>

#include <gtest/gtest.h>

#include "theseus/data/examples.h"

#include "tests/data/ppm.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::data {
namespace {

using tests::error_of;
using tests::expect_parts;
using tests::ppm;
using tests::ScratchDir;
using tests::values;
using Labels = std::vector<int64_t>;
using Names = std::vector<std::string>;

// The red of the first pixel of ppm().
int red_of(const Examples& examples, int64_t index) {
  const auto found = values(examples.image(index));
  EXPECT_EQ(found, (std::vector<int>{found[0], 1, 2, 3, 4, 5}));
  return found[0];
}

Examples open(const ScratchDir& scratch, const std::string& split = "") {
  return open_examples(scratch.path().string(), split);
}

std::string refusal(const ScratchDir& scratch, const std::string& name, const char* split = "") {
  return error_of([&] { open_examples(name + ":" + scratch.path().string(), split); });
}

// ---- folders

TEST(Folders, ClassesAreSortedAndSplitsFound) {
  const ScratchDir scratch;
  scratch.file("train/dog/2.ppm", ppm(2));
  scratch.file("train/dog/1.PPM", ppm(1));
  scratch.file("train/cat/9.ppm", ppm(9));
  scratch.file("train/dog/.hidden.ppm", "x");
  scratch.file("train/.cache/1.ppm", "x");
  scratch.file("train/dog/notes.txt", "x");
  scratch.file("validation/dog/3.ppm", ppm(3));
  const auto train = open(scratch, "train");
  EXPECT_EQ(train.source, "folders");
  EXPECT_EQ(train.split, "train");
  EXPECT_EQ(train.classes, (Names{"cat", "dog"}));
  EXPECT_EQ(train.labels, (Labels{0, 1, 1}));
  EXPECT_EQ(red_of(train, 0), 9);
  EXPECT_EQ(red_of(train, 1), 1);
  EXPECT_EQ(train.templates, Names{"a photo of a {c}."});
  // Without its class "cat" the split still numbers dogs as train does; it is what "" takes without test.
  const auto val = open(scratch);
  EXPECT_EQ(val.split, "val");
  EXPECT_EQ(val.labels, Labels{1});
  expect_parts(refusal(scratch, "folders", "test"), "no test split", "train, val");
  expect_parts(refusal(scratch, "folders", "dev"), "unknown split 'dev'");
}

TEST(Folders, AClassMayBeCalledTrain) {
  const ScratchDir scratch;
  scratch.file("train/1.ppm", ppm(1));
  scratch.file("plane/1.ppm", ppm(1));
  EXPECT_EQ(open(scratch).classes, (Names{"plane", "train"}));
  expect_parts(refusal(scratch, "folders", "train"), "not divided");
}

TEST(Folders, RefusesWhatWouldChangeTheData) {
  const ScratchDir scratch;
  scratch.file("cat/1.ppm", ppm(1));
  std::filesystem::create_directories(scratch / "dog");
  expect_parts(refusal(scratch, "folders"), "dog", "no JPEG");
  scratch.file("dog/1.webp", "x");
  expect_parts(refusal(scratch, "folders"), "1.webp", "convert");
}

TEST(Folders, ATestClassThatTrainHasNotIsAnError) {
  const ScratchDir scratch;
  for (const char* name : {"train/a/1.ppm", "train/b/1.ppm", "test/1/1.ppm"}) {
    scratch.file(name, ppm(1));
  }
  expect_parts(refusal(scratch, "folders", "test"), "unknown class '1'", "a, b");
}

TEST(Folders, AnImageThatCannotBeReadIsNamed) {
  const ScratchDir scratch;
  scratch.file("cat/1.ppm", "P6\n");
  const auto examples = open(scratch);
  expect_parts(error_of([&] { examples.image(0); }), "cat/1.ppm");
}

// ---- manifest

TEST(Manifest, ReadsQuotedCsv) {
  const ScratchDir scratch;
  scratch.file("a, b.ppm", ppm(1));
  scratch.file("sub/c.ppm", ppm(2));
  const auto file = scratch.file(
      "list.csv",
      "label,path,split\r\ndog,\"a, b.ppm\",train\r\n\"the \"\"cat\"\"\",sub/c.ppm,test\r\n");
  const auto test = open_examples(file.string(), "");
  EXPECT_EQ(test.source, "manifest");
  EXPECT_EQ(test.split, "test");
  EXPECT_EQ(test.classes, (Names{"dog", "the \"cat\""}));
  EXPECT_EQ(test.labels, Labels{1});
  EXPECT_EQ(red_of(test, 0), 2);
  EXPECT_EQ(open_examples(file.string(), "train").labels, Labels{0});
}

TEST(Manifest, ReadsJsonLinesWithNumbersAndNamedClasses) {
  const ScratchDir scratch;
  scratch.file("1.ppm", ppm(1));
  const auto file = scratch.file("list.jsonl", "{\"path\": \"1.ppm\", \"label\": 1}\n\n");
  auto examples = open_examples(file.string(), "");
  EXPECT_EQ(examples.labels, Labels{1});
  EXPECT_EQ(examples.classes, Names{});
  scratch.file("classnames.txt", "cat\ndog\n");
  EXPECT_EQ(open_examples(file.string(), "").classes, (Names{"cat", "dog"}));
  scratch.file("classnames.txt", "cat\n");
  expect_parts(
      error_of([&] { open_examples(file.string(), ""); }), "list.jsonl:1", "label 1", "1 classes");
  scratch.file("classnames.txt", "cat\ncat\n");
  expect_parts(error_of([&] { open_examples(file.string(), ""); }), "'cat' is there twice");
}

TEST(Manifest, RefusesBadTables) {
  const ScratchDir scratch;
  scratch.file("1.ppm", ppm(1));
  const auto message = [&](const char* table) {
    const auto file = scratch.file("list.csv", table);
    return error_of([&] { open_examples("manifest:" + file.string(), ""); });
  };
  expect_parts(message("file,label\n1.ppm,1\n"), "no field 'path'", "file, label");
  expect_parts(message("path,label\n2.ppm,1\n"), "list.csv:2", "2.ppm", "not there");
  expect_parts(message("path,label\n1.ppm\n"), "list.csv:2", "1 fields");
  expect_parts(message("path,label\n1.ppm,-1\n"), "out of range");
  expect_parts(message("path,label\n1.ppm,1\n1.ppm,cat\n"), "list.csv:3", "all numbers or all");
  expect_parts(message("path,label\n1.ppm,\n"), "list.csv:2", "no label");
  expect_parts(message("path,path\n1.ppm,1\n"), "twice");
  expect_parts(message("path,label\n\"1.ppm,1\n"), "never closed");
  expect_parts(message("path,label\n"), "no records");
  expect_parts(message("path,split\n1.ppm,best\n"), "unknown split 'best'");
}

// ---- webdataset

std::string tar_member(const std::string& name, const std::string& content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  const auto octal = [](size_t value, size_t digits) {
    std::string text(digits, '0');
    for (size_t i = digits; i-- > 0; value /= 8) {
      text[i] = static_cast<char>('0' + value % 8);
    }
    return text;
  };
  header.replace(124, 11, octal(content.size(), 11));
  header[156] = type;
  header.replace(257, 5, "ustar");
  header.replace(148, 8, 8, ' ');
  size_t sum = 0;
  for (const char byte : header) {
    sum += static_cast<unsigned char>(byte);
  }
  header.replace(148, 7, octal(sum, 6) + '\0');
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

void write_webdataset(const ScratchDir& scratch) {
  const std::string end(1024, '\0');
  scratch.file("classnames.txt", "zero\none\ntwo\n");
  scratch.file("zeroshot_classification_templates.txt", "a {c}.\nthe {c}.\n");
  scratch.file("test/nshards.txt", "2\n");
  scratch.file(
      "test/0.tar", tar_member("s0.png", ppm(10)) + tar_member("s0.cls", "2") +
                        tar_member("s1.cls", "0\n") + tar_member("s1.jpg", ppm(11)) +
                        tar_member("s1.json", "{}") + end);
  const std::string name = std::string(150, 'n') + ".jpeg";
  const auto pax = "path=" + name + "\n";
  scratch.file(
      "test/1.tar", tar_member("x", std::to_string(pax.size() + 4) + " " + pax, 'x') +
                        tar_member("cut", ppm(12)) + tar_member("dir/", "", '5') +
                        tar_member("long", std::string(150, 'n') + ".cls" + '\0', 'L') +
                        tar_member("cut", "1") + end);
  scratch.file("train/0.tar", tar_member("a.png", ppm(1)) + tar_member("a.cls", "1") + end);
}

TEST(Webdataset, ReadsShards) {
  const ScratchDir scratch;
  write_webdataset(scratch);
  const auto test = open(scratch);
  EXPECT_EQ(test.source, "webdataset");
  EXPECT_EQ(test.split, "test");
  EXPECT_EQ(test.labels, (Labels{2, 0, 1}));
  EXPECT_EQ(test.classes, (Names{"zero", "one", "two"}));
  EXPECT_EQ(test.templates, (Names{"a {c}.", "the {c}."}));
  EXPECT_EQ(red_of(test, 0), 10);
  EXPECT_EQ(red_of(test, 1), 11);
  EXPECT_EQ(red_of(test, 2), 12);
  expect_parts(test.names[1], "test/0.tar:s1.jpg");
  EXPECT_EQ(open(scratch, "train").size(), 1);
}

TEST(Webdataset, RefusesDamage) {
  const ScratchDir scratch;
  write_webdataset(scratch);
  const std::string end(1024, '\0');
  const auto as_it_is = [&](const std::string& tar) {
    scratch.file("train/0.tar", tar);
    return refusal(scratch, "webdataset", "train");
  };
  const auto message = [&](const std::string& tar) { return as_it_is(tar + end); };
  const auto image = tar_member("a.png", ppm(1));
  expect_parts(message(image + tar_member("a.cls", "3")), "a.png", "label 3", "3 classes");
  expect_parts(message(image + tar_member("a.cls", "cat")), "a.cls", "'cat'");
  expect_parts(message(tar_member("a.webp", "x")), "a.webp", "WebP");
  expect_parts(message(image + tar_member("a.jpg", ppm(1))), "two images");
  expect_parts(message(image + tar_member("b.png", ppm(1)) + tar_member("b.cls", "1")), "none");
  expect_parts(message(tar_member("a.cls", "1")), "a.cls", "without an image", "a.png");
  expect_parts(message(""), "no images");
  expect_parts(as_it_is(""), "cut short at byte 0");
  expect_parts(as_it_is(image), "cut short", "block of zeros");
  expect_parts(as_it_is(image + tar_member("a.cls", "1")), "cut short");
  expect_parts(as_it_is(image + std::string(100, 'x')), "cut short");
  expect_parts(as_it_is(image.substr(0, 515)), "reaches beyond");
  expect_parts(as_it_is(image + end + image + end), "behind it there is more");
  expect_parts(message(std::string(512, 'x')), "byte 0", "damaged");
  expect_parts(message(tar_member("x", "99 path=q\n", 'x') + image), "pax");
  scratch.file("train/2.tar", image + end);
  expect_parts(message(image), "2.tar", "left out", "without a gap");
  std::filesystem::remove(scratch / "train/2.tar");
  scratch.file("train/nshards.txt", "2");
  expect_parts(message(image), "1.tar", "2 shards");
  scratch.file("train/nshards.txt", "-2");
  expect_parts(message(image), "nshards.txt", "number of shards");
}

TEST(Webdataset, RealShards) {
  const auto path = std::filesystem::path(THESEUS_SOURCE_DIR) / "../shared/data/mnist";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << "needs ../shared/data/mnist";
  }
  const auto examples = open_examples(path.string(), "");
  EXPECT_EQ(examples.source, "webdataset");
  EXPECT_EQ(examples.size(), 1000);
  EXPECT_EQ(examples.classes[2], "two");
}

// ---- mnist, cifar

std::string gzipped(const std::string& content, const std::filesystem::path& scratch) {
  const auto file = scratch / "packed";
  auto* writer = archive_write_new();
  archive_write_add_filter_gzip(writer);
  archive_write_set_format_raw(writer);
  EXPECT_EQ(archive_write_open_filename(writer, file.c_str()), ARCHIVE_OK);
  auto* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(writer, entry);
  archive_write_data(writer, content.data(), content.size());
  archive_entry_free(entry);
  archive_write_free(writer);
  auto result = tests::read_bytes(file);
  std::filesystem::remove(file);
  return result;
}

const std::string kIdxImages("\0\0\x8\x3\0\0\0\x2\0\0\0\x1\0\0\0\x2\x5\x6\x7\x8", 20);
const std::string kIdxLabels("\0\0\x8\x1\0\0\0\x2\x9\x4", 10);

TEST(Mnist, ReadsPlainAndPackedFiles) {
  const ScratchDir scratch;
  scratch.file("MNIST/raw/t10k-images-idx3-ubyte", kIdxImages);
  scratch.file("MNIST/raw/t10k-labels-idx1-ubyte.gz", gzipped(kIdxLabels, scratch.path()));
  scratch.file("MNIST/raw/train-images.idx3-ubyte.gz", gzipped(kIdxImages, scratch.path()));
  scratch.file("MNIST/raw/train-labels.idx1-ubyte", kIdxLabels);
  for (const char* split : {"train", "test"}) {
    const auto examples = open_examples((scratch / "MNIST").string(), split);
    EXPECT_EQ(examples.source, "mnist");
    EXPECT_EQ(examples.split, split);
    EXPECT_EQ(examples.labels, (Labels{9, 4}));
    EXPECT_EQ(examples.classes[9], "9");
    EXPECT_EQ(examples.templates, Names{"a photo of the number: \"{c}\"."});
    EXPECT_EQ(values(examples.image(1)), (std::vector<int>{7, 7, 7, 8, 8, 8}));
    EXPECT_EQ(examples.image(1).pixels.sizes(), (at::IntArrayRef{1, 2, 3}));
  }
  expect_parts(
      error_of([&] { open_examples((scratch / "MNIST").string(), "val"); }), "no val split");
}

TEST(Mnist, FashionIsKnownByItsFolder) {
  const ScratchDir scratch;
  scratch.file("FashionMNIST/raw/t10k-images-idx3-ubyte", kIdxImages);
  scratch.file("FashionMNIST/raw/t10k-labels-idx1-ubyte", kIdxLabels);
  const auto path = (scratch / "FashionMNIST").string();
  EXPECT_EQ(open_examples(path, "").source, "fashion_mnist");
  EXPECT_EQ(open_examples(path, "").classes[9], "Ankle boot");
}

TEST(Mnist, RefusesDamage) {
  const ScratchDir scratch;
  scratch.file("t10k-images-idx3-ubyte", kIdxImages);
  expect_parts(refusal(scratch, "mnist"), "no labels", "t10k-labels-idx1-ubyte");
  const auto message = [&](const std::string& images, const std::string& labels) {
    scratch.file("t10k-images-idx3-ubyte", images);
    scratch.file("t10k-labels-idx1-ubyte", labels);
    return refusal(scratch, "mnist");
  };
  expect_parts(message(kIdxImages, kIdxLabels.substr(0, 9)), "1 values", "says 2");
  expect_parts(message(kIdxImages, kIdxLabels + "x"), "3 values");
  expect_parts(message(kIdxImages, kIdxImages), "not an idx file");
  expect_parts(message("", kIdxLabels), "not an idx file");
  expect_parts(
      message(kIdxImages, std::string("\0\0\x8\x1\0\0\0\x1\x9", 9)), "2 images", "1 labels");
  expect_parts(
      message(kIdxImages, std::string("\0\0\x8\x1\0\0\0\x2\x9\xa", 10)), "label 10", "10 classes");
  expect_parts(
      message(
          std::string("\0\0\x8\x3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16),
          kIdxLabels),
      "axis 1");
  expect_parts(message("\x1f\x8bnonsense", kIdxLabels), "cannot unpack");
  const auto packed = gzipped(kIdxImages, scratch.path());
  expect_parts(message(packed.substr(0, packed.size() - 12), kIdxLabels), "cannot unpack");
}

std::string cifar_record(int label, int red, int coarse = -1) {
  std::string record = coarse < 0 ? "" : std::string(1, static_cast<char>(coarse));
  record += static_cast<char>(label);
  record +=
      std::string(1024, static_cast<char>(red)) + std::string(1024, '\2') + std::string(1024, '\3');
  record[record.size() - 3072 + 1] = '\x7';  // the second pixel of the first row
  return record;
}

TEST(Cifar, ReadsTheTenClasses) {
  const ScratchDir scratch;
  scratch.file("cifar-10-batches-bin/batches.meta.txt", "airplane\nautomobile\nbird\n\n");
  for (int i = 1; i <= 5; ++i) {
    scratch.file(
        "cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin",
        cifar_record(i % 3, 10 * i) + cifar_record(0, 10 * i + 1));
  }
  scratch.file("cifar-10-batches-bin/test_batch.bin", cifar_record(2, 99));
  const auto train = open(scratch, "train");
  EXPECT_EQ(train.source, "cifar");
  EXPECT_EQ(train.size(), 10);
  EXPECT_EQ(train.labels[6], 1);  // the first of the fourth batch
  const auto pixels = train.image(6).pixels;
  EXPECT_EQ(pixels.sizes(), (at::IntArrayRef{32, 32, 3}));
  EXPECT_EQ(
      values({pixels.narrow(0, 0, 1).narrow(1, 0, 2)}), (std::vector<int>{40, 2, 3, 7, 2, 3}));
  EXPECT_EQ(open(scratch).labels, Labels{2});
  EXPECT_EQ(train.classes[1], "automobile");
  EXPECT_EQ(train.templates.size(), 18U);
  EXPECT_EQ(train.templates[1], "a blurry photo of a {c}.");
  EXPECT_EQ(train.templates[17], "a photo of the big {c}.");
  scratch.file("cifar-10-batches-bin/test_batch.bin", cifar_record(3, 99));
  expect_parts(refusal(scratch, "cifar"), "test_batch.bin:0", "label 3");
  scratch.file("cifar-10-batches-bin/test_batch.bin", cifar_record(2, 9) + "x");
  expect_parts(refusal(scratch, "cifar"), "3074 bytes", "3073");
}

TEST(Cifar, ReadsTheFineClassesOfTheHundred) {
  const ScratchDir scratch;
  scratch.file("fine_label_names.txt", "apple\naquarium_fish\n");
  scratch.file("train.bin", cifar_record(1, 50, /*coarse=*/19));
  const auto train = open(scratch);
  EXPECT_EQ(train.split, "train");
  EXPECT_EQ(train.labels, Labels{1});
  EXPECT_EQ(train.classes[1], "aquarium fish");
  EXPECT_EQ(values({train.image(0).pixels[0][0]}), (std::vector<int>{50, 2, 3}));
}

// ---- the tasks of the CLIP papers

TEST(Eurosat, HoldsOutTheSameImagesEveryTime) {
  const ScratchDir scratch;
  const Names folders = {"AnnualCrop", "Forest",  "HerbaceousVegetation", "Highway",
                         "Industrial", "Pasture", "PermanentCrop",        "Residential",
                         "River",      "SeaLake"};
  for (const auto& folder : folders) {
    std::filesystem::create_directories(scratch / ("2750/" + folder));
    for (int i = 1; i <= 545; ++i) {
      scratch.file(
          "2750/" + folder + "/" + folder + "_" + std::to_string(i) + ".jpg", ppm(i % 256));
    }
  }
  const auto train = open(scratch, "train");
  EXPECT_EQ(train.source, "eurosat");
  EXPECT_EQ(train.size(), 50);
  const auto val = open(scratch, "val");
  const auto test = open(scratch);
  EXPECT_EQ(test.split, "test");
  EXPECT_EQ(val.size(), 2700);
  EXPECT_EQ(test.size(), 2700);
  EXPECT_EQ(std::ranges::count(test.labels, 9), 270);
  std::vector<std::string> all;
  for (const auto* part : {&train, &val, &test}) {
    all.insert(all.end(), part->names.begin(), part->names.end());
  }
  std::ranges::sort(all);
  EXPECT_EQ(std::unique(all.begin(), all.end()) - all.begin(), 5450);
  EXPECT_EQ(test.names, open(scratch, "test").names);
  EXPECT_EQ(test.classes[9], "lake or sea");
  EXPECT_EQ(test.templates.size(), 3U);
  const auto number = std::stoi(test.names[0].substr(test.names[0].rfind('_') + 1));
  EXPECT_EQ(red_of(test, 0), number % 256);
  // Splits that somebody made are taken as they are.
  for (const auto& folder : folders) {
    scratch.file("EuroSAT_splits/test/" + folder + "/1.jpg", ppm(7));
  }
  EXPECT_EQ(open(scratch).size(), 10);
  expect_parts(refusal(scratch, "eurosat", "train"), "no train split");
}

TEST(Eurosat, TooFewImagesAreAnError) {
  const ScratchDir scratch;
  for (const char* folder :
       {"AnnualCrop", "Forest", "HerbaceousVegetation", "Highway", "Industrial", "Pasture",
        "PermanentCrop", "Residential", "River", "SeaLake"}) {
    scratch.file(std::string(folder) + "/1.jpg", ppm(1));
  }
  expect_parts(refusal(scratch, "eurosat"), "AnnualCrop", "1 images", "270");
}

// A MATLAB file that is written as long as this lives.
class MatWriter {
 public:
  explicit MatWriter(const std::filesystem::path& path) {
    std::filesystem::create_directories(path.parent_path());
    file_ = Mat_CreateVer(path.c_str(), nullptr, MAT_FT_MAT5);
  }
  ~MatWriter() { Mat_Close(file_); }
  MatWriter(const MatWriter&) = delete;
  MatWriter& operator=(const MatWriter&) = delete;

  static matvar_t* bytes(const char* name, std::vector<size_t> shape, std::vector<uint8_t> values) {
    return Mat_VarCreate(
        name, MAT_C_UINT8, MAT_T_UINT8, static_cast<int>(shape.size()), shape.data(), values.data(),
        0);
  }
  static matvar_t* number(double value) {
    size_t shape[2] = {1, 1};
    return Mat_VarCreate(nullptr, MAT_C_DOUBLE, MAT_T_DOUBLE, 2, shape, &value, 0);
  }
  static matvar_t* text(std::string value) {
    size_t shape[2] = {1, value.size()};
    return Mat_VarCreate(nullptr, MAT_C_CHAR, MAT_T_UINT8, 2, shape, value.data(), 0);
  }
  static matvar_t* wide_text(const std::string& value) {  // as MATLAB itself writes
    std::vector<uint16_t> letters(value.begin(), value.end());
    size_t shape[2] = {1, letters.size()};
    return Mat_VarCreate(nullptr, MAT_C_CHAR, MAT_T_UINT16, 2, shape, letters.data(), 0);
  }
  void write(matvar_t* variable, matio_compression compression = MAT_COMPRESSION_NONE) {
    EXPECT_EQ(Mat_VarWrite(file_, variable, compression), 0);
    Mat_VarFree(variable);
  }
  void write_texts(const char* name, const Names& texts) {
    size_t shape[2] = {1, texts.size()};
    auto* cell = Mat_VarCreate(name, MAT_C_CELL, MAT_T_CELL, 2, shape, nullptr, 0);
    for (size_t i = 0; i < texts.size(); ++i) {
      Mat_VarSetCell(cell, static_cast<int>(i), text(texts[i]));
    }
    write(cell);
  }

 private:
  mat_t* file_;
};

void write_svhn(
    const ScratchDir& scratch, const std::vector<uint8_t>& digits, size_t channels = 3) {
  MatWriter mat(scratch / "test_32x32.mat");
  std::vector<uint8_t> pixels;  // of 2 rows and 3 columns
  for (size_t i = 0; i < 2 * 3 * channels * 2; ++i) {
    pixels.push_back(static_cast<uint8_t>(i));
  }
  mat.write(MatWriter::bytes("X", {2, 3, channels, 2}, pixels), MAT_COMPRESSION_ZLIB);
  mat.write(MatWriter::bytes("y", {digits.size(), 1}, digits));
}

TEST(Svhn, TenIsTheDigitZero) {
  const ScratchDir scratch;
  write_svhn(scratch, {10, 3});
  const auto test = open(scratch);
  EXPECT_EQ(test.source, "svhn");
  EXPECT_EQ(test.labels, (Labels{0, 3}));
  EXPECT_EQ(test.classes[3], "3");
  EXPECT_EQ(test.templates, Names{"a photo of the number: \"{c}\"."});
  const auto pixels = test.image(1).pixels;
  EXPECT_EQ(pixels.sizes(), (at::IntArrayRef{2, 3, 3}));
  // Row r, column c, channel k of image n is r + 2 c + 6 k + 18 n.
  EXPECT_EQ(values({pixels[1][2]}), (std::vector<int>{18 + 5, 18 + 11, 18 + 17}));
  write_svhn(scratch, {10, 11});
  expect_parts(refusal(scratch, "svhn"), "test_32x32.mat:1", "label 11");
  write_svhn(scratch, {1, 2, 3});
  expect_parts(refusal(scratch, "svhn"), "2 images", "3 labels");
  write_svhn(scratch, {1, 2}, 1);
  expect_parts(refusal(scratch, "svhn"), "[32, 32, 3, n]");
  scratch.file("test_32x32.mat", "nothing");
  expect_parts(refusal(scratch, "svhn"), "not a MATLAB file");
}

TEST(Gtsrb, ReadsFoldersAndTheTableOfTheTest) {
  const ScratchDir scratch;
  scratch.file("GTSRB/Final_Training/Images/00000/00000_00000.ppm", ppm(1));
  scratch.file("GTSRB/Final_Training/Images/00000/GT-00000.csv", "x");
  scratch.file("GTSRB/Final_Training/Images/00042/00000_00000.ppm", ppm(2));
  scratch.file("GTSRB/Final_Test/Images/00000.ppm", ppm(3));
  const auto train = open(scratch, "train");
  EXPECT_EQ(train.source, "gtsrb");
  EXPECT_EQ(train.labels, (Labels{0, 42}));
  EXPECT_EQ(train.classes.size(), 43U);
  EXPECT_EQ(train.classes[14], "stop");
  EXPECT_EQ(red_of(train, 1), 2);
  expect_parts(refusal(scratch, "gtsrb"), "labels of the test images", "GT-final_test.csv");
  scratch.file("GT-final_test.csv", "Filename;Width\n00000.ppm;53\n");
  expect_parts(refusal(scratch, "gtsrb"), "ClassId");
  scratch.file("GT-final_test.csv", "Filename;Width;ClassId\r\n00000.ppm;53;16\r\n");
  const auto test = open(scratch);
  EXPECT_EQ(test.labels, Labels{16});
  EXPECT_EQ(red_of(test, 0), 3);
  EXPECT_EQ(test.templates.size(), 3U);
  scratch.file("GT-final_test.csv", "Filename;ClassId\n00000.ppm;43\n");
  expect_parts(refusal(scratch, "gtsrb"), "GT-final_test.csv:2", "label 43");
  scratch.file("GT-final_test.csv", "Filename;ClassId\n00001.ppm;4\n");
  expect_parts(refusal(scratch, "gtsrb"), "00001.ppm", "not there");
}

TEST(Resisc45, TakesTheListsWhereThereAre) {
  const ScratchDir scratch;
  scratch.file("NWPU-RESISC45/airplane/airplane_001.jpg", ppm(1));
  scratch.file("NWPU-RESISC45/baseball_diamond/baseball_diamond_001.jpg", ppm(2));
  EXPECT_EQ(open(scratch).size(), 2);
  EXPECT_EQ(open(scratch).split, "");
  expect_parts(refusal(scratch, "resisc45", "train"), "resisc45-train.txt");
  scratch.file("resisc45-test.txt", "baseball_diamond_001.jpg\n");
  scratch.file("resisc45-train.txt", "airplane_001.jpg\n");
  const auto test = open(scratch);
  EXPECT_EQ(test.source, "resisc45");
  EXPECT_EQ(test.split, "test");
  EXPECT_EQ(test.labels, Labels{1});
  EXPECT_EQ(test.classes, (Names{"airplane", "baseball diamond"}));
  EXPECT_EQ(test.templates.size(), 18U);
  EXPECT_EQ(test.templates[0], "satellite imagery of {c}.");
  EXPECT_EQ(red_of(test, 0), 2);
  scratch.file("resisc45-test.txt", "lake_001.jpg\n");
  expect_parts(refusal(scratch, "resisc45"), "unknown class 'lake'");
  scratch.file("resisc45-test.txt", "airplane_002.jpg\n");
  expect_parts(refusal(scratch, "resisc45"), "airplane_002.jpg", "not there");
}

TEST(Dtd, ReadsTheFirstSplit) {
  const ScratchDir scratch;
  scratch.file("dtd/images/banded/banded_0002.jpg", ppm(1));
  scratch.file("dtd/images/polka-dotted/polka-dotted_0001.jpg", ppm(2));
  scratch.file("dtd/labels/train1.txt", "banded/banded_0002.jpg\n");
  scratch.file("dtd/labels/val1.txt", "banded/banded_0002.jpg\n");
  scratch.file("dtd/labels/test1.txt", "polka-dotted/polka-dotted_0001.jpg\n");
  const auto test = open(scratch);
  EXPECT_EQ(test.source, "dtd");
  EXPECT_EQ(test.labels, Labels{1});
  EXPECT_EQ(test.classes, (Names{"banded", "polka-dotted"}));
  EXPECT_EQ(test.templates[0], "a photo of a {c} texture.");
  EXPECT_EQ(test.templates.size(), 8U);
  EXPECT_EQ(red_of(test, 0), 2);
  EXPECT_EQ(open(scratch, "val").labels, Labels{0});
  scratch.file("dtd/labels/test1.txt", "woven/woven_0001.jpg\n");
  expect_parts(refusal(scratch, "dtd"), "unknown class 'woven'", "banded");
}

struct Car {
  std::string file;
  double number;
  double test;
};

void write_cars(
    const std::filesystem::path& path,
    const char* file_field,
    const std::vector<Car>& cars,
    const Names& classes) {
  MatWriter mat(path);
  const char* fields[] = {"class", file_field, "test"};
  size_t shape[2] = {1, cars.size()};
  auto* all = Mat_VarCreateStruct("annotations", 2, shape, fields, 3);
  for (size_t i = 0; i < cars.size(); ++i) {
    Mat_VarSetStructFieldByName(all, "class", i, MatWriter::number(cars[i].number));
    Mat_VarSetStructFieldByName(all, file_field, i, MatWriter::wide_text(cars[i].file));
    Mat_VarSetStructFieldByName(all, "test", i, MatWriter::number(cars[i].test));
  }
  mat.write(all);
  if (!classes.empty()) {
    mat.write_texts("class_names", classes);
  }
}

const Names kCars = {"AM General Hummer SUV 2000", "smart fortwo Convertible 2012"};

TEST(Cars, ReadsTheDevkit) {
  const ScratchDir scratch;
  scratch.file("stanford_cars/cars_train/00001.jpg", ppm(1));
  scratch.file("stanford_cars/cars_test/00001.jpg", ppm(2));
  MatWriter(scratch / "stanford_cars/devkit/cars_meta.mat").write_texts("class_names", kCars);
  write_cars(
      scratch / "stanford_cars/devkit/cars_train_annos.mat", "fname", {{"00001.jpg", 1, 0}}, {});
  const auto train = open(scratch, "train");
  EXPECT_EQ(train.source, "cars");
  EXPECT_EQ(train.labels, Labels{0});
  EXPECT_EQ(train.classes, kCars);
  EXPECT_EQ(red_of(train, 0), 1);
  EXPECT_EQ(train.templates.size(), 8U);
  expect_parts(refusal(scratch, "cars"), "labels of the test", "cars_test_annos_withlabels.mat");
  const auto annotations = scratch / "stanford_cars/cars_test_annos_withlabels.mat";
  write_cars(annotations, "fname", {{"00001.jpg", 2, 0}}, {});
  EXPECT_EQ(open(scratch).labels, Labels{1});
  EXPECT_EQ(red_of(open(scratch), 0), 2);
  write_cars(annotations, "fname", {{"00001.jpg", 3, 0}}, {});
  expect_parts(refusal(scratch, "cars"), "label 2", "2 classes");
  write_cars(annotations, "name", {{"00001.jpg", 1, 0}}, {});
  expect_parts(refusal(scratch, "cars"), "no such field", "annotations.fname");
}

TEST(Cars, ReadsTheOneFile) {
  const ScratchDir scratch;
  scratch.file("car_ims/000001.jpg", ppm(1));
  scratch.file("car_ims/000002.jpg", ppm(2));
  write_cars(
      scratch / "cars_annos.mat", "relative_im_path",
      {{"car_ims/000001.jpg", 2, 0}, {"car_ims/000002.jpg", 1, 1}}, kCars);
  EXPECT_EQ(open(scratch, "train").labels, Labels{1});
  const auto test = open(scratch);
  EXPECT_EQ(test.source, "cars");
  EXPECT_EQ(test.labels, Labels{0});
  EXPECT_EQ(red_of(test, 0), 2);
}

TEST(Sun397, ReadsTheFirstPartition) {
  const ScratchDir scratch;
  scratch.file("SUN397/a/abbey/sun_1.jpg", ppm(1));
  scratch.file("SUN397/a/apartment_building/outdoor/sun_2.jpg", ppm(2));
  scratch.file("SUN397/ClassName.txt", "/a/abbey\n/a/apartment_building/outdoor\n");
  scratch.file("Testing_01.txt", "/a/apartment_building/outdoor/sun_2.jpg\n");
  scratch.file("Training_01.txt", "/a/abbey/sun_1.jpg\n");
  const auto test = open(scratch);
  EXPECT_EQ(test.source, "sun397");
  EXPECT_EQ(test.labels, Labels{1});
  EXPECT_EQ(test.classes, (Names{"abbey", "apartment building outdoor"}));
  EXPECT_EQ(test.templates, (Names{"a photo of a {c}.", "a photo of the {c}."}));
  EXPECT_EQ(red_of(test, 0), 2);
  EXPECT_EQ(open(scratch, "train").labels, Labels{0});
  scratch.file("Testing_01.txt", "/z/zoo/sun_2.jpg\n");
  expect_parts(refusal(scratch, "sun397"), "Testing_01.txt", "unknown class '/z/zoo'");
}

}  // namespace
}  // namespace theseus::data
