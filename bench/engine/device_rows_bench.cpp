// What rows that stay on the GPU save: calls of encode() to the host and to memory of the GPU.
//
//   fovea_bench_device_rows [MODEL [CALLS [DEVICES]]]
//
// MODEL (bench/configs/qwen3_vl_30b_a3b) is loaded with random weights. CALLS (20) calls with 20,
// 32 and 64 images of 440 patches each: rows to the host; to the first GPU, waiting for each call;
// to it, waiting once. Rows of bfloat16 and of float32. DEVICES (cuda:0), which begin with cuda:0,
// have a replica each. Says so and ends where there is no GPU.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "device/cuda_plugin.h"
#include "engine/backend.h"
#include "fovea/engine.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kWidthPx = 320;  // 20 x 22 patches of 16 pixels
constexpr std::int64_t kHeightPx = 352;

std::vector<MediaItem> noise(int count) {
  std::mt19937 random(7);
  std::vector<MediaItem> items;
  for (int i = 0; i < count; ++i) {
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(kWidthPx * kHeightPx * 3));
    for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(random());
    items.push_back(image_rgb(std::move(rgb), kWidthPx, kHeightPx, "noise"));
  }
  return items;
}

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// The median of single calls, after three that warm up.
double median_ms(int calls, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = -3; i < calls; ++i) {
    const Clock::time_point begin = Clock::now();
    call();
    if (i >= 0) times.push_back(ms_since(begin));
  }
  std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
  return times[times.size() / 2];
}

struct Target {
  Device& device;
  Stream& stream;  // the default stream of the GPU, which the calls are ordered with
};

void compare(Engine& engine, const Target& target, int count, RowDType dtype, int calls) {
  const std::vector<MediaItem> items = noise(count);
  const std::vector<Embedding> known = engine.encode(items, {.dtype = dtype});
  const std::size_t bytes = known.front().data.size();
  const Buffer memory = target.device.allocate(bytes * items.size());
  std::vector<RowBlock> blocks;
  for (std::size_t i = 0; i < items.size(); ++i) {
    blocks.push_back(
        {.data = memory.data() + i * bytes, .device = 0, .dtype = dtype, .rows = known[i].rows});
  }
  const CallerStream stream{.device = 0};
  const double to_host = median_ms(calls, [&] { (void)engine.encode(items, {.dtype = dtype}); });
  const double to_gpu = median_ms(calls, [&] {
    (void)engine.encode(items, blocks, stream);
    target.stream.synchronize();
  });
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < calls; ++i) (void)engine.encode(items, blocks, stream);
  target.stream.synchronize();
  const double in_flight = ms_since(begin) / calls;
  std::printf("| %dx440 | %s | %.1f | %.2f | %.2f | %.2f |\n", count,
              dtype == RowDType::kBFloat16 ? "bfloat16" : "float32",
              static_cast<double>(bytes * items.size()) / (1 << 20), to_host, to_gpu, in_flight);
}

void run(const std::string& model, int calls, const std::string& devices) {
  Engine engine = Engine::load(model, {.device = devices, .dummy_weights = true});
  engine.warm_up();
  const Backend backend = make_backend("cuda:0");
  const auto stream = backend.device->adopt_stream(0, nullptr);
  std::printf("%s, ms per call\n\n", engine.device().c_str());
  std::printf("| patches | rows | MiB | to the host | to the GPU | to the GPU, in flight |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const int count : {20, 32, 64}) {
    for (const RowDType dtype : {RowDType::kBFloat16, RowDType::kFloat32}) {
      compare(engine, {*backend.device, *stream}, count, dtype, calls);
    }
  }
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) {
  if (fovea::usable_gpus(fovea::find_cuda()).empty()) {
    std::printf("%s\n", fovea::cuda_status().c_str());
    return 0;
  }
  const std::string model = argc > 1 ? argv[1] : "bench/configs/qwen3_vl_30b_a3b";
  fovea::run(model, argc > 2 ? std::max(1, std::atoi(argv[2])) : 20, argc > 3 ? argv[3] : "cuda:0");
  return 0;
}
