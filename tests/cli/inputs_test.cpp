#include "inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/safetensors.h"
#include "errors.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

using fovea::test::expect_error;
using fovea::test::TemporaryDirectory;
using fovea::test::write_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Names of the items that image arguments give, without their folder.
std::vector<std::string> names(const std::vector<std::string>& arguments) {
  std::vector<InputArgument> words;
  words.reserve(arguments.size());
  for (const std::string& argument : arguments) words.push_back({Modality::kImage, argument});
  std::vector<std::string> result;
  const std::vector<Input> inputs = expand_inputs(words, {});
  require_all(inputs);
  result.reserve(inputs.size());
  for (const Input& input : inputs) {
    result.push_back(std::filesystem::path(input.item.name).filename().string());
  }
  return result;
}

class Inputs : public ::testing::Test {
 protected:
  Inputs() {
    for (const char* name : {"b.png", "a.JPG", "c.webp", "notes.txt", "d[1].png"}) {
      write_text(folder_ / name, "");
    }
    std::filesystem::create_directory(folder_ / "z.png");  // a folder is no image
  }
  TemporaryDirectory folder_;
};

TEST_F(Inputs, DirectoryGivesItsImagesSortedByName) {
  EXPECT_THAT(names({folder_.path()}), ElementsAre("a.JPG", "b.png", "c.webp", "d[1].png"));
}

TEST_F(Inputs, PatternGivesItsMatchesSortedByName) {
  EXPECT_THAT(names({folder_ / "[bc].*"}), ElementsAre("b.png", "c.webp"));
}

TEST_F(Inputs, ExistingNameIsNoPattern) {
  EXPECT_THAT(names({folder_ / "d[1].png"}), ElementsAre("d[1].png"));
}

TEST_F(Inputs, ListNamesFilesLineByLine) {
  write_text(folder_ / "list",
             "# images\n" + folder_ / "c.webp" + "\r\n\n" + folder_ / "b.png" + "\n");
  EXPECT_THAT(names({"@" + folder_ / "list"}), ElementsAre("c.webp", "b.png"));
}

TEST_F(Inputs, ListStartsAtItsFolderAndIgnoresBlanks) {
  write_text(folder_ / "list", "\t c.webp \n   # a remark\n*.JPG\nz.png/../b.png\n");
  EXPECT_THAT(names({"@" + folder_ / "list"}), ElementsAre("c.webp", "a.JPG", "b.png"));
}

TEST_F(Inputs, WrongLinesOfAListAreNamed) {
  write_text(folder_ / "list", "b.png\n\n*.gif\n");
  expect_error(ErrorCode::kNotFound, folder_ / "list:3: " + folder_ / "*.gif: the pattern matches",
               [&] { (void)names({"@" + folder_ / "list"}); });
  write_text(folder_ / "list", "http://host/a.png\n");
  expect_error(ErrorCode::kNotFound, folder_ / "list:1: http://host/a.png: URLs are not read",
               [&] { (void)names({"@" + folder_ / "list"}); });
  expect_error(ErrorCode::kIo, "not a regular file", [&] { (void)names({"@" + folder_.path()}); });
}

TEST_F(Inputs, ALineOfAListThatYieldsNothingLeavesTheOthers) {
  std::filesystem::create_directory(folder_ / "empty");
  const std::string list = folder_ / "list";
  write_text(list, "b.png\nhttp://host/a.png\nempty\n*.gif\nc.webp\n");
  const std::vector<InputArgument> words{{Modality::kImage, "@" + list}};
  const std::vector<Input> inputs = expand_inputs(words, {});
  ASSERT_EQ(inputs.size(), 5U);
  EXPECT_EQ(inputs[0].item.name, folder_ / "b.png");
  EXPECT_EQ(inputs[4].item.name, folder_ / "c.webp");
  EXPECT_FALSE(inputs[0].error || inputs[4].error);
  EXPECT_EQ(inputs[1].item.name, "http://host/a.png");
  for (std::size_t i : {1, 2, 3}) {
    ASSERT_TRUE(inputs[i].error.has_value()) << i;
    EXPECT_EQ(inputs[i].error->code(), ErrorCode::kNotFound);
    EXPECT_THAT(inputs[i].error->what(),
                ::testing::StartsWith(list + ":" + std::to_string(i + 1) + ": "));
  }
}

TEST_F(Inputs, AByteOrderMarkIsNoPartOfTheFirstNameOfAList) {
  write_text(folder_ / "list",
             "\xEF\xBB\xBF"
             "b.png\nc.webp\n");
  EXPECT_THAT(names({"@" + folder_ / "list"}), ElementsAre("b.png", "c.webp"));
}

