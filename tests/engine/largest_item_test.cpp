// The largest item that a model's own rules make.
#include <gtest/gtest.h>

#include "fovea/fovea.h"
#include "support/golden.h"

namespace fovea {
namespace {

std::int64_t largest(const std::string& family, const EngineOptions& options = {}) {
  return largest_item_patches(test::golden_folder(family, "golden.safetensors"), options);
}

TEST(LargestItem, FollowsFromThePixelsThatTheProcessorAllows) {
  EXPECT_EQ(largest("qwen3_vl"), 65'536);  // 16,777,216 pixels in patches of 16 x 16
  EngineOptions options;
  options.media.max_pixels = 64 * 1024;
  EXPECT_LT(largest("qwen3_vl", options), 65'536);
}

TEST(LargestItem, IsAtLeastThatOfAnyImageThatLimitsLetThrough) {
  for (const char* family : {"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "glm4v", "internvl", "llama4",
                             "kimi_vl", "deepseek_ocr", "step3_vl"}) {
    const std::int64_t most = largest(family);
    const std::vector<ItemSize> sizes{{4000, 4000}, {12'000, 1'000}, {1'000, 12'000}, {9000, 3000}};
    const std::string model = test::golden_folder(family, "golden.safetensors");
    for (const ItemInfo& item : plan(model, sizes, {.device = "cpu"}).items) {
      EXPECT_LE(item.patches, most) << family << " " << item.name;
    }
  }
}

TEST(LargestItem, KeepsToTheLimitsOnSizes) {
  EngineOptions options;
  options.media.limits.max_image_pixels = 640 * 640;
  EXPECT_LT(largest("qwen3_vl", options), 65'536);
}

}  // namespace
}  // namespace fovea
