// What rows that stay on the GPU save when images come again: calls of encode() that find their
// rows in memory of the GPU, in host memory, or nowhere.
//
//   fovea_bench_device_cache [MODEL [CALLS]]
//
// MODEL (bench/configs/qwen3_vl_30b_a3b) is loaded with random weights. CALLS (20) calls with 20
// images of 440 patches each, with rows of bfloat16 to the GPU and to the host. Says so and ends
// where there is no GPU.
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

constexpr int kImages = 20;
constexpr std::int64_t kWidthPx = 320;  // 20 x 22 patches of 16 pixels
constexpr std::int64_t kHeightPx = 352;

std::vector<MediaItem> noise(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<MediaItem> items;
  for (int i = 0; i < kImages; ++i) {
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(kWidthPx * kHeightPx * 3));
    for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(random());
    items.push_back(image_rgb(std::move(rgb), kWidthPx, kHeightPx, "noise"));
  }
  return items;
}

/// The median of single calls, after three that warm up. @param call gets the number of the call.
double median_ms(int calls, const std::function<void(int)>& call) {
  std::vector<double> times;
  for (int i = -3; i < calls; ++i) {
    const Clock::time_point begin = Clock::now();
    call(i + 3);
    const std::chrono::duration<double, std::milli> elapsed = Clock::now() - begin;
    if (i >= 0) times.push_back(elapsed.count());
  }
  std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
  return times[times.size() / 2];
}

/// Milliseconds of calls with `batches` in turn: rows to the GPU, and to the host.
void measure(const char* name, Engine& engine, const std::vector<std::vector<MediaItem>>& batches,
             int calls, bool use_cache = true) {
  const EncodeOptions how{.dtype = RowDType::kBFloat16, .use_cache = use_cache};
  const Backend backend = make_backend("cuda:0");
  const auto stream = backend.device->adopt_stream(0, nullptr);
  const Embedding first = engine.encode(batches.front(), how).front();
  const Buffer memory = backend.device->allocate(first.data.size() * kImages);
  std::vector<RowBlock> blocks;
  for (std::size_t i = 0; i < kImages; ++i) {
    blocks.push_back({.data = memory.data() + i * first.data.size(),
                      .device = 0,
                      .dtype = how.dtype,
                      .rows = first.rows});
  }
  const auto batch = [&](int call) -> const std::vector<MediaItem>& {
    return batches[static_cast<std::size_t>(call) % batches.size()];
  };
  const double to_gpu = median_ms(calls, [&](int call) {
    (void)engine.encode(batch(call), blocks, {.device = 0}, how);
    stream->synchronize();
  });
  const double to_host = median_ms(calls, [&](int call) { (void)engine.encode(batch(call), how); });
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  std::printf("| %s | %.2f | %.2f | %lld | %lld | %lld |\n", name, to_gpu, to_host,
              static_cast<long long>(stats.device.hits), static_cast<long long>(stats.host.hits),
              static_cast<long long>(stats.misses));
}

void run(const std::string& model, int calls) {
  constexpr std::int64_t kAmple = std::int64_t{4} << 30;
  const auto load = [&](std::int64_t device_bytes, std::int64_t host_bytes) {
    Engine engine = Engine::load(model, {.device = "cuda:0",
                                         .dummy_weights = true,
                                         .encoder_cache_bytes = host_bytes,
                                         .encoder_device_cache_size = device_bytes});
    engine.warm_up();
    return engine;
  };
  const std::vector<std::vector<MediaItem>> same{noise(7)};
  const std::vector<std::vector<MediaItem>> in_turn{noise(7), noise(8), noise(9)};
  std::printf("%dx440, rows of bfloat16, ms per call\n\n", kImages);
  std::printf("| rows are | to the GPU | to the host | hits, GPU | hits, host | misses |\n");
  std::printf("|---|---|---|---|---|---|\n");
  Engine ample = load(kAmple, 0);
  measure("encoded, without the cache", ample, same, calls, false);
  measure("in memory of the GPU", ample, same, calls);
  const Embedding one = ample.encode(same.front(), {.dtype = RowDType::kBFloat16}).front();
  const auto batch_bytes = static_cast<std::int64_t>(one.data.size()) * kImages;
  Engine swapping = load(batch_bytes, kAmple);  // each batch drives out the one before
  measure("in host memory, behind the GPU's", swapping, in_turn, calls);
  Engine small = load(batch_bytes, 0);
  measure("encoded, and kept for nobody", small, in_turn, calls);
  Engine on_host = load(0, kAmple);
  measure("in host memory alone", on_host, same, calls);
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) {
  if (fovea::usable_gpus(fovea::find_cuda()).empty()) {
    std::printf("%s\n", fovea::cuda_status().c_str());
    return 0;
  }
  const std::string model = argc > 1 ? argv[1] : "bench/configs/qwen3_vl_30b_a3b";
  fovea::run(model, argc > 2 ? std::max(1, std::atoi(argv[2])) : 20);
  return 0;
}