TEST_F(Inputs, LinesOfJsonAreOneItemEachWithItsOptions) {
  write_text(folder_ / "list", R"({"image": "*.png", "mm_processor_kwargs": {"max_pixels": 5}}
*.webp
{"video": "none.mp4"}
)");
  const InputArgument word{.text = "@" + (folder_ / "list")};
  const std::vector<Input> inputs =
      expand_inputs({&word, 1}, {.mm_processor_kwargs = R"({"min_pixels": 2})"});
  ASSERT_EQ(inputs.size(), 3U);
  EXPECT_EQ(inputs[0].item.name, folder_ / "*.png");
  EXPECT_EQ(inputs[0].item.mm_processor_kwargs, R"({"max_pixels":5,"min_pixels":2})");
  EXPECT_EQ(inputs[1].item.name, folder_ / "c.webp") << "the pattern of a line without JSON";
  EXPECT_EQ(inputs[1].item.mm_processor_kwargs, R"({"min_pixels": 2})");
  ASSERT_TRUE(inputs[2].error);
  EXPECT_EQ(inputs[2].item.modality, Modality::kVideo);
  EXPECT_THAT(inputs[2].error->what(), HasSubstr("list:3: "));
}

TEST_F(Inputs, AListOfVideosNamesOneInEachLine) {
  std::filesystem::create_directory(folder_ / "clip");
  write_text(folder_ / "clip/0.png", "");
  write_text(folder_ / "clip/1.png", "");
  write_text(folder_ / "list", "clip\n{\"video\": \"clip\", \"fps\": 4}\n{\"image\": \"b.png\"}\n");
  const InputArgument word{.modality = Modality::kVideo, .text = "@" + (folder_ / "list")};
  const std::vector<Input> inputs = expand_inputs({&word, 1}, {.fps = 1});
  ASSERT_EQ(inputs.size(), 3U);
  EXPECT_EQ(inputs[0].item.num_frames(), 2);
  EXPECT_EQ(inputs[0].item.fps, 1);
  EXPECT_EQ(inputs[1].item.fps, 4);
  EXPECT_EQ(inputs[2].item.modality, Modality::kImage);
}

TEST_F(Inputs, WhatMediaIoKwargsSayIsOfAllItems) {
  const auto defaults = [](const std::string& json, std::optional<double> fps = {}) {
    return item_defaults(
        {.items = {.fps = fps.value_or(2)}, .media_io_kwargs = json, .has_fps = fps.has_value()},
        {});
  };
  EXPECT_EQ(defaults("").fps, 2);
  EXPECT_EQ(defaults("", 5).fps, 5);
  EXPECT_EQ(defaults(R"({"video": {"fps": 3}})").fps, 3);
  EXPECT_EQ(defaults(R"({"video": {"fps": 3}})", 3).fps, 3);
  EXPECT_THROW(defaults(R"({"video": {"fps": 3}})", 4), UsageError);
  EXPECT_THROW(defaults(R"({"video": {"num_frames": 8}})"), UsageError);
}

TEST_F(Inputs, UrlsAreNamedAsSuch) {
  for (const char* url :
       {"http://host/a.png", "https://host/a.png", "file:///a.png", "data:image/png;base64,AAAA"}) {
    expect_error(ErrorCode::kNotFound, "URLs are not read", [&] { (void)names({url}); });
  }
}

TEST_F(Inputs, ArgumentsKeepTheirOrder) {
  EXPECT_THAT(names({folder_ / "c.webp", folder_ / "a.JPG", folder_ / "b.png"}),
              ElementsAre("c.webp", "a.JPG", "b.png"));
}

TEST_F(Inputs, MissingImageIsLeftToTheEngine) {
  EXPECT_THAT(names({folder_ / "none.png"}), ElementsAre("none.png"));
}

TEST_F(Inputs, EmptyDirectoryIsAnError) {
  expect_error(ErrorCode::kNotFound, "found none", [&] { (void)names({folder_ / "z.png"}); });
}

TEST_F(Inputs, PatternWithoutMatchesIsAnError) {
  expect_error(ErrorCode::kNotFound, "matches no file", [&] { (void)names({folder_ / "*.gif"}); });
}

TEST_F(Inputs, MissingAndEmptyListsAreErrors) {
  expect_error(ErrorCode::kNotFound, "no such file", [&] { (void)names({"@" + folder_ / "no"}); });
  write_text(folder_ / "empty", "# nothing\n");
  expect_error(ErrorCode::kNotFound, "names no file",
               [&] { (void)names({"@" + folder_ / "empty"}); });
}

TEST_F(Inputs, AListThatCannotBeReadIsNoItem) {
  const InputArgument word{Modality::kImage, "@" + folder_ / "no"};
  expect_error(ErrorCode::kNotFound, "no such file", [&] { (void)expand_inputs({&word, 1}, {}); });
}

TEST_F(Inputs, ALineThatCannotBeReadIsOneItemAmongTheOthers) {
  const std::string list = folder_ / "list";
  write_text(list, "b.png\n{\"image\": \"c.webp\", \"fps\": 2}\n{oh}\nc.webp\n");
  const InputArgument word{Modality::kImage, "@" + list};
  const std::vector<Input> inputs = expand_inputs({&word, 1}, {});
  ASSERT_EQ(inputs.size(), 4U);
  EXPECT_EQ(inputs[0].item.name, folder_ / "b.png");
  EXPECT_EQ(inputs[1].item.name, list + ":2");
  EXPECT_THAT(inputs.at(1).error.value().what(), HasSubstr("list:2: fps: an image has none"));
  EXPECT_THAT(inputs.at(2).error.value().what(), HasSubstr("list:3: line 1"));
  EXPECT_EQ(inputs[3].item.name, folder_ / "c.webp");
}

