// Rows of videos that are dropped: which, and what is told about them.
#include "engine/pruning/video_pruning.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "checkpoint/safetensors.h"
#include "core/row_dtype.h"
#include "fovea/fovea.h"
#include "models/registry.h"
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

constexpr PruningRule evs(double rate) { return {.rate = rate}; }

constexpr PruningRule vidcom2(double rate) {
  return {.rate = rate, .method = PruningMethod::kVidCom2};
}

Indices retained(Embedding video, const PruningRule& rule) {
  ThreadPool pool(2);
  prune_video(video, rule, pool);
  return *video.retained;
}

TEST(NumRetained, IsTheReferences) {  // the examples of the specification
  EXPECT_EQ(num_retained(100 * 8, 8, evs(0.75)), 200);
  EXPECT_EQ(num_retained(4 * 3, 3, evs(0.5)), 6);
  EXPECT_EQ(num_retained(391 * 16, 16, evs(0.3)), 4379);
  EXPECT_EQ(num_retained(100 * 8, 8, evs(0.95)), 100);  // the first frame stays whole
  EXPECT_EQ(num_retained(7, 1, evs(0.9)), 7);
  EXPECT_EQ(num_retained(10 * 10, 10, evs(0.9)), 10);  // 100 * (1 - 0.9) is less than 10
  EXPECT_EQ(num_retained(10 * 10, 10, vidcom2(0.9)), 10);
  EXPECT_EQ(num_retained(100, 1, vidcom2(0.9)), 9);
  EXPECT_EQ(num_retained(384 * 4, 384, evs(0.9)), 153);
  EXPECT_EQ(num_retained(384 * 4, 384, vidcom2(0.9)), 384);  // a row of every frame
}

TEST(PruneVideo, KeepsTheFirstFrameAndWhatDiffersMost) {
  // Three frames of two rows. Row 0 turns by 90 and stays, row 1 stays and turns by 45 degrees.
  const std::vector<float> values{1, 0, 3, 3, 0, 2, 1, 1, 0, 5, 1, 0};
  EXPECT_EQ(retained(make_video(3, 2, values), evs(0.5)), (Indices{0, 1, 2}));
  EXPECT_EQ(retained(make_video(3, 2, values), evs(0.3)), (Indices{0, 1, 2, 5}));
  EXPECT_EQ(retained(make_video(3, 2, values), evs(0.9)), (Indices{0, 1}));
}

TEST(PruneVideo, OfEqualRowsTheFirstStay) {
  std::vector<float> values(5 * 2 * 12);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i % 24 + 1));  // every frame is the first one again
  }
  EXPECT_EQ(retained(make_video(5, 12, values), evs(0.5)), (Indices{0, 1, 2, 3, 4}));
}

TEST(PruneVideo, RowsOfZerosDifferFromAll) {
  const std::vector<float> values{1, 0, 0, 1, 1, 0, 0, 0};  // the cosine of a zero row is 0
  EXPECT_EQ(retained(make_video(2, 2, values), evs(0.25)), (Indices{0, 1, 3}));
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
    prune_video(video, evs(0.4), pool);
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

/// What vLLM's own functions kept of 40 videos. In float32 sums of another order move nothing: no
/// two rows of these are close. In bfloat16 the reference rounds every step, and only the videos
/// count of which a reading in float64 keeps the same rows.
TEST(PruneVideo, KeepsWhatTheReferenceKeeps) {
  const checkpoint::SafetensorsFile file(FOVEA_TEST_SOURCE_DIR
                                         "/tests/engine/pruning/vectors.safetensors");
  const auto integers = [&](const std::string& name) {
    const ConstTensorView tensor = file.tensor(name);
    Indices values(tensor.bytes() / sizeof(std::int64_t));
    std::memcpy(values.data(), tensor.data, tensor.bytes());
    return values;
  };
  int compared = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string name = std::to_string(i);
    SCOPED_TRACE("video " + name);
    const ConstTensorView x = file.tensor(name + ".x");
    const Indices about = integers(name + ".case");
    Embedding video;
    video.modality = Modality::kVideo;
    video.rows = x.shape[0];
    video.width = x.shape[1];
    video.dtype = x.dtype == DType::kBF16 ? RowDType::kBFloat16 : RowDType::kFloat32;
    video.grid_thw = {about[0], about[1], about[2]};
    video.data.resize(x.bytes());
    std::memcpy(video.data.data(), x.data, x.bytes());
    const double rate = static_cast<double>(about[3]) / 100;
    const bool is_exact = video.dtype == RowDType::kFloat32;
    const auto compare = [&](const PruningRule& rule, const std::string& expected, bool is_stable) {
      const Indices kept = retained(video, rule);
      EXPECT_EQ(std::ssize(kept), std::ssize(integers(name + expected)));
      if (!is_exact && !is_stable) return;
      EXPECT_EQ(kept, integers(name + expected)) << expected;
      ++compared;
    };
    compare(evs(rate), ".evs", about[4] != 0);
    compare(vidcom2(rate), ".vidcom2", about[5] != 0);
  }
  EXPECT_EQ(compared, 2 * 27 + 11 + 11);
}

