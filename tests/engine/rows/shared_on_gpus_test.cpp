// Items that two GPUs of one process share: their rows meet on the host and on a GPU. Skipped with
// less.
#include <gtest/gtest.h>

#include <random>

#include "device/cuda_plugin.h"
#include "engine/backend.h"
#include "engine/cached/noise.h"
#include "engine/diagnostics/compare.h"
#include "engine/rows/gpu_room.h"
#include "fovea/fovea.h"
#include "support/golden.h"

namespace fovea {
namespace {

/// GEMMs of other sizes may choose other kernels: some roundings of 2^-9.
constexpr double kMostDifference = 0.02;

using test::GpuRoom;

Engine load(const std::string& family, const std::string& device) {
  return Engine::load(test::golden_folder(family, "golden.safetensors"),
                      {.device = device, .packing = PackingPolicy::kUnits});
}

MediaItem noise_video(std::int64_t num_frames, std::int64_t side_px) {
  std::mt19937 random(7);
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(num_frames * side_px * side_px * 3));
  for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(random());
  return video_rgb(std::move(rgb), num_frames, side_px, side_px, 2, "noise");
}

TEST(SharedOnGpus, HaveTheRowsOfOneGpu) {
  if (usable_gpus(find_cuda()).size() < 2) GTEST_SKIP() << "needs two GPUs";
  const std::pair<const char*, MediaItem> cases[] = {{"qwen3_vl", noise_video(48, 256)},
                                                     {"internvl", noise_video(16, 64)},
                                                     {"llama4", test::noise(2000, 1500, 1)}};
  for (const auto& [family, item] : cases) {
    SCOPED_TRACE(family);
    Engine alone = load(family, "cuda:0");
    Engine both = load(family, "cuda:0,cuda:1");
    alone.warm_up();
    both.warm_up();
    for (const bool eager : {false, true}) {
      const EncodeOptions how{.dtype = RowDType::kFloat32, .enforce_eager = eager};
      const Embedding expected = alone.encode({&item, 1}, how)[0];
      const Embedding rows = both.encode({&item, 1}, how)[0];
      ASSERT_EQ(rows.rows, expected.rows);
      EXPECT_LT(compare({&rows, 1}, {&expected, 1}).relative, kMostDifference);
      const Backend last = make_backend("cuda:1");
      const auto stream = last.device->adopt_stream(1, nullptr);
      const GpuRoom room(*last.device, 1, rows.rows, rows.width, RowDType::kFloat32, 8);
      (void)both.encode({&item, 1}, {&room.block(), 1}, {.device = 1}, how);
      room.expect_rows(rows, *stream);
    }
    for (const ReplicaStats& replica : both.replica_stats()) {
      EXPECT_GT(replica.stats.sub_batches, 0) << replica.device;
    }
  }
}

}  // namespace
}  // namespace fovea