TEST_F(Inputs, MissingVideoIsAnInputWithAnError) {
  const std::vector<InputArgument> words{{Modality::kVideo, folder_ / "none.mp4"},
                                         {Modality::kImage, folder_ / "b.png"}};
  const std::vector<Input> inputs = expand_inputs(words, {});
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_TRUE(inputs[0].error.has_value());
  EXPECT_EQ(inputs[0].item.modality, Modality::kVideo);
  EXPECT_FALSE(inputs[1].error.has_value());
}

TEST_F(Inputs, TheFirstErrorIsThrownWhereAllInputsAreRequired) {
  const std::vector<InputArgument> words{{Modality::kImage, folder_ / "b.png"},
                                         {Modality::kVideo, folder_ / "first.mp4"},
                                         {Modality::kVideo, folder_ / "second.mp4"}};
  const std::vector<Input> inputs = expand_inputs(words, {});
  EXPECT_NO_THROW(require_all(std::span(inputs).first(1)));
  expect_error(ErrorCode::kNotFound, "first.mp4", [&] { require_all(inputs); });
}

TEST_F(Inputs, AFileOfPixelValuesGivesItsItemsInPlace) {
  const std::vector<float> values(8 * 3);
  const std::vector<std::int64_t> grids{1, 2, 2, 1, 2, 2};
  const std::string file = folder_ / "values.safetensors";
  const checkpoint::OutputTensor tensors[] = {
      {"pixel_values", {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, {8, 3}}},
      {"image_grid_thw", {reinterpret_cast<const std::byte*>(grids.data()), DType::kI64, {2, 3}}}};
  checkpoint::write_safetensors(file, tensors, {});
  const std::vector<InputArgument> words{{Modality::kImage, folder_ / "b.png"},
                                         {.text = file, .pixel_values = true},
                                         {Modality::kImage, folder_ / "c.webp"}};
  const std::vector<Input> inputs = expand_inputs(words, {});
  ASSERT_EQ(inputs.size(), 4U);
  EXPECT_TRUE(std::holds_alternative<EncodedFile>(inputs[0].item.source));
  EXPECT_TRUE(std::holds_alternative<PixelValues>(inputs[1].item.source));
  EXPECT_EQ(inputs[2].item.name, file + "[1]");
  EXPECT_TRUE(std::holds_alternative<EncodedFile>(inputs[3].item.source));
}

TEST_F(Inputs, AFileWithoutPixelValuesIsAnInputWithAnError) {
  const std::vector<InputArgument> words{{.text = folder_ / "none", .pixel_values = true},
                                         {Modality::kImage, folder_ / "b.png"}};
  const std::vector<Input> inputs = expand_inputs(words, {});
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_TRUE(inputs[0].error.has_value());
  EXPECT_FALSE(inputs[1].error.has_value());
}

TEST_F(Inputs, FilesReadAreThoseOfModelListsImagesFramesAndPixelValues) {
  write_text((folder_ / "z.png") + "/frame.png", "");
  write_text(folder_ / "list", folder_ / "[bc].*\n");
  const TemporaryDirectory model;
  write_text(model / "config.json", "");
  const std::vector<InputArgument> words{{Modality::kImage, "@" + folder_ / "list"},
                                         {Modality::kImage, folder_ / "a.JPG"},
                                         {Modality::kVideo, folder_ / "z.png"},
                                         {.text = folder_ / "values", .pixel_values = true},
                                         {Modality::kImage, folder_ / "*.gif"}};
  EXPECT_THAT(files_read(model.path(), words, expand_inputs(words, {})),
              ::testing::IsSupersetOf({model / "config.json", folder_ / "list", folder_ / "b.png",
                                       folder_ / "c.webp", folder_ / "a.JPG",
                                       (folder_ / "z.png") + "/frame.png", folder_ / "values"}));
}

TEST_F(Inputs, FramesOfAVideoAreTheImagesOfItsDirectory) {
  const std::vector<InputArgument> words{{Modality::kVideo, folder_.path()}};
  const std::vector<Input> inputs = expand_inputs(words, {});
  EXPECT_THAT(inputs.at(0).item.paths(), ElementsAre(folder_ / "a.JPG", folder_ / "b.png",
                                                     folder_ / "c.webp", folder_ / "d[1].png"));
  EXPECT_EQ(inputs[0].item.num_frames(), 4);
}

TEST_F(Inputs, FramesPerSecondReachTheVideo) {
  write_text((folder_ / "z.png") + "/frame.png", "");
  const std::vector<InputArgument> words{{Modality::kVideo, folder_ / "z.png"}};
  const std::vector<Input> inputs = expand_inputs(words, {.fps = 12.5});
  ASSERT_EQ(inputs.size(), 1U);
  EXPECT_EQ(inputs[0].item.modality, Modality::kVideo);
  EXPECT_DOUBLE_EQ(inputs[0].item.fps, 12.5);
}

}  // namespace
}  // namespace fovea::cli
