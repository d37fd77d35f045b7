#include "serve/routes/vllm/part_metadata.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

Embedding image() {
  Embedding item;
  item.grid_thw = {1, 34, 46};
  return item;
}

Embedding video() {
  Embedding item;
  item.modality = Modality::kVideo;
  item.grid_thw = {2, 4, 6};
  item.timestamps = {0.25, 1.25};
  return item;
}

std::string text(MetadataRule rule, const Embedding& item) {
  return to_json_text(part_metadata(rule, item));
}

TEST(PartMetadata, IsAFlatGrid) {
  EXPECT_EQ(text(MetadataRule::kGrid, image()), R"({"image_grid_thw":[1,34,46]})");
  EXPECT_EQ(text(MetadataRule::kGridAndTimestamps, image()), R"({"image_grid_thw":[1,34,46]})");
  EXPECT_EQ(text(MetadataRule::kGrid, video()), R"({"video_grid_thw":[2,4,6]})");
  EXPECT_EQ(text(MetadataRule::kGridAndTimestamps, video()),
            R"({"video_grid_thw":[2,4,6],"timestamps":[0.25,1.25]})");
}

TEST(PartMetadata, IsEmptyWhereSomethingIsMissing) {
  EXPECT_EQ(text(MetadataRule::kNone, image()), "{}");
  EXPECT_EQ(text(MetadataRule::kGrid, Embedding{}), "{}");
  Embedding without_times = video();
  without_times.timestamps.clear();
  EXPECT_EQ(text(MetadataRule::kGridAndTimestamps, without_times), "{}");
  Embedding pruned = video();
  pruned.retained = {0, 1};
  EXPECT_EQ(text(MetadataRule::kGrid, pruned), "{}");
}

TEST(MetadataRule, IsThatOfTheFamily) {
  EXPECT_EQ(metadata_rule("qwen2_vl"), MetadataRule::kGrid);
  EXPECT_EQ(metadata_rule("qwen2_5_vl"), MetadataRule::kGrid);
  EXPECT_EQ(metadata_rule("qwen3_vl"), MetadataRule::kGridAndTimestamps);
  EXPECT_EQ(metadata_rule("glm4v"), MetadataRule::kNone) << "vLLM reads no grid of it";
  EXPECT_EQ(metadata_rule("internvl"), MetadataRule::kNone);
}

}  // namespace
}  // namespace fovea::serve
