// The public interface: what goes in, what comes out, and every way to fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

std::string model_dir() { return test::golden_folder("qwen3_vl", "golden.safetensors"); }

MediaItem test_image(std::int64_t width, std::int64_t height, std::uint8_t seed) {
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width * height * 3));
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(i * 7 + seed);
  return image_rgb(std::move(rgb), width, height, "image " + std::to_string(seed));
}

template <class F>
Error error_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {ErrorCode::kInternal, ""};
}

class EngineTest : public ::testing::Test {
 protected:
  Engine engine_ = Engine::load(model_dir(), {.device = "cpu", .num_threads = 2});
};

TEST_F(EngineTest, DescribesItself) {
  EXPECT_EQ(engine_.report().family, "qwen3_vl");
  EXPECT_EQ(engine_.report().hidden, 64);
  EXPECT_EQ(engine_.report().deepstack_levels, 3);
  EXPECT_EQ(engine_.report().width, 256);
  EXPECT_TRUE(engine_.device().starts_with("cpu"));
}

TEST_F(EngineTest, EmptyBatchGivesNothing) {
  EXPECT_TRUE(engine_.encode(std::span<const MediaItem>{}).empty());
}

TEST_F(EngineTest, RowsHaveTheAskedType) {
  const MediaItem item = test_image(64, 64, 1);
  const Embedding wide = engine_.encode({&item, 1}).front();
  const Embedding narrow = engine_.encode({&item, 1}, {.dtype = RowDType::kBFloat16}).front();
  const Embedding half = engine_.encode({&item, 1}, {.dtype = RowDType::kFloat16}).front();
  EXPECT_EQ(wide.data.size(), 2 * narrow.data.size());
  for (std::int64_t r = 0; r < wide.rows; ++r) {
    for (std::int64_t c = 0; c < wide.width; ++c) {
      EXPECT_NEAR(narrow.at(r, c), wide.at(r, c), std::abs(wide.at(r, c)) / 256);
      EXPECT_NEAR(half.at(r, c), wide.at(r, c), std::abs(wide.at(r, c)) / 2048 + 1e-7);
    }
  }
  EXPECT_THROW((void)wide.at(wide.rows, 0), Error);
}

// Room may be there by the time at which the item would go to the tower.
TEST_F(EngineTest, DoesNotEncodeAnItemThatWasNotDecodedForWantOfRoom) {
  const MediaItem image = test_image(64, 64, 1);  // by itself it comes without a plan
  std::atomic<int> asked = 0;
  EncodeOptions how{.on_error = OnError::kSkip};
  how.has_room = [&](const MediaItem&, std::int64_t) { return asked++ > 0; };
  const Embedding refused = engine_.encode({&image, 1}, how).front();
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(refused.data.empty());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(engine_.encode({&image, 1}, how).front().data, engine_.encode({&image, 1})[0].data);
}

TEST_F(EngineTest, ImagesAndVideosShareABatchInOrder) {
  std::vector<std::uint8_t> frames(3 * 64 * 48 * 3, 90);
  const std::vector<MediaItem> items{test_image(200, 100, 1),
                                     video_rgb(std::move(frames), 3, 64, 48, 2.0, "clip"),
                                     test_image(64, 64, 2)};
  const std::vector<Embedding> rows = engine_.encode(items);
  EXPECT_EQ(rows[1].modality, Modality::kVideo);
  EXPECT_EQ((*rows[1].grid_thw)[0], 2);
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(rows[i].name, items[i].name);
    EXPECT_EQ(rows[i].data, engine_.encode({&items[i], 1}).front().data);
  }
}

TEST_F(EngineTest, VideoContainersAreSampledAtTheAskedRate) {
  for (const EnvironmentFact& fact : describe_environment()) {
    if (fact.first == "video" && fact.second.starts_with("not used")) GTEST_SKIP() << fact.second;
  }
  // 25 frames at 10 per second: 5 at 2 per second, 12 at 5 per second.
  const std::string clip = std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/videos/ramp_h264.mp4";
  for (const auto& [fps, frames] : {std::pair{2.0, 5}, {5.0, 12}}) {
    const MediaItem item = video_path(clip, fps);
    const Embedding rows = engine_.encode({&item, 1}).front();
    EXPECT_EQ(rows.num_frames, frames);
    EXPECT_EQ((*rows.grid_thw)[0], (frames + 1) / 2);
    EXPECT_EQ(rows.source_width_px, 96);
  }
}

