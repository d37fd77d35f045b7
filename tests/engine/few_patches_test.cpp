// Images of few patches on a GPU, where one kernel may compute all blocks of a tower if it has the
// SMs for it: rows and deepstack levels against those of the CPU. Skipped without a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "engine/backend.h"
#include "fovea/fovea.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

/// Blocks of a size that has such a kernel, and levels behind the first and the last of them.
constexpr const char* kConfig = R"({
  "architectures": ["Qwen3VLForConditionalGeneration"],
  "model_type": "qwen3_vl",
  "vision_config": {
    "deepstack_visual_indexes": [0, 2],
    "depth": 3,
    "hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_heads": 16,
    "num_position_embeddings": 64,
    "out_hidden_size": 128,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2
  }
})";

class FewPatches : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_status().starts_with("not used")) GTEST_SKIP() << cuda_status();
    golden_ = test::golden_folder("qwen3_vl", "preprocessor_config.json");
    std::filesystem::copy(golden_ + "/preprocessor_config.json", model_.path());
    std::ofstream(model_ / "config.json") << kConfig;
  }
  [[nodiscard]] Engine load(const std::string& device, int sm_budget = 0) const {
    return Engine::load(model_.path(), {.device = device,
                                        .dummy_weights = true,
                                        .graphs = {.encoder_cudagraph_token_budgets = {8, 16, 64}},
                                        .sm_budget = sm_budget});
  }
  [[nodiscard]] std::vector<MediaItem> images() const {
    std::vector<MediaItem> items;
    for (const auto* name :
         {"noise_101x61.png", "shapes_120x90.png", "gradient_64x200.png", "photo_180x180.jpg"})
      items.push_back(image_file(golden_ + "/images/" + name));
    return items;
  }

 private:
  test::TemporaryDirectory model_;
  std::string golden_;
};

/// Euclidean norm of the difference of some columns, relative to that of `want`.
double difference(const Embedding& got, const Embedding& want, std::int64_t first,
                  std::int64_t count) {
  double off = 0;
  double all = 0;
  for (std::int64_t row = 0; row < want.rows; ++row) {
    for (std::int64_t column = first; column < first + count; ++column) {
      const double expected = want.at(row, column);
      const double d = got.at(row, column) - expected;
      off += d * d;
      all += expected * expected;
    }
  }
  return std::sqrt(off / all);
}

/// Rows of one kernel for all blocks are those of its eager runs, too.
void expect_rows_of(Engine& cpu, Engine& gpu, const std::vector<MediaItem>& items,
                    bool in_one_kernel) {
  constexpr std::int64_t kWidth = 128;
  constexpr double kBf16 = 0.01;  // what rounding leaves of a few blocks, see verify
  gpu.warm_up();
  const std::vector<Embedding> want = cpu.encode(items);
  for (std::size_t i = 0; i < items.size(); ++i) {
    SCOPED_TRACE(items[i].name);
    const Embedding replayed = gpu.encode(std::span(&items[i], 1)).front();
    const Embedding eager = gpu.encode(std::span(&items[i], 1), {.enforce_eager = true}).front();
    ASSERT_LE(replayed.rows, 64);
    for (const auto* got : {&replayed, &eager}) {
      ASSERT_EQ(got->width, 3 * kWidth);
      for (int part = 0; part < 3; ++part)
        EXPECT_LE(difference(*got, want[i], part * kWidth, kWidth), kBf16)
            << (got == &eager ? "eager" : "replayed") << ", part " << part;
    }
    if (in_one_kernel && replayed.rows <= 16) {
      EXPECT_EQ(replayed.data, eager.data);
    }
  }
}

TEST_F(FewPatches, GiveTheRowsAndLevelsOfTheCpu) {
  Engine cpu = load("cpu");
  Engine gpu = load("cuda");
  expect_rows_of(cpu, gpu, images(), true);
}

TEST_F(FewPatches, GiveThemOnFewSms) {
  constexpr int kFewSms = 32;
  Engine cpu = load("cpu");
  Engine gpu = load("cuda", kFewSms);
  expect_rows_of(cpu, gpu, images(), false);
}

}  // namespace
}  // namespace fovea
