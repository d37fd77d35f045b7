#include "hub/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fovea/tower/checkpoint/weight_source.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::hub {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using ::testing::ElementsAre;

const std::string kModel = FOVEA_TEST_GOLDEN_DIR "/qwen3_vl";
const std::string kIndex = "model.safetensors.index.json";

/// A folder with the description of a model.
class HubModelFiles : public ::testing::Test {
 protected:
  HubModelFiles() {
    for (const char* name : {"config.json", "preprocessor_config.json"}) {
      fs::copy_file(kModel + "/" + name, folder_ / name);
    }
  }

  /// Writes an index: tensors of the tower are in shards 2 and 4, those of the language model in 1
  /// and 3. @param without start of names that it lacks.
  void write_index(const std::string& without = "-") {
    std::string map;
    int count = 0;
    const auto weights = checkpoint::WeightSource::open(kModel);
    for (const std::string& name : weights.names()) {
      if (name.starts_with(without)) continue;
      const int shard = (name.starts_with("model.visual.") ? 2 : 1) + count++ % 2 * 2;
      map += (map.empty() ? "\"" : ", \"") + name + "\": \"model-0000" + std::to_string(shard) +
             "-of-00004.safetensors\"";
    }
    test::write_text(folder_ / kIndex, R"({"weight_map": {)" + map + "}}");
  }
  [[nodiscard]] std::vector<std::string> weights(const std::vector<std::string>& listed) const {
    return weight_files(listed, folder_.path(), "maker/model");
  }

  test::TemporaryDirectory folder_;
};

TEST_F(HubModelFiles, TheDescriptionIsWhatAnEngineReads) {
  EXPECT_THAT(description_files({".gitattributes", "README.md", "config.json", kIndex,
                                 "generation_config.json", "model-00001-of-00002.safetensors",
                                 "preprocessor_config.json", "tokenizer.json", "vocab.json"}),
              ElementsAre("config.json", "preprocessor_config.json", kIndex));
  EXPECT_THAT(description_files(
                  {kIndex, "config.json", "model.safetensors", "video_preprocessor_config.json"}),
              ElementsAre("config.json", "video_preprocessor_config.json"));
}

TEST_F(HubModelFiles, AFileIsForeignWhereAnEngineWouldReadItBesideThoseOfTheModel) {
  const std::vector<std::string> single{"config.json", "model.safetensors"};
  EXPECT_FALSE(is_foreign(single, "config.json"));
  EXPECT_FALSE(is_foreign(single, "README.md"));
  EXPECT_FALSE(is_foreign(single, kIndex));  // model.safetensors comes before it
  EXPECT_FALSE(is_foreign(single, "model-00001-of-00002.safetensors"));
  EXPECT_TRUE(is_foreign(single, "video_preprocessor_config.json"));
  const std::vector<std::string> sharded{"config.json", kIndex, "model-00001-of-00001.safetensors"};
  EXPECT_TRUE(is_foreign(sharded, "model.safetensors"));
  EXPECT_FALSE(is_foreign(sharded, "model-00001-of-00002.safetensors"));
  const std::vector<std::string> other{"config.json", "weights.safetensors"};
  EXPECT_FALSE(is_foreign(other, "weights.safetensors"));
  EXPECT_TRUE(is_foreign(other, "model.safetensors"));
  EXPECT_TRUE(is_foreign(other, kIndex));
  EXPECT_TRUE(is_foreign(other, "model-00001-of-00002.safetensors"));
}

TEST_F(HubModelFiles, ASingleFileIsTakenWhole) {
  EXPECT_THAT(weights({"config.json", "model.safetensors", "other.safetensors"}),
              ElementsAre("model.safetensors"));
}

TEST_F(HubModelFiles, OnlyShardsWithTheTowerAreTaken) {
  write_index();
  EXPECT_THAT(weights({"config.json", kIndex}),
              ElementsAre("model-00002-of-00004.safetensors", "model-00004-of-00004.safetensors"));
}

TEST_F(HubModelFiles, AnIndexWithoutATensorOfTheTowerIsRefused) {
  write_index("model.visual.merger.norm.");
  expect_error(ErrorCode::kNotFound, "2 of ", [&] { (void)weights({"config.json", kIndex}); });
}

TEST_F(HubModelFiles, WithoutAnIndexAllFilesOfTheFormatAreTaken) {
  EXPECT_THAT(weights({"b.safetensors", "a.safetensors", "sub/c.safetensors", "d.bin"}),
              ElementsAre("a.safetensors", "b.safetensors"));
  expect_error(ErrorCode::kNotFound, "maker/model: expected weights as model.safetensors", [&] {
    (void)weights({"config.json", "pytorch_model.bin"});
  });
}

TEST_F(HubModelFiles, AModelOfNoFamilyNeedsNoWeights) {
  test::write_text(folder_ / "config.json", R"({"architectures": ["NobodysModel"]})");
  expect_error(ErrorCode::kUnsupported, "NobodysModel", [&] {
    (void)weights({"config.json", "model.safetensors"});
  });
}

}  // namespace
}  // namespace fovea::hub