TEST_F(EngineTest, ARateThatIsNoneIsRefusedForContainersOfEveryFamily) {
  for (const EnvironmentFact& fact : describe_environment()) {
    if (fact.first == "video" && fact.second.starts_with("not used")) GTEST_SKIP() << fact.second;
  }
  const std::string clip = std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/videos/ramp_h264.mp4";
  for (const char* family : {"qwen3_vl", "internvl"}) {
    SCOPED_TRACE(family);
    Engine engine = Engine::load(test::golden_folder(family, "golden.safetensors"),
                                 {.device = "cpu", .num_threads = 1});
    for (const double fps : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
      const MediaItem item = video_path(clip, fps);
      test::expect_error(ErrorCode::kInvalidArgument,
                         clip + ": expected a number of frames per second above 0, got ", [&] {
                           (void)engine.encode({&item, 1});
                         });
    }
  }
}

TEST_F(EngineTest, FirstFailureEndsACallByDefault) {
  const std::vector<MediaItem> items{test_image(64, 64, 1), image_bytes({1, 2, 3}, "broken.png"),
                                     image_file("missing.jpg")};
  const Error error = error_of([&] { (void)engine_.encode(items); });
  EXPECT_NE(std::string(error.what()).find("broken.png"), std::string::npos) << error.what();
}

