// Calls of several threads on one engine, and memory that calls leave behind.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "fovea/fovea.h"
#include "support/golden.h"

namespace fovea {
namespace {

std::vector<MediaItem> noisy_items(std::size_t count, std::int64_t longest_side, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int64_t> side(32, longest_side);
  std::vector<MediaItem> items;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t width = side(random);
    const std::int64_t height = side(random);
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width * height * 3));
    for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(random());
    items.push_back(image_rgb(std::move(rgb), width, height, "noise"));
  }
  return items;
}

class ConcurrentCalls : public ::testing::TestWithParam<int> {
 protected:
  Engine engine_ = Engine::load(
      test::golden_folder("qwen3_vl", "golden.safetensors"),
      {.device = "cpu", .data_parallel_size = GetParam(), .num_threads = 2 * GetParam()});
};

TEST_P(ConcurrentCalls, GiveTheRowsOfCallsThatRunAlone) {
  std::vector<std::vector<MediaItem>> calls;
  for (unsigned seed = 0; seed < 4; ++seed) calls.push_back(noisy_items(1 + 3 * seed, 200, seed));
  calls.push_back(noisy_items(150, 48, 9));  // several windows
  std::vector<std::vector<Embedding>> expected;
  for (const auto& items : calls) expected.push_back(engine_.encode(items));
  const Stats before = engine_.stats();
  std::vector<std::jthread> threads;
  constexpr int kRounds = 4;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        const std::vector<Embedding> rows =
            engine_.encode(calls[i], {.enforce_eager = round % 2 == 1});
        for (std::size_t j = 0; j < rows.size(); ++j) {
          EXPECT_EQ(rows[j].data, expected[i][j].data) << "call " << i << ", item " << j;
        }
        if (round == 2) (void)engine_.trim();
      }
    });
  }
  threads.clear();
  const Stats after = engine_.stats();
  std::int64_t items = 0;
  for (const auto& call : calls) items += std::ssize(call);
  EXPECT_EQ(after.graph_hits - before.graph_hits, kRounds / 2 * items);
  EXPECT_EQ(after.miss_reasons.at("requested"), kRounds / 2 * items);
}

TEST_P(ConcurrentCalls, TrimGivesBackWhatALargeItemLeft) {
  const std::vector<MediaItem> small = noisy_items(1, 40, 1);
  const std::vector<Embedding> before = engine_.encode(small);
  (void)engine_.trim();
  EXPECT_EQ(engine_.trim(), 0u);
  const std::vector<MediaItem> large{image_rgb(std::vector<std::uint8_t>(1000 * 1000 * 3, 90), 1000,
                                               1000, "beyond the largest budget")};
  (void)engine_.encode(large, {.enforce_eager = true});
  EXPECT_GT(engine_.trim(), std::size_t{10} << 20);
  EXPECT_EQ(engine_.trim(), 0u);
  EXPECT_EQ(engine_.encode(small).front().data, before.front().data);
}

INSTANTIATE_TEST_SUITE_P(Replicas, ConcurrentCalls, ::testing::Values(1, 2));

}  // namespace
}  // namespace fovea
