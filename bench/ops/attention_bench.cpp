// Attention on the CPU as a fraction of the multiply-add peak, the best measured so far: it is
// measured before every case, because other programs disturb both. Useful work only: 4 * heads *
// queries * keys * head_dim floating-point operations per sequence.
//
//   fovea_bench_attention --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
//
// "of_peak" is the number to read: absolute rates belong to one machine. Products of integers of 16
// bits can exceed 1, because the peak is that of float32.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "core/thread_pool.h"
#include "device/cpu/cpu_device.h"
#include "fovea/tower/ops/context.h"
#include "fovea/tower/ops/cross_attention.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea {
namespace {

constexpr std::int64_t kHeads = 16;

/// Operations per second of the best measurement so far.
double peak_flops(int threads) {
  static std::map<int, double> best;
  constexpr double kSeconds = 0.1;
  best[threads] = std::max(best[threads], 1e9 * cpu::fma_peak_gflops(threads, kSeconds));
  return best[threads];
}

Tensor random_rows(Device& device, std::int64_t rows, std::int64_t cols) {
  Tensor tensor = make_tensor(device, DType::kF32, {rows, cols});
  std::mt19937_64 generator(1);
  std::normal_distribution<float> normal;
  auto* const values = tensor.view().as<float>();
  for (std::int64_t i = 0; i < tensor.shape.elements(); ++i) values[i] = normal(generator);
  return tensor;
}

/// Arguments: threads, number of sequences, their length, head_dim.
void attention(benchmark::State& state, DType projection_dtype) {
  const auto threads = static_cast<int>(state.range(0));
  const std::int64_t num_seqs = state.range(1);
  const std::int64_t length = state.range(2);
  const std::int64_t head_dim = state.range(3);
  if (threads > available_cpus()) {
    state.SkipWithError("more threads than processors");
    return;
  }
  const auto kernels = make_cpu_kernels(detect_cpu_isa(), threads);
  const auto device = make_cpu_device(threads, *kernels);
  const auto stream = device->create_stream();
  const std::int64_t rows = num_seqs * length;
  const Tensor qkv = random_rows(*device, rows, 3 * kHeads * head_dim);
  const Tensor out = make_tensor(*device, DType::kF32, {rows, kHeads * head_dim});
  const Tensor cu_seqlens = make_tensor(*device, DType::kI32, {num_seqs + 1});
  for (std::int64_t s = 0; s <= num_seqs; ++s)
    cu_seqlens.view().as<std::int32_t>()[s] = static_cast<std::int32_t>(s * length);
  const ops::AttentionArgs args{
      .qkv = qkv.view(),
      .sequences = {.cu_seqlens = cu_seqlens.view(), .max_seqlen = length},
      .num_heads = kHeads,
      .head_dim = head_dim,
      .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
      .out = out.view(),
      .projection_dtype = projection_dtype};
  const Buffer memory = device->allocate(kernels->attention_workspace(args) + Arena::kAlignment);
  Arena arena(memory.data(), memory.bytes());
  ExecContext ctx{*stream, *kernels, arena, *stream};

  const double peak = peak_flops(threads);
  for (auto _ : state) ops::attention(ctx, args);
  const double flops = 4.0 * static_cast<double>(kHeads * num_seqs * length * length * head_dim) *
                       static_cast<double>(state.iterations());
  state.counters["flops"] = benchmark::Counter(flops, benchmark::Counter::kIsRate);
  state.counters["of_peak"] = benchmark::Counter(flops / peak, benchmark::Counter::kIsRate);
}

/// 0, step, 2 step ... of `num_seqs` sequences.
Tensor even_offsets(Device& device, std::int64_t num_seqs, std::int64_t step) {
  Tensor offsets = make_tensor(device, DType::kI32, {num_seqs + 1});
  for (std::int64_t s = 0; s <= num_seqs; ++s) {
    offsets.view().as<std::int32_t>()[s] = static_cast<std::int32_t>(s * step);
  }
  return offsets;
}

/// Arguments: threads, number of sequences, queries and keys of each, head_dim.
void cross_attention(benchmark::State& state) {
  const auto threads = static_cast<int>(state.range(0));
  const std::int64_t num_seqs = state.range(1);
  const std::int64_t queries = state.range(2);
  const std::int64_t keys = state.range(3);
  const std::int64_t head_dim = state.range(4);
  if (threads > available_cpus()) {
    state.SkipWithError("more threads than processors");
    return;
  }
  const auto kernels = make_cpu_kernels(detect_cpu_isa(), threads);
  const auto device = make_cpu_device(threads, *kernels);
  const auto stream = device->create_stream();
  const Tensor q = random_rows(*device, num_seqs * queries, kHeads * head_dim);
  const Tensor kv = random_rows(*device, num_seqs * keys, 2 * kHeads * head_dim);
  const Tensor out = make_tensor(*device, DType::kF32, q.shape);
  const Tensor cu_queries = even_offsets(*device, num_seqs, queries);
  const Tensor cu_keys = even_offsets(*device, num_seqs, keys);
  Arena arena(nullptr, 0);
  ExecContext ctx{*stream, *kernels, arena, *stream};

  const double peak = peak_flops(threads);
  for (auto _ : state) {
    ops::cross_attention(ctx, {.q = q.view(),
                               .kv = kv.view(),
                               .cu_queries = cu_queries.view(),
                               .cu_keys = cu_keys.view(),
                               .num_heads = kHeads,
                               .head_dim = head_dim,
                               .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                               .out = out.view()});
    stream->synchronize();
  }
  const double flops = 4.0 * static_cast<double>(kHeads * num_seqs * queries * keys * head_dim) *
                       static_cast<double>(state.iterations());
  state.counters["flops"] = benchmark::Counter(flops, benchmark::Counter::kIsRate);
  state.counters["of_peak"] = benchmark::Counter(flops / peak, benchmark::Counter::kIsRate);
}

BENCHMARK(cross_attention)
    ->ArgNames({"threads", "sequences", "queries", "keys", "head_dim"})
    ->Args({1, 1162, 1, 4, 72})    // windows of an image of Molmo2
    ->Args({1, 1, 1, 729, 72})     // a pooling head
    ->Args({1, 1, 64, 1024, 128})  // a resampler
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void cases(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"threads", "sequences", "length", "head_dim"});
  for (const int threads : {1, 4}) {
    for (const std::int64_t head_dim : {64, 72, 80, 128}) {
      for (const std::int64_t length : {64, 256, 1024, 4096})
        bench->Args({threads, 1, length, head_dim});
    }
    bench->Args({threads, 20, 440, 72});
  }
}

BENCHMARK_CAPTURE(attention, native, DType::kF32)
    ->Apply(cases)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(attention, int16, DType::kI8)
    ->Apply(cases)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fovea

BENCHMARK_MAIN();