TEST_F(EngineTest, SkipsFailuresOnRequest) {
  const std::vector<MediaItem> items{test_image(64, 64, 1), image_file("missing.jpg"),
                                     test_image(1, 5000, 3), test_image(96, 64, 2)};
  const std::vector<Embedding> rows = engine_.encode(items, {.on_error = OnError::kSkip});
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_FALSE(rows[0].error);
  ASSERT_TRUE(rows[1].error);
  EXPECT_EQ(rows[1].error->code(), ErrorCode::kNotFound);
  ASSERT_TRUE(rows[2].error);
  EXPECT_EQ(rows[2].error->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(rows[2].rows, 0);
  EXPECT_EQ(rows[3].data, engine_.encode({&items[3], 1}).front().data);
}

TEST_F(EngineTest, StagesOfABatchAreSharedByRows) {
  const std::vector<MediaItem> items{test_image(64, 64, 1), test_image(128, 64, 2)};
  for (const bool eager : {false, true}) {
    const std::vector<Embedding> rows = engine_.encode(items, {.enforce_eager = eager});
    ASSERT_EQ(rows[1].rows, 2 * rows[0].rows);
    for (double StageTimes::*const stage :
         {&StageTimes::pack_ms, &StageTimes::encode_ms, &StageTimes::output_ms}) {
      EXPECT_GT(rows[0].times.*stage, 0);
      EXPECT_DOUBLE_EQ(rows[1].times.*stage, 2 * rows[0].times.*stage);
    }
  }
}

TEST_F(EngineTest, TellsHowFarItIs) {
  std::vector<MediaItem> items;
  items.reserve(70);
  for (int i = 0; i < 70; ++i) items.push_back(test_image(32, 32, static_cast<std::uint8_t>(i)));
  std::vector<std::int64_t> done;
  const auto progress = [&](std::int64_t now, std::int64_t total) {
    EXPECT_EQ(total, 70);
    done.push_back(now);
  };
  (void)engine_.encode(items, {.progress = progress});
  EXPECT_GT(done.size(), 1u);
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_EQ(done.back(), 70);
}

TEST_F(EngineTest, RowsOfALongCallAreInTheOrderOfTheItems) {
  std::vector<MediaItem> items;
  items.reserve(100);
  for (int i = 0; i < 100; ++i) {  // not in the order of their sizes
    items.push_back(test_image(32 + 32 * (i * 7 % 10), 64, static_cast<std::uint8_t>(i)));
  }
  const std::vector<Embedding> rows = engine_.encode(items);
  ASSERT_EQ(rows.size(), items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(rows[i].name, items[i].name);
    EXPECT_EQ(rows[i].source_width_px, std::get<RgbFrames>(items[i].source).width_px);
  }
  for (std::size_t i = 0; i < items.size(); i += 9) {
    EXPECT_EQ(rows[i].data, engine_.encode({&items[i], 1}).front().data) << i;
  }
}

TEST_F(EngineTest, ALongCallFailsEarlyIfAFileIsMissing) {
  std::vector<MediaItem> items(200, test_image(32, 32, 1));
  items.back() = image_file("missing.jpg");
  std::int64_t done = 0;
  const auto progress = [&](std::int64_t now, std::int64_t) { done = now; };
  const Error error = error_of([&] { (void)engine_.encode(items, {.progress = progress}); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_EQ(done, 0);
}

TEST_F(EngineTest, RefusesRgbOfTheWrongSize) {
  const MediaItem item = image_rgb(std::vector<std::uint8_t>(10), 2, 2, "short");
  EXPECT_EQ(error_of([&] {
              (void)engine_.encode({&item, 1});
            }).code(),
            ErrorCode::kInvalidArgument);
}

TEST(EngineLimits, HoldForPixelsInMemory) {
  EngineOptions options{.device = "cpu", .num_threads = 1};
  options.media.limits.max_image_side_px = 100;
  options.media.limits.max_image_pixels = 99 * 99;
  options.media.limits.max_video_frames = 3;
  Engine engine = Engine::load(model_dir(), options);
  const auto refusal = [&](std::int64_t frames, std::int64_t width, std::int64_t height) {
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(frames * width * height * 3));
    const MediaItem item = video_rgb(std::move(rgb), frames, width, height, 2.0, "clip");
    return std::string(error_of([&] { (void)engine.encode({&item, 1}); }).what());
  };
  EXPECT_EQ(refusal(1, 101, 8), "clip: expected sides of at most 100 pixels, got 101 x 8");
  EXPECT_EQ(refusal(1, 100, 99), "clip: expected at most 9801 pixels, got 100 x 99");
  EXPECT_EQ(refusal(4, 8, 8), "clip: expected at most 3 frames, got 4");
}

TEST(EngineLimits, FrameCountsDoNotOverflow) {
  EngineOptions options{.device = "cpu", .num_threads = 1};
  options.media.limits.max_video_frames = std::numeric_limits<std::int64_t>::max();
  Engine engine = Engine::load(model_dir(), options);
  for (const std::int64_t frames : {std::int64_t{1} << 62, std::int64_t{-1}, std::int64_t{0}}) {
    const MediaItem item = video_rgb({}, frames, 4, 4, 2.0, "clip");
    const Error error = error_of([&] { (void)engine.encode({&item, 1}); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
  }
}

TEST_F(EngineTest, MessagesBeginWithTheNameOfTheItem) {
  const MediaItem item = image_rgb(std::vector<std::uint8_t>(300 * 3), 300, 1, "line");
  const Error error = error_of([&] { (void)engine_.encode({&item, 1}); });
  EXPECT_TRUE(std::string(error.what()).starts_with("line: image of 300x1")) << error.what();
}

TEST(EngineVerify, PassesOnTheGoldenCheckpoint) {
  Engine engine =
      Engine::load(model_dir(), {.device = "cpu", .num_threads = 2, .max_num_batched_tokens = 512});
  for (const Check& check : verify(engine, model_dir())) {
    EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
  }
}

TEST_F(EngineTest, TimesTheTower) {
  const TowerTiming timing = time_tower(engine_, {.count = 2, .patches = 64}, 0, 3);
  EXPECT_EQ(timing.patches, 128);
  EXPECT_EQ(timing.rows, 32);
  EXPECT_GT(timing.flops, 0);
  EXPECT_EQ(timing.eager_ms.size(), 3u);
  EXPECT_EQ(timing.replay_ms.size(), 3u);
  EXPECT_EQ(timing.budget, 64);
  EXPECT_EQ(error_of([&] { (void)time_tower(engine_, {.patches = 7}, 0, 1); }).code(),
            ErrorCode::kInvalidArgument);
}

TEST(EngineTiming, WithoutGraphsThereIsNoBudget) {
  const EngineOptions options{
      .device = "cpu", .num_threads = 1, .graphs = {.cudagraph_mm_encoder = false}};
  Engine engine = Engine::load(model_dir(), options);
  const TowerTiming timing = time_tower(engine, {.patches = 64}, 0, 1);
  EXPECT_TRUE(timing.replay_ms.empty());
  EXPECT_EQ(timing.budget, 0);
}

TEST(EngineLoad, UnknownDirectoryArchitectureAndDevice) {
  EXPECT_EQ(error_of([] { (void)Engine::load("no/such/model"); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of([] { (void)Engine::load(model_dir(), {.device = "tpu"}); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([] { (void)Engine::load(model_dir(), {.device = "cuda:x"}); }).code(),
            ErrorCode::kInvalidArgument);
  const fs::path folder = fs::path(::testing::TempDir()) / "fovea_unknown_model";
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << R"({"architectures": ["NoSuchModel"]})";
  const Error error = error_of([&] { (void)Engine::load(folder.string()); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_NE(std::string(error.what()).find("qwen3_vl"), std::string::npos);
  fs::remove_all(folder);
}

TEST(EngineLoad, CountsMissingAndMisshapenTensorsThatInspectLists) {
  const fs::path folder = fs::path(::testing::TempDir()) / "fovea_misfit_model";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ifstream in(model_dir() + "/config.json");
  std::string config((std::istreambuf_iterator<char>(in)), {});
  const auto replace = [&](const std::string& from, const std::string& to) {
    config.replace(config.find(from), from.size(), to);
  };
  replace("\"depth\": 4", "\"depth\": 5");
  replace("\"intermediate_size\": 272", "\"intermediate_size\": 280");
  std::ofstream(folder / "config.json") << config;
  fs::create_symlink(fs::absolute(model_dir()) / "model.safetensors", folder / "model.safetensors");
  const Error error = error_of([&] { (void)Engine::load(folder.string(), {.device = "cpu"}); });
  const std::string text = error.what();
  EXPECT_NE(text.find("24 of 87 tensors are missing or misshapen"), std::string::npos) << text;
  EXPECT_NE(text.find("blocks.0.mlp.linear_fc1.weight has shape [272, 144]"), std::string::npos);
  EXPECT_NE(text.find("expected [280, 144]"), std::string::npos);
  const ModelReport report = inspect(folder.string(), {.device = "cpu"});
  const auto broken = [](const TensorReport& tensor) { return !tensor.problem.empty(); };
  EXPECT_EQ(std::ranges::count_if(report.tensors, broken), 24);
  const auto qkv = std::ranges::find(report.tensors, "model.visual.blocks.4.attn.qkv.weight",
                                     &TensorReport::name);
  ASSERT_NE(qkv, report.tensors.end());
  EXPECT_TRUE(qkv->problem.starts_with("missing")) << qkv->problem;
  fs::remove_all(folder);
}

TEST(EngineLoad, DummyWeightsNeedOnlyTheConfig) {
  const fs::path folder = fs::path(::testing::TempDir()) / "fovea_dummy_model";
  fs::create_directories(folder);
  fs::copy_file(model_dir() + "/config.json", folder / "config.json",
                fs::copy_options::overwrite_existing);
  const EngineOptions options{.device = "cpu", .dummy_weights = true, .seed = 7};
  Engine first = Engine::load(folder.string(), options);
  Engine second = Engine::load(folder.string(), options);
  const MediaItem item = test_image(64, 64, 1);
  const Embedding rows = first.encode({&item, 1}).front();
  EXPECT_EQ(rows.data, second.encode({&item, 1}).front().data);
  EXPECT_TRUE(std::isfinite(rows.at(0, 0)));
  fs::remove_all(folder);
}

TEST(EngineInspect, ReportsTheMemoryPlan) {
  const ModelReport report = inspect(model_dir(), {.device = "cpu"});
  EXPECT_GT(report.parameters, 0);
  EXPECT_GT(report.weight_bytes, 0u);
  ASSERT_FALSE(report.arenas.empty());
  EXPECT_GT(report.arenas.back().bytes, report.arenas.front().bytes);
}

}  // namespace
}  // namespace fovea
