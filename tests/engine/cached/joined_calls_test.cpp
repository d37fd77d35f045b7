// Calls of several threads that ask for the same items at the same time.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <optional>
#include <thread>

#include "engine/cached/noise.h"
#include "fovea/fovea.h"
#include "support/golden.h"

namespace fovea {
namespace {

using test::load_cached;
using test::noise;

/// A file whose header is whole.
MediaItem half_an_image() {
  std::ifstream file(std::string(FOVEA_TEST_GOLDEN_DIR) + "/qwen3_vl/images/photo_180x180.jpg",
                     std::ios::binary);
  std::vector<std::uint8_t> jpeg{std::istreambuf_iterator<char>(file), {}};
  jpeg.resize(jpeg.size() / 2);
  return image_bytes(std::move(jpeg), "half");
}

/// The rows of one item, or how the call ended.
struct Outcome {
  std::optional<Embedding> item;
  std::optional<Error> error;
};

Outcome outcome_of(Engine& engine, std::span<const MediaItem> items, const EncodeOptions& how) {
  try {
    return {std::move(engine.encode(items, how).back()), std::nullopt};
  } catch (const Error& error) {
    return {std::nullopt, error};
  }
}

/// A long call whose last window holds `shared_`, and one of `shared_` alone that comes while the
/// first is at its first window, and waits.
class JoinedCalls : public ::testing::Test {
 protected:
  /// @param meanwhile runs when the second call waits.
  void run(
      const EncodeOptions& first_how, const EncodeOptions& second_how,
      const std::function<void()>& meanwhile = [] {}) {
    std::vector<MediaItem> items;
    for (unsigned seed = 0; seed < 70; ++seed) items.push_back(noise(32, 32, 1000 + seed));
    items.insert(items.end(), others_.begin(), others_.end());
    items.push_back(shared_);  // the largest is the last to be packed
    std::promise<void> begun;
    bool is_first = true;
    EncodeOptions how = first_how;
    how.progress = [&](std::int64_t, std::int64_t) {
      if (!std::exchange(is_first, false)) return;
      begun.set_value();
      while (engine_.stats().encoder_cache.waiting == 0) std::this_thread::yield();
      meanwhile();
    };
    auto first = std::async(std::launch::async, [&] { return outcome_of(engine_, items, how); });
    begun.get_future().wait();
    second_ = outcome_of(engine_, {&shared_, 1}, second_how);
    first_ = first.get();
  }
  [[nodiscard]] RowBytes expected() {
    return engine_.encode({&shared_, 1}, {.use_cache = false}).front().data;
  }

  Engine engine_ = load_cached(std::int64_t{64} << 20);
  MediaItem shared_ = noise(200, 200, 1);
  std::vector<MediaItem> others_;  // of the first call
  Outcome first_;
  Outcome second_;
};

TEST_F(JoinedCalls, EncodeAnItemOnce) {
  run({}, {});
  ASSERT_TRUE(first_.item && second_.item);
  EXPECT_EQ(first_.item->data, expected());
  EXPECT_EQ(second_.item->data, expected());
  EXPECT_EQ(engine_.stats().encoder_cache.joins, 1);
  EXPECT_EQ(engine_.stats().encoder_cache.misses, 71);
}

TEST_F(JoinedCalls, FailTogetherAndRememberNothing) {
  shared_ = half_an_image();
  run({.on_error = OnError::kSkip}, {});
  ASSERT_TRUE(first_.item && first_.item->error && second_.error);
  EXPECT_STREQ(second_.error->what(), first_.item->error->what());
  EXPECT_EQ(second_.error->code(), first_.item->error->code());
  EXPECT_EQ(engine_.stats().encoder_cache.misses, 71);
  EXPECT_TRUE(outcome_of(engine_, {&shared_, 1}, {}).error);
  EXPECT_EQ(engine_.stats().encoder_cache.misses, 72);
}

TEST_F(JoinedCalls, TheOneThatWaitsGoesOnWhereTheOtherWasStopped) {
  std::stop_source stop;
  run({.bounds = {.stop = stop.get_token()}}, {}, [&] { stop.request_stop(); });
  ASSERT_TRUE(first_.error);
  EXPECT_EQ(first_.error->code(), ErrorCode::kCancelled);
  ASSERT_TRUE(second_.item);
  EXPECT_EQ(second_.item->data, expected());
}

TEST_F(JoinedCalls, TheOneThatEncodesDoesNotCareIfTheOtherIsStopped) {
  std::stop_source stop;
  run({}, {.bounds = {.stop = stop.get_token()}}, [&] {
    stop.request_stop();
    while (engine_.stats().encoder_cache.waiting > 0) std::this_thread::yield();
  });
  ASSERT_TRUE(second_.error);
  EXPECT_EQ(second_.error->code(), ErrorCode::kCancelled);
  ASSERT_TRUE(first_.item);
  EXPECT_EQ(first_.item->data, expected());
}

TEST_F(JoinedCalls, AnotherItemsErrorLeavesTheSharedOneToTheOther) {
  others_.push_back(half_an_image());
  run({}, {});
  ASSERT_TRUE(first_.error);
  EXPECT_EQ(first_.error->code(), ErrorCode::kCorruptData);
  ASSERT_TRUE(second_.item);
  EXPECT_EQ(second_.item->data, expected());
}

}  // namespace
}  // namespace fovea
