// Options that some families cannot honour.
#include "engine/family_options.h"

#include <gtest/gtest.h>

#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

using test::expect_error;
using test::golden_folder;

EngineOptions with_pixels(std::optional<std::int64_t> min, std::optional<std::int64_t> max) {
  EngineOptions options{.device = "cpu", .num_threads = 1};
  options.media.min_pixels = min;
  options.media.max_pixels = max;
  return options;
}

TEST(FamilyOptions, RangesOfPixelsAreRefusedWhereImagesAreNotResizedIntoOne) {
  for (const char* name :
       {"internvl", "internvl_chat", "llama4", "kimi_vl", "deepseek_ocr", "step3_vl"}) {
    SCOPED_TRACE(name);
    const std::string model = golden_folder(name, "config.json");
    expect_error(ErrorCode::kUnsupported, "max_pixels: images of ",
                 [&] { (void)plan(model, {}, with_pixels({}, 20'000)); });
    expect_error(ErrorCode::kUnsupported, "min_pixels: images of ",
                 [&] { (void)inspect(model, with_pixels(4096, {})); });
    expect_error(ErrorCode::kUnsupported, "only those of qwen2_vl, qwen2_5_vl, qwen3_vl, glm4v",
                 [&] { (void)Engine::load(model, with_pixels(4096, 20'000)); });
    EXPECT_NO_THROW((void)plan(model, {}, with_pixels({}, {})));
  }
}

TEST(FamilyOptions, RangesOfPixelsAreTakenWhereImagesAreResizedIntoOne) {
  for (const char* name : {"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "glm4v"}) {
    SCOPED_TRACE(name);
    const std::string model = golden_folder(name, "config.json");
    EXPECT_NO_THROW((void)plan(model, {}, with_pixels(4096, 65'536)));
  }
}

}  // namespace
}  // namespace fovea
