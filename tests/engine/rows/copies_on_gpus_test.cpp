// Replicas on two GPUs of one process: rows on both of them on request. Skipped with less.
#include <gtest/gtest.h>

#include "core/check.h"
#include "device/cuda_plugin.h"
#include "engine/backend.h"
#include "engine/cached/noise.h"
#include "engine/rows/gpu_room.h"
#include "fovea/fovea.h"
#include "support/golden.h"

namespace fovea {
namespace {

using test::GpuRoom;

constexpr int kGpus = 2;

TEST(CopiesOnGpus, GiveEveryGpuTheRowsOfAllReplicas) {
  if (usable_gpus(find_cuda()).size() < kGpus) GTEST_SKIP() << "needs two GPUs";
  Engine engine = Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"),
                               {.device = "cuda:0,cuda:1"});
  engine.warm_up();
  std::vector<Backend> backends;
  std::vector<std::unique_ptr<Stream>> streams;  // the default streams of both
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    backends.push_back(make_backend(cat("cuda:", gpu)));
    streams.push_back(backends.back().device->adopt_stream(gpu, nullptr));
  }
  std::vector<MediaItem> items;
  for (int i = 0; i < 9; ++i) items.push_back(test::noise(64 + 32 * i, 96, i));
  constexpr int kRounds = 5;
  for (int round = 0; round < kRounds; ++round) {
    const RowDType dtype = round % 2 == 0 ? RowDType::kBFloat16 : RowDType::kFloat32;
    const std::vector<Embedding> expected = engine.encode(items, {.dtype = dtype});
    std::vector<GpuRoom> rooms[kGpus];
    std::vector<RowBlock> blocks[kGpus];
    for (std::size_t gpu = 0; gpu < kGpus; ++gpu) {
      for (const Embedding& item : expected) {
        rooms[gpu].emplace_back(*backends[gpu].device, static_cast<int>(gpu), item.rows, item.width,
                                dtype, 8);
        blocks[gpu].push_back(rooms[gpu].back().block());
      }
    }
    const Destinations copy{blocks[1], {.device = 1}};
    (void)engine.encode(items, blocks[0], {.device = 0}, {.copies = {&copy, 1}});
    for (const std::size_t gpu : {1, 0}) {
      for (std::size_t i = 0; i < items.size(); ++i) {
        rooms[gpu][i].expect_rows(expected[i], *streams[gpu]);
      }
    }
  }
}

}  // namespace
}  // namespace fovea
