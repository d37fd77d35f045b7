// Which rows of a call another process may read where they lie, and what a CPU says to that.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/cached/noise.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using test::noise;

TEST(LendRows, NamesRowsThatAreThoseOfTheTower) {
  Engine engine = test::load_cached(std::int64_t{1} << 20);
  const MediaItem item = noise(64, 96, 1);
  const auto cache_key = [&](const EncodeOptions& how) {
    return engine.encode({&item, 1}, how).front().cache_key;
  };
  const std::string first = cache_key({});
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(cache_key({}), first) << "whether the item is encoded or found";
  EXPECT_EQ(cache_key({.dtype = RowDType::kBFloat16}), "") << "the cache of a CPU has float32";
  EXPECT_EQ(cache_key({.use_cache = false}), "");
  const MediaItem other = noise(64, 96, 2);
  EXPECT_NE(engine.encode({&other, 1}).front().cache_key, first);
}

TEST(LendRows, APrunedVideoIsNotWhatTheCacheHas) {
  Engine engine = Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"),
                               {.device = "cpu",
                                .num_threads = 2,
                                .video_pruning_rate = 0.5,
                                .encoder_cache_bytes = std::int64_t{1} << 20});
  constexpr std::int64_t kSide = 64;
  std::vector<std::uint8_t> pixels(4 * 3 * kSide * kSide);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  const std::vector<MediaItem> items{video_rgb(std::move(pixels), 4, kSide, kSide, 2.0, "video"),
                                     noise(64, 96, 1)};
  const std::vector<Embedding> rows = engine.encode(items);
  EXPECT_EQ(rows[0].cache_key, "");
  EXPECT_NE(rows[0].key, "");
  EXPECT_NE(rows[1].cache_key, "") << "images are not pruned";
}

TEST(LendRows, ACpuRefusesByName) {
  Engine engine = test::load_cached(std::int64_t{1} << 20);
  test::expect_error(ErrorCode::kUnsupported, "from memory of a GPU, and this engine is on cpu",
                     [&] { (void)engine.lend_rows({}); });
  test::expect_error(ErrorCode::kUnsupported, "from memory of a GPU, and this engine is on cpu",
                     [&] { (void)engine.try_lend_rows({}); });
}

TEST(LendRows, WithoutAGpuNothingIsMapped) {
  const DeviceMemoryName name{.gpu = "GPU-none", .handle = {1}, .bytes = 1};
  test::expect_error(ErrorCode::kUnsupported, "memory of GPU-none cannot be mapped",
                     [&] { (void)MappedMemory(name); });
}

}  // namespace
}  // namespace fovea