TEST(PruneVideo, OfEqualRowsVidCom2KeepsTheFirst) {
  const std::vector<float> values(3 * 4 * 8, 0.5F);
  EXPECT_EQ(retained(make_video(3, 8, values), vidcom2(0.5)), (Indices{0, 1, 4, 5, 8, 9}));
  EXPECT_EQ(retained(make_video(3, 8, values), vidcom2(0.99)), (Indices{0, 4, 8}));
  EXPECT_EQ(retained(make_video(1, 1, {1, 2, 3}), vidcom2(0.5)), (Indices{0}));
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

EngineOptions pruning(double rate, PruningMethod method = PruningMethod::kEvs) {
  EngineOptions options{.device = "cpu", .num_threads = 2};
  options.video_pruning_rate = rate;
  options.video_pruning_method = method;
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
                             ") are not pruned by evs, only those of "
                             "Qwen2_5_VLForConditionalGeneration, Exaone4_5_";
    const auto refuses = [&](auto&& call) {
      test::expect_error(ErrorCode::kUnsupported, part, call);
    };
    refuses([&] { (void)Engine::load(model, pruning(0.5)); });
    refuses([&] { (void)plan(model, {}, pruning(0.5)); });
    refuses([&] { (void)inspect(model, pruning(0.5)); });
    EXPECT_NO_THROW((void)plan(model, {}, pruning(0)));
  }
}

void check(std::string_view architecture, const PruningRule& rule) {
  check_video_pruning(find_family(architecture), architecture, rule);
}

TEST(VideoPruning, MethodsOfOthersAreRefused) {
  EXPECT_NO_THROW(check("Qwen3_5ForConditionalGeneration", vidcom2(0.5)));
  EXPECT_NO_THROW(check("CohereCompassForConditionalGeneration", evs(0.5)));
  for (const char* name :
       {"CohereCompassForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration"}) {
    test::expect_error(ErrorCode::kUnsupported,
                       "are not pruned by vidcom2, only those of Qwen3VLForConditionalGeneration",
                       [&] { check(name, vidcom2(0.5)); });
  }
}

TEST(VideoPruning, ByVidCom2EveryFrameKeepsRows) {
  const std::string model = test::golden_folder("qwen3_5", "golden.safetensors");
  Engine engine = Engine::load(model, pruning(0.9, PruningMethod::kVidCom2));
  const std::vector<MediaItem> videos{noisy_video()};
  const Embedding rows = engine.encode(videos)[0];
  EXPECT_EQ(rows.rows, 3);
  std::set<std::int64_t> frames;
  for (const std::int64_t row : *rows.retained) frames.insert(row / 6);
  EXPECT_EQ(frames, (std::set<std::int64_t>{0, 1, 2}));
}

TEST(VideoPruning, RatesOutsideTheirRangeAreRefused) {
  for (const double rate : {-0.1, 1.0, std::nan("")}) {
    test::expect_error(ErrorCode::kInvalidArgument, "video_pruning_rate must be at least 0",
                       [&] { check("Qwen3VLForConditionalGeneration", evs(rate)); });
  }
}

}  // namespace
}  // namespace fovea
