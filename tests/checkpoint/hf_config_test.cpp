#include "checkpoint/hf_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "core/check.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea::checkpoint {
namespace {

using test::TemporaryDirectory;

/// A model directory with the given files; config.json is "{}" unless given.
class ModelDirectory {
 public:
  ModelDirectory(std::initializer_list<std::pair<std::string, std::string>> files) {
    test::write_text(folder_ / "config.json", "{}");
    for (const auto& [name, text] : files) test::write_text(folder_ / name, text);
  }
  [[nodiscard]] HfConfig read() const { return read_hf_config(folder_.path()); }
  [[nodiscard]] std::string path() const { return folder_.path(); }

 private:
  TemporaryDirectory folder_;
};

/// "tag" of the object, which tells where it came from, or "absent".
std::string tag(const std::optional<JsonView>& object) {
  return object ? object->at("tag").as_string() : "absent";
}

constexpr const char* kImage = "preprocessor_config.json";
constexpr const char* kVideo = "video_preprocessor_config.json";
constexpr const char* kBoth = "processor_config.json";
constexpr const char* kBothText =
    R"({"image_processor": {"tag": "inner image"}, "video_processor": {"tag": "inner video"}})";

TEST(HfConfig, NamesAllArchitectures) {
  const ModelDirectory model{{"config.json", R"({"architectures": ["First", "Second"]})"}};
  EXPECT_EQ(model.read().architectures(), (std::vector<std::string>{"First", "Second"}));
  EXPECT_EQ(model.read().directory, model.path());
}

TEST(HfConfig, MayNameNoArchitecture) {
  for (const char* text : {"{}", R"({"architectures": null})", R"({"architectures": []})"}) {
    const ModelDirectory model{{"config.json", text}};
    EXPECT_TRUE(model.read().architectures().empty()) << text;
  }
}

TEST(HfConfig, ComplainsAboutArchitecturesThatAreNoNames) {
  const ModelDirectory number{{"config.json", R"({"architectures": [3]})"}};
  test::expect_error(ErrorCode::kCorruptData, "architectures[0]: expected a string, got 3",
                     [&] { (void)number.read().architectures(); });
  const ModelDirectory text{{"config.json", R"({"architectures": "First"})"}};
  test::expect_error(ErrorCode::kCorruptData, "config.json: architectures",
                     [&] { (void)text.read().architectures(); });
}

TEST(HfConfig, HasNoProcessorsWithoutTheirFiles) {
  const ModelDirectory model{};
  const HfConfig config = model.read();
  EXPECT_EQ(tag(config.image_processor()), "absent");
  EXPECT_EQ(tag(config.video_processor()), "absent");
}

TEST(HfConfig, PrefersTheCommonFileToFilesOfTheirOwn) {
  const ModelDirectory model{
      {kImage, R"({"tag": "image"})"}, {kVideo, R"({"tag": "video"})"}, {kBoth, kBothText}};
  const HfConfig config = model.read();
  EXPECT_EQ(tag(config.image_processor()), "inner image");
  EXPECT_EQ(tag(config.video_processor()), "inner video");
}

TEST(HfConfig, TakesFilesOfTheirOwnBesideACommonFileWithoutThem) {
  const ModelDirectory model{
      {kImage, R"({"tag": "image"})"}, {kVideo, R"({"tag": "video"})"}, {kBoth, "{}"}};
  const HfConfig config = model.read();
  EXPECT_EQ(tag(config.image_processor()), "image");
  EXPECT_EQ(tag(config.video_processor()), "video");
  EXPECT_TRUE(config.shadowed_files().empty());
}

TEST(HfConfig, ReplacesParametersThatAnItemHas) {
  const ModelDirectory model{{kImage, R"({"tag": "image", "min_pixels": 1, "patch_size": 14})"}};
  const HfConfig files = model.read();
  const auto given = [&](const char* text, Modality modality = Modality::kImage) {
    return files.with_item(JsonDocument::parse(text, "options"), modality);
  };
  const HfConfig tagged = given(R"({"tag": "item"})");
  EXPECT_EQ(tag(tagged.image_processor()), "item");
  EXPECT_EQ(tag(tagged.video_processor()), "image");  // whose file there is none of here
  EXPECT_EQ(tag(given(R"({"tag": "item"})", Modality::kVideo).video_processor()), "item");
  EXPECT_EQ(tagged.image_processor()->at("patch_size").as_int(), 14);
  EXPECT_EQ(tagged.image_processor()->at("min_pixels").as_int(), 1);
  EXPECT_EQ(tagged.image_processor()->at("tag").path(), "options: tag");
  EXPECT_EQ(tag(files.image_processor()), "image");
  // Bounds beside a size would count more than it.
  EXPECT_FALSE(given(R"({"size": {"longest_edge": 4}})").image_processor()->find("min_pixels"));
}

TEST(HfConfig, HasNoProcessorOfAnItemWithoutAFile) {
  const ModelDirectory model{};
  const HfConfig files = model.read().with_item(
      JsonDocument::parse(R"({"tag": "item"})", "options"), Modality::kImage);
  EXPECT_EQ(tag(files.image_processor()), "absent");
}

TEST(HfConfig, TellsWhichKeysOfAnUnusedFileDiffer) {
  const ModelDirectory model{
      {kImage, R"({"size": {"b": 2, "a": 1.0}, "mean": [0.5], "old": 1, "none": null})"},
      {kVideo, R"({"size": 2})"},
      {kBoth, R"({"image_processor": {"size": {"a": 1, "b": 3}, "mean": [0.5], "new": true},
                  "video_processor": {"size": 2}})"}};
  const std::vector<ShadowedFile> shadowed = model.read().shadowed_files();
  ASSERT_EQ(shadowed.size(), 1u);
  EXPECT_EQ(shadowed[0].path, model.path() + "/" + kImage);
  EXPECT_EQ(shadowed[0].used, model.path() + "/processor_config.json: image_processor");
  EXPECT_EQ(shadowed[0].keys, (std::vector<std::string>{"new", "old", "size"}));
}

TEST(HfConfig, TakesProcessorsFromTheCommonFile) {
  const ModelDirectory model{{kBoth, kBothText}};
  const HfConfig config = model.read();
  EXPECT_EQ(tag(config.image_processor()), "inner image");
  EXPECT_EQ(tag(config.video_processor()), "inner video");
}

TEST(HfConfig, PrefersTheCommonFileToImageParametersForVideo) {
  const ModelDirectory model{{kImage, R"({"tag": "image"})"}, {kBoth, kBothText}};
  EXPECT_EQ(tag(model.read().video_processor()), "inner video");
}

TEST(HfConfig, FallsBackToImageParametersForVideo) {
  const ModelDirectory alone{{kImage, R"({"tag": "image"})"}};
  EXPECT_EQ(tag(alone.read().video_processor()), "image");
  const ModelDirectory beside{{kImage, R"({"tag": "image"})"}, {kBoth, "{}"}};
  EXPECT_EQ(tag(beside.read().video_processor()), "image");
}

TEST(HfConfig, HasNoImageProcessorIfOnlyVideoIsDescribed) {
  const ModelDirectory model{{kVideo, R"({"tag": "video"})"}, {kBoth, "{}"}};
  EXPECT_EQ(tag(model.read().image_processor()), "absent");
}

TEST(HfConfig, RefusesAdapters) {
  const ModelDirectory beside{{"adapter_config.json", "{}"}};
  test::expect_error(ErrorCode::kUnsupported,
                     "adapter_config.json: adapters (LoRA) are not applied; merge it",
                     [&] { (void)beside.read(); });
  const TemporaryDirectory alone;
  test::write_text(alone / "adapter_config.json", "{}");
  test::expect_error(ErrorCode::kNotFound,
                     "adapter_config.json: expected a whole model, got an adapter (LoRA)",
                     [&] { (void)read_hf_config(alone.path()); });
}

TEST(HfConfig, RefusesALinkThatLeadsNowhere) {
  for (const char* name : {kImage, kVideo, kBoth}) {
    const ModelDirectory model{};
    std::filesystem::create_symlink("../blobs/absent", model.path() + "/" + name);
    test::expect_error(ErrorCode::kNotFound, cat(name, ": a link to a file that is not there"),
                       [&] { (void)model.read(); });
  }
}

TEST(HfConfig, TellsAnEmbeddingModel) {
  EXPECT_FALSE(ModelDirectory{}.read().embedding_file());
  const ModelDirectory model{{"modules.json", "[]"}};
  EXPECT_EQ(model.read().embedding_file(), "modules.json");
  const ModelDirectory pooling{};
  std::filesystem::create_directory(pooling.path() + "/1_Pooling");
  EXPECT_EQ(pooling.read().embedding_file(), "1_Pooling");
}

TEST(HfConfig, ReadsNaNAsAbsent) {
  const ModelDirectory model{{"config.json", R"({"a": NaN, "b": 1})"}};
  const HfConfig config = model.read();
  EXPECT_FALSE(config.config.root().find("a"));
  EXPECT_EQ(config.config.root().at("b").as_int(), 1);
}

TEST(HfConfig, NamesTheFileThatIsBroken) {
  for (const char* name : {"config.json", kImage, kVideo, kBoth}) {
    const ModelDirectory broken{{name, "{\n\"a\" 1}"}};
    test::expect_error(ErrorCode::kCorruptData, cat("/", name, ": line 2, column 5: "),
                       [&] { (void)broken.read(); });
    const ModelDirectory array{{name, "[]"}};
    test::expect_error(ErrorCode::kCorruptData, cat("/", name, ": expected an object"),
                       [&] { (void)array.read(); });
  }
}

TEST(HfConfig, SaysThatTheDirectoryIsAbsent) {
  const TemporaryDirectory folder;
  test::expect_error(ErrorCode::kNotFound, "absent: expected the directory of a model",
                     [&] { (void)read_hf_config(folder / "absent"); });
  test::write_text(folder / "file", "");
  test::expect_error(ErrorCode::kNotFound, "file: expected the directory of a model",
                     [&] { (void)read_hf_config(folder / "file"); });
}

TEST(HfConfig, TakesATooLongNameForAbsent) {
  test::expect_error(ErrorCode::kNotFound, "expected the directory of a model",
                     [] { (void)read_hf_config(std::string(5000, 'x')); });
}

TEST(HfConfig, SaysThatConfigJsonIsAbsent) {
  const TemporaryDirectory folder;
  test::expect_error(ErrorCode::kNotFound, "config.json: no such file",
                     [&] { (void)read_hf_config(folder.path()); });
}

TEST(HfConfig, ReadsTheGoldenModel) {
  for (const std::string& folder : test::golden_folders("qwen3_vl", "config.json")) {
    const HfConfig config = read_hf_config(folder);
    EXPECT_EQ(config.architectures(), std::vector<std::string>{"Qwen3VLForConditionalGeneration"});
    EXPECT_TRUE(config.image_processor());
    EXPECT_EQ(config.video_processor()->path(), folder + "/video_preprocessor_config.json");
  }
}

}  // namespace
}  // namespace fovea::checkpoint
