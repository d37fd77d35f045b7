// Calls that end early by a stop or a deadline, and what comes after them.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <stop_token>
#include <thread>

#include "engine/cached/noise.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;
using test::expect_error;
using test::noise;

std::string model_of(const std::string& family) {
  return test::golden_folder(family, "golden.safetensors");
}

/// Bounds of a call that is over before it begins: stopped, or late.
CallBounds stopped() {
  std::stop_source source;
  source.request_stop();
  return {.stop = source.get_token()};
}
CallBounds late() { return {.deadline = Clock::now() - std::chrono::seconds(1)}; }

class CallBoundsTest : public ::testing::Test {
 protected:
  std::string model_ = model_of("qwen3_vl");
  EngineOptions options_{.device = "cpu", .num_threads = 2};
};

TEST_F(CallBoundsTest, NoCallBeginsAfterItsEnd) {
  Engine engine = Engine::load(model_, options_);
  const std::vector<MediaItem> items{noise(64, 64, 1)};
  const std::vector<ItemSize> sizes{{.width_px = 64, .height_px = 64}};
  const auto expect_both = [&](const std::string& call, auto&& run) {
    expect_error(ErrorCode::kCancelled, "stopped", [&] { run(stopped()); });
    expect_error(ErrorCode::kDeadline, call + ": not done before its deadline",
                 [&] { run(late()); });
  };
  expect_both("load", [&](const CallBounds& b) { (void)Engine::load(model_, options_, b); });
  expect_both("encode", [&](const CallBounds& b) { (void)engine.encode(items, {.bounds = b}); });
  expect_both("warm_up", [&](const CallBounds& b) { engine.warm_up(b); });
  expect_both("plan", [&](const CallBounds& b) { (void)engine.plan(sizes, b); });
  expect_both("plan", [&](const CallBounds& b) { (void)plan(model_, sizes, options_, b); });
  expect_both("inspect", [&](const CallBounds& b) { (void)inspect(model_, options_, b); });
  expect_both("verify", [&](const CallBounds& b) { (void)verify(engine, "", b); });
  expect_both("time_tower", [&](const CallBounds& b) {
    (void)time_tower(engine, {.count = 1, .patches = 64}, 0, 1, b);
  });
  expect_both("measure_tower_energy", [&](const CallBounds& b) {
    (void)measure_tower_energy(engine, {.count = 1, .patches = 64}, 0.1, b);
  });
  EXPECT_EQ(engine.stats().sub_batches, 0);
  EXPECT_EQ(engine.encode(items).size(), 1u);
}

TEST_F(CallBoundsTest, TheEndOfACallIsNoErrorOfItsItems) {
  Engine engine = Engine::load(model_, options_);
  const std::vector<MediaItem> items(200, noise(32, 32, 1));
  std::stop_source source;
  const EncodeOptions how{.on_error = OnError::kSkip,
                          .progress = [&](std::int64_t, std::int64_t) { source.request_stop(); },
                          .bounds = {.stop = source.get_token()}};
  expect_error(ErrorCode::kCancelled, "stopped", [&] { (void)engine.encode(items, how); });
  EXPECT_LT(engine.stats().graph_hits, 200);
}

TEST_F(CallBoundsTest, ADeadlineBoundsTheChecksOfVerifyToo) {
  options_.max_num_batched_tokens = 512;
  Engine engine = Engine::load(model_, options_);
  const CallBounds soon{.deadline = Clock::now() + std::chrono::milliseconds(5)};
  expect_error(ErrorCode::kDeadline, "verify: ", [&] { (void)verify(engine, "", soon); });
}

TEST_F(CallBoundsTest, WaitingForAnotherCallEndsToo) {
  Engine engine = Engine::load(model_, {.device = "cpu", .num_threads = 1});
  const std::vector<MediaItem> large(8, noise(640, 480, 1));
  const std::vector<MediaItem> small{noise(64, 64, 2)};
  std::stop_source source;
  std::jthread busy([&] {
    expect_error(ErrorCode::kCancelled, "stopped", [&] {
      while (true) (void)engine.encode(large, {.bounds = {.stop = source.get_token()}});
    });
  });
  bool ended = false;
  while (!ended) {  // until the deadline falls into the time in which the other call has the turn
    try {
      (void)engine.encode(small,
                          {.bounds = {.deadline = Clock::now() + std::chrono::milliseconds(2)}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDeadline) << error.what();
      ended = true;
    }
  }
  source.request_stop();
}

struct EndedCase {
  std::string family;
  int replicas;
};

class EndedCall : public ::testing::TestWithParam<EndedCase> {};

TEST_P(EndedCall, LeavesAnEngineThatGivesTheSameRows) {
  const auto& [family, replicas] = GetParam();
  const EngineOptions options{
      .device = "cpu", .data_parallel_size = replicas, .num_threads = 2 * replicas};
  const std::string model = model_of(family);
  // One for every replica. The first is cut into tiles where a family has them, but into few.
  std::vector<MediaItem> items{noise(660, 330, 1), noise(100, 80, 2)};
  if (replicas > 2) items.push_back(noise(64, 64, 3));
  const std::vector<Embedding> expected = Engine::load(model, options).encode(items);
  const auto expect_same = [&](const std::vector<Embedding>& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].data, expected[i].data) << i;
  };
  // Deadlines from the first capture to the last row, with fresh engines for the captures.
  auto time = std::chrono::microseconds(500);
  for (int ended = 0, round = 0; round < 20; ++round) {
    Engine engine = Engine::load(model, options);
    bool done = true;
    for (const bool eager : {false, true, false}) {
      const CallBounds bounds{.deadline = Clock::now() + time};
      try {
        expect_same(engine.encode(items, {.enforce_eager = eager, .bounds = bounds}));
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::kDeadline) << error.what();
        ++ended;
        done = false;
      }
    }
    expect_same(engine.encode(items));
    if (done) {
      EXPECT_GT(ended, 0);
      break;
    }
    time *= 3;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, EndedCall,
                         ::testing::Values(EndedCase{"qwen3_vl", 1}, EndedCase{"qwen3_vl", 3},
                                           EndedCase{"deepseek_ocr", 1}),
                         [](const auto& test) {
                           return test.param.family + "_" + std::to_string(test.param.replicas);
                         });

TEST_F(CallBoundsTest, LoadingEndsBetweenTensors) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "large_dummy";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(model_ + "/config.json", folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  options_.dummy_weights = true;
  int ended = 0;
  auto time = std::chrono::microseconds(100);
  for (bool done = false; !done; time *= 2) {
    try {
      (void)Engine::load(folder.string(), options_, {.deadline = Clock::now() + time});
      done = true;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kDeadline) << error.what();
      ++ended;
    }
  }
  EXPECT_GT(ended, 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fovea
