// Grid attention at the sizes of DeepSeek-OCR's SAM, beside plain attention over as many keys, on
// the CPU or a GPU. Useful work only: 4 * heads * queries * keys * head_dim floating-point
// operations; keys that overhang an image count, queries that do not exist do not.
//
//   fovea_bench_grid [threads]     CPU, also as a fraction of the multiply-add peak
//   fovea_bench_grid cuda
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "core/thread_pool.h"
#include "device/cpu/cpu_device.h"
#include "device/cuda_plugin.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/kernels.h"

namespace fovea {
namespace {

constexpr std::int64_t kHeads = 12;
constexpr std::int64_t kHeadDim = 64;
constexpr std::int64_t kWidth = kHeads * kHeadDim;

using Clock = std::chrono::steady_clock;

struct Case {
  const char* name;
  std::int64_t images;
  std::int64_t side;
  std::int64_t window;  // 0: global
  [[nodiscard]] std::int64_t rows() const { return images * side * side; }
  [[nodiscard]] std::int64_t keys() const { return window > 0 ? window * window : side * side; }
  [[nodiscard]] double flops() const { return 4.0 * static_cast<double>(rows() * keys() * kWidth); }
};

constexpr Case kCases[] = {{"window, 1 view", 1, 64, 14},  {"window, 4 views", 4, 64, 14},
                           {"window, 6 tiles", 6, 40, 14}, {"global, 1 view", 1, 64, 0},
                           {"global, 4 views", 4, 64, 0},  {"global, 6 tiles", 6, 40, 0}};

class Bench {
 public:
  explicit Bench(std::unique_ptr<Device> device)
      : device_(std::move(device)),
        stream_(device_->create_stream()),
        memory_(device_->allocate(std::size_t{256} << 20)) {}

  [[nodiscard]] Tensor random(DType dtype, const Shape& shape, float factor) {
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    std::normal_distribution<float> normal;
    for (float& value : values) value = factor * normal(generator_);
    std::vector<std::byte> narrow(values.size() * size_of(dtype));
    narrow_from_f32(values.data(), dtype, narrow.data(), values.size());
    return upload(*device_, *stream_, {narrow.data(), dtype, shape});
  }
  [[nodiscard]] Tensor activations(const Shape& shape) {
    return random(device_->properties().activation_dtype, shape, 1.0f);
  }
  [[nodiscard]] Tensor offsets(std::int64_t count, std::int64_t length) {
    std::vector<std::int32_t> values;
    for (std::int64_t s = 0; s <= count; ++s)
      values.push_back(static_cast<std::int32_t>(s * length));
    return upload(*device_, *stream_,
                  {reinterpret_cast<const std::byte*>(values.data()), DType::kI32, {count + 1}});
  }

  /// Milliseconds of the fastest of several runs of `work`, which are recorded together.
  template <class Work>
  double best_ms(const Work& work) {
    constexpr int kRuns = 4;
    constexpr int kRepetitions = 7;
    Arena arena(memory_.data(), memory_.bytes());
    ExecContext ctx{*stream_, device_->kernels(), arena, *stream_};
    const auto graph = stream_->capture([&] {
      for (int i = 0; i < kRuns; ++i) work(ctx);
    });
    double best = 0;
    for (int i = 0; i <= kRepetitions; ++i) {
      const auto begin = Clock::now();
      stream_->replay(*graph);
      stream_->synchronize();
      const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
      best = i <= 1 ? took.count() : std::min(best, took.count());  // the first one warms up
    }
    return best / kRuns;
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  Buffer memory_;
  std::mt19937_64 generator_{1};
};

double grid_ms(Bench& bench, const Case& c) {
  const std::int64_t side = c.window > 0 ? c.window : c.side;
  const Tensor qkv = bench.activations({c.rows(), 3 * kWidth});
  const Tensor out = bench.activations({c.rows(), kWidth});
  const Tensor pad = bench.random(DType::kF32, {3 * kWidth}, 1.0f);
  const Tensor rel_h = bench.random(DType::kF32, {2 * side - 1, kHeadDim}, 0.1f);
  const Tensor rel_w = bench.random(DType::kF32, {2 * side - 1, kHeadDim}, 0.1f);
  return bench.best_ms([&](ExecContext& ctx) {
    ops::grid_attention(ctx, {.qkv = qkv.view(),
                              .pad_qkv = pad.view(),
                              .rel_pos_h = rel_h.view(),
                              .rel_pos_w = rel_w.view(),
                              .height = c.side,
                              .width = c.side,
                              .window = c.window,
                              .num_heads = kHeads,
                              .head_dim = kHeadDim,
                              .scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim)),
                              .out = out.view()});
  });
}

/// Plain attention over sequences of as many keys and about as many queries.
double plain_ms(Bench& bench, const Case& c) {
  const std::int64_t count = std::max<std::int64_t>(1, c.rows() / c.keys());
  const std::int64_t rows = count * c.keys();
  const Tensor qkv = bench.activations({rows, 3 * kWidth});
  const Tensor out = bench.activations({rows, kWidth});
  const Tensor cu_seqlens = bench.offsets(count, c.keys());
  return bench.best_ms([&](ExecContext& ctx) {
    ops::attention(ctx, {.qkv = qkv.view(),
                         .sequences = {.cu_seqlens = cu_seqlens.view(), .max_seqlen = c.keys()},
                         .num_heads = kHeads,
                         .head_dim = kHeadDim,
                         .scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim)),
                         .out = out.view()});
  }) * static_cast<double>(c.rows()) /
         static_cast<double>(rows);
}

/// @param peak GFLOP/s to compare with, measured anew before every case; null: none.
void print_cases(Bench& bench, double (*peak)(int threads), int threads) {
  std::printf("%-16s %10s %10s %9s %10s %10s %9s\n", "", "ms", "GFLOP/s", "of peak", "plain ms",
              "GFLOP/s", "of peak");
  double best_peak = 0;
  for (const Case& c : kCases) {
    if (peak != nullptr) best_peak = std::max(best_peak, peak(threads));
    std::printf("%-16s", c.name);
    for (const double ms : {grid_ms(bench, c), plain_ms(bench, c)}) {
      const double gflops = c.flops() / ms * 1e-6;
      std::printf(" %10.3f %10.0f %9.3f", ms, gflops, best_peak > 0 ? gflops / best_peak : 0.0);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "cuda") {
    const CudaBackend backend = find_cuda();
    const std::vector<int> gpus = usable_gpus(backend);
    if (gpus.empty()) {
      std::fprintf(stderr, "no GPU: %s\n", describe_gpus(backend).c_str());
      return 1;
    }
    std::printf("%s\n", backend.gpus[static_cast<std::size_t>(gpus.front())].description.c_str());
    Bench bench(make_cuda_device(backend, {.index = gpus.front()}));
    print_cases(bench, nullptr, 0);
    return 0;
  }
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : available_cpus();
  const auto kernels = make_cpu_kernels(detect_cpu_isa(), threads);
  Bench bench(make_cpu_device(threads, *kernels));
  print_cases(
      bench, [](int count) { return cpu::fma_peak_gflops(count, 0.1); }, threads);
  return 0;
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) { return fovea::run(argc, argv); }
