// Traces on an encoder cache, compact and scattered.
#include "bench/cache/replay.h"

#include <gtest/gtest.h>

namespace fovea::cli {
namespace {

/// Requests that come at the same time, each with the same video.
Trace same_video(std::int64_t count, const TraceItem& video) {
  Trace trace;
  for (std::int64_t i = 0; i < count; ++i) trace.push_back({0, {video}, 10});
  return trace;
}

std::int64_t slots(const TraceItem& video, Storage storage, double seconds) {
  return replay(same_video(1, video),
                {.storage = storage, .cache_size = 1, .chunk_size = 1000, .seconds = seconds})
      .peak_used;
}

TEST(Replay, TakesTheSlotsOfTheTableInTheDocuments) {
  struct Case {
    TraceItem video;
    double seconds;
    std::int64_t scattered;
    std::int64_t compact;
  };
  for (const Case& c :
       {Case{{"a", 8, 322}, 1, 2'640, 2'576}, Case{{"a", 768, 100}, 2, 84'693, 76'800},
        Case{{"a", 384, 64}, 1, 28'306, 24'576}, Case{{"a", 384, 4}, 1, 5'266, 1'536},
        Case{{"a", 384, 1}, 1, 4'114, 384}}) {
    EXPECT_EQ(slots(c.video, Storage::kScattered, c.seconds), c.scattered);
    EXPECT_EQ(slots(c.video, Storage::kCompact, c.seconds), c.compact);
  }
}

TEST(Replay, EncodesAVideoOfSeveralRequestsOnce) {
  const ReplayResult result = replay(same_video(5, {"a", 4, 10}), {.cache_size = 1000});
  EXPECT_EQ(result.items, 5);
  EXPECT_EQ(result.encoded, 1);
  EXPECT_EQ(result.hits, 4);
  EXPECT_DOUBLE_EQ(result.hit_rate(), 0.8);
  EXPECT_EQ(result.evictions, 0);
}

TEST(Replay, KeepsMoreVideosInTheSameMemoryIfTheyAreCompact) {
  Trace trace;
  for (std::int64_t i = 0; i < 40; ++i) {
    trace.push_back({10 * i, {{std::to_string(i % 4), 384, 4}}, 0});
  }
  const auto run = [&](Storage storage) {
    return replay(trace, {.storage = storage, .cache_size = 4 * 1'536});
  };
  EXPECT_EQ(run(Storage::kCompact).encoded, 4);
  EXPECT_EQ(run(Storage::kCompact).evictions, 0);
  EXPECT_EQ(run(Storage::kScattered).encoded, 40);
  EXPECT_EQ(run(Storage::kScattered).evictions, 39);
}

TEST(Replay, RunsEveryPromptToItsEnd) {
  const TraceOptions options{.num_requests = 100,
                             .shapes = parse_shapes("300,8x30,64x2", "--shapes"),
                             .arrivals = 4,
                             .seed = 3};
  const Trace trace = random_trace(options);
  for (const Storage storage : {Storage::kCompact, Storage::kScattered}) {
    for (const std::int64_t size : {1, 700, 5000}) {
      for (const std::int64_t chunk : {7, 256, 100'000}) {
        const ReplayResult result =
            replay(trace, {.storage = storage, .cache_size = size, .chunk_size = chunk});
        EXPECT_LE(result.peak_held, result.peak_used);
        EXPECT_LE(result.peak_used, result.capacity);
        EXPECT_GE(result.capacity, size);
        EXPECT_EQ(result.hits + result.encoded >= result.items, true);
      }
    }
  }
}

}  // namespace
}  // namespace fovea::cli
