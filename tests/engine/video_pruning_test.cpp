// Rows of videos that repeat the frame before: which are dropped, and what is told about them.
#include "engine/video_pruning.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "checkpoint/safetensors.h"
#include "core/row_dtype.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using Indices = std::vector<std::int64_t>;

/// Rows of a video, as encode() returns them without pruning.
Embedding make_video(std::int64_t num_frames, std::int64_t width, const std::vector<float>& values,
                     RowDType dtype = RowDType::kFloat32) {
  Embedding video;
  video.name = "video";
  video.modality = Modality::kVideo;
  video.width = width;
  video.rows = std::ssize(values) / width;
  video.dtype = dtype;
  video.grid_thw = {num_frames, 2, 2 * video.rows / num_frames};
  video.data.resize(values.size() * size_of(to_dtype(dtype)));
  convert_rows(DType::kF32, reinterpret_cast<const std::byte*>(values.data()), dtype,
               video.data.data(), values.size());
  return video;
}

Indices retained(Embedding video, double rate) {
  ThreadPool pool(2);
  prune_video(video, rate, pool);
  return *video.retained;
}

TEST(NumRetained, IsTheReferences) {  // the examples of the specification
  EXPECT_EQ(num_retained(100 * 8, 8, 0.75), 200);
  EXPECT_EQ(num_retained(4 * 3, 3, 0.5), 6);
  EXPECT_EQ(num_retained(391 * 16, 16, 0.3), 4379);
  EXPECT_EQ(num_retained(100 * 8, 8, 0.95), 100);  // the first frame stays whole
  EXPECT_EQ(num_retained(7, 1, 0.9), 7);
}

TEST(PruneVideo, KeepsTheFirstFrameAndWhatDiffersMost) {
  // Three frames of two rows. Row 0 turns by 90 and stays, row 1 stays and turns by 45 degrees.
  const std::vector<float> values{1, 0, 3, 3, 0, 2, 1, 1, 0, 5, 1, 0};
  EXPECT_EQ(retained(make_video(3, 2, values), 0.5), (Indices{0, 1, 2}));
  EXPECT_EQ(retained(make_video(3, 2, values), 0.3), (Indices{0, 1, 2, 5}));
  EXPECT_EQ(retained(make_video(3, 2, values), 0.9), (Indices{0, 1}));
}

TEST(PruneVideo, OfEqualRowsTheFirstStay) {
  std::vector<float> values(5 * 2 * 12);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i % 24 + 1));  // every frame is the first one again
  }
  EXPECT_EQ(retained(make_video(5, 12, values), 0.5), (Indices{0, 1, 2, 3, 4}));
}

TEST(PruneVideo, RowsOfZerosDifferFromAll) {
  const std::vector<float> values{1, 0, 0, 1, 1, 0, 0, 0};  // the cosine of a zero row is 0
  EXPECT_EQ(retained(make_video(2, 2, values), 0.25), (Indices{0, 1, 3}));
}

TEST(PruneVideo, MovesTheRowsThatStay) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(6 * 5 * 33);
  for (float& value : values) value = normal(random);
  for (const RowDType dtype : {RowDType::kFloat32, RowDType::kBFloat16, RowDType::kFloat16}) {
    const Embedding whole = make_video(6, 33, values, dtype);
    Embedding video = whole;
    ThreadPool pool(3);
    prune_video(video, 0.4, pool);
    ASSERT_EQ(video.rows, 18);
    ASSERT_EQ(std::ssize(*video.retained), 18);
    EXPECT_EQ(video.grid_thw, whole.grid_thw);
    const std::size_t row_bytes = 33 * size_of(to_dtype(dtype));
    ASSERT_EQ(video.data.size(), 18 * row_bytes);
    for (std::size_t i = 0; i < 18; ++i) {
      const auto from = static_cast<std::size_t>((*video.retained)[i]);
      EXPECT_EQ(std::memcmp(video.data.data() + i * row_bytes, whole.data.data() + from * row_bytes,
                            row_bytes),
                0);
    }
  }
}

// --- engines ---

/// Six frames of noise, of which each pair that becomes one temporal patch differs from the others.
MediaItem noisy_video() {
  std::vector<std::uint8_t> rgb(6 * 64 * 96 * 3);
  std::mt19937 random(3);
  for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(random());
  return video_rgb(std::move(rgb), 6, 96, 64, 2.0, "noise");
}

MediaItem grey_image() {
  return image_rgb(std::vector<std::uint8_t>(64 * 64 * 3, 99), 64, 64, "grey");
}

EngineOptions pruning(double rate) {
  EngineOptions options{.device = "cpu", .num_threads = 2};
  options.video_pruning_rate = rate;
  return options;
}

class PruningEngine : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static std::string model() {
    return test::golden_folder(GetParam(), "golden.safetensors");
  }
};

TEST_P(PruningEngine, DropsRowsOfVideosAlone) {
  const std::vector<MediaItem> items{grey_image(), noisy_video()};
  Engine plain = Engine::load(model(), pruning(0));
  Engine engine = Engine::load(model(), pruning(0.5));
  const std::vector<Embedding> whole = plain.encode(items);
  const std::vector<Embedding> rows = engine.encode(items);
  EXPECT_EQ(rows[0].data, whole[0].data);
  EXPECT_FALSE(rows[0].retained);
  EXPECT_FALSE(whole[1].retained);
  EXPECT_EQ(rows[1].rows, whole[1].rows / 2);
  ASSERT_TRUE(rows[1].retained);
  ASSERT_EQ(std::ssize(*rows[1].retained), rows[1].rows);
  for (std::int64_t i = 0; i < rows[1].rows; ++i) {
    EXPECT_EQ(rows[1].at(i, 3), whole[1].at((*rows[1].retained)[static_cast<std::size_t>(i)], 3));
  }
}

TEST_P(PruningEngine, RunsVideosEagerlyAndCountsWhy) {
  const std::vector<MediaItem> items{grey_image(), noisy_video(), grey_image()};
  Engine engine = Engine::load(model(), pruning(0.5));
  (void)engine.encode(items);
  EXPECT_EQ(engine.stats().graph_hits, 2);  // images keep their graphs
  EXPECT_EQ(engine.stats().graph_misses, 1);
  EXPECT_EQ(engine.stats().miss_reasons, (std::map<std::string, std::int64_t>{{"pruning", 1}}));
}

TEST_P(PruningEngine, PlansTheRowsThatRemain) {
  const std::vector<ItemSize> sizes{{.width_px = 64, .height_px = 64},
                                    {.width_px = 96, .height_px = 64, .num_frames = 6}};
  const PackingPlan whole = plan(model(), sizes, pruning(0));
  const PackingPlan pruned = plan(model(), sizes, pruning(0.5));
  EXPECT_EQ(pruned.items[0].rows, whole.items[0].rows);
  EXPECT_EQ(pruned.items[1].rows, whole.items[1].rows / 2);
  Engine engine = Engine::load(model(), pruning(0.5));
  const std::vector<MediaItem> items{noisy_video()};
  EXPECT_EQ(engine.encode(items)[0].rows, pruned.items[1].rows);
  ASSERT_EQ(pruned.batches.size(), 2U);
  EXPECT_TRUE(pruned.batches[0].budgets[0]);
  EXPECT_FALSE(pruned.batches[1].budgets[0]);  // eager
}

INSTANTIATE_TEST_SUITE_P(Families, PruningEngine, ::testing::Values("qwen2_5_vl", "qwen3_vl"));

TEST(VideoPruning, PrunedRowsAreHandedOnWithTheirIndices) {
  Engine engine = Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"), pruning(0.5));
  const std::vector<MediaItem> videos{noisy_video()};
  const Embedding rows = engine.encode(videos)[0];
  const std::vector<MediaItem> known{precomputed(rows)};
  const Embedding again = engine.encode(known)[0];
  EXPECT_EQ(again.data, rows.data);  // not pruned twice
  EXPECT_EQ(again.retained, rows.retained);
}

TEST(VideoPruning, TheFileTellsTheIndices) {
  Engine engine = Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"), pruning(0.5));
  const std::vector<MediaItem> items{noisy_video(), grey_image()};
  const std::vector<Embedding> rows = engine.encode(items);
  const test::TemporaryDirectory folder;
  save_safetensors(folder / "rows.safetensors", rows, {});
  const auto file = checkpoint::SafetensorsFile(folder / "rows.safetensors");
  const ConstTensorView stored = file.tensor("item_0.retained");
  EXPECT_EQ(stored.dtype, DType::kI64);
  ASSERT_EQ(stored.shape, Shape({rows[0].rows}));
  Indices values(rows[0].retained->size());
  std::memcpy(values.data(), stored.data, stored.bytes());
  EXPECT_EQ(values, *rows[0].retained);
  EXPECT_FALSE(file.find("item_1.retained"));
}

TEST(VideoPruning, OtherFamiliesRefuseIt) {
  for (const char* family : {"glm4v", "qwen2_vl", "kimi_vl"}) {
    const std::string model = test::golden_folder(family, "golden.safetensors");
    const std::string part = std::string("(family ") + family +
                             ") are not pruned, only those of "
                             "Qwen2_5_VLForConditionalGeneration, Qwen3VLForConditionalGeneration, "
                             "Qwen3VLMoeForConditionalGeneration";
    const auto refuses = [&](auto&& call) {
      test::expect_error(ErrorCode::kUnsupported, part, call);
    };
    refuses([&] { (void)Engine::load(model, pruning(0.5)); });
    refuses([&] { (void)plan(model, {}, pruning(0.5)); });
    refuses([&] { (void)inspect(model, pruning(0.5)); });
    EXPECT_NO_THROW((void)plan(model, {}, pruning(0)));
  }
  test::expect_error(ErrorCode::kUnsupported, "Qwen3_5ForConditionalGeneration",
                     [] { check_video_pruning("Qwen3_5ForConditionalGeneration", 0.5); });
}

TEST(VideoPruning, RatesOutsideTheirRangeAreRefused) {
  for (const double rate : {-0.1, 1.0, std::nan("")}) {
    test::expect_error(ErrorCode::kInvalidArgument, "video_pruning_rate must be at least 0",
                       [&] { check_video_pruning("Qwen3VLForConditionalGeneration", rate); });
  }
}

}  // namespace
}  // namespace fovea
