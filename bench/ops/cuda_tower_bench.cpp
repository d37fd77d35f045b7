// The ops on a GPU at the sizes of the Qwen3-VL-30B tower: each alone, and the whole tower as one
// recorded graph. Weights are random, one set per layer, so that they come from memory as in a
// model. Rates count useful work only. Compare with an eager or captured PyTorch tower of the same
// shapes.
//
//   fovea_bench_cuda_tower [--ops [NAME...]] [--attention] [--no-towers] [--sustained]
//                          [--portable | --hopper | --cudnn] [--fp8]
//
// --fp8: blocks with quantized layers, and attention as it is behind them.
// --sustained: besides a burst at full clock, a loop of a second each, with clock and power.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "fovea/tower/ops/attention.h"
#include "fovea/tower/ops/norm.h"
#include "fovea/tower/ops/projected_attention.h"
#include "ops/cuda_bench.h"

namespace fovea::bench {
namespace {

constexpr std::int64_t kLayers = 27;
constexpr std::int64_t kHidden = 1152;
constexpr std::int64_t kHeads = 16;
constexpr std::int64_t kHeadDim = kHidden / kHeads;
constexpr std::int64_t kWide = 4304;
constexpr std::int64_t kPatchDim = 1536;
constexpr std::int64_t kJoined = 4 * kHidden;
constexpr std::int64_t kOut = 2048;
constexpr std::int64_t kTaps[] = {8, 16, 24};
constexpr std::int64_t kMaxPatches = 16384;
constexpr float kEpsilon = 1e-6f;
constexpr double kSustainedSeconds = 1.0;

/// A sequence of lengths, for example 8 x 256.
struct Batch {
  std::int64_t count;
  std::int64_t length;
  [[nodiscard]] std::int64_t rows() const { return count * length; }
};

Tensor offsets(Bench& bench, const Batch& batch) {
  std::vector<std::int32_t> values;
  for (std::int64_t s = 0; s <= batch.count; ++s)
    values.push_back(static_cast<std::int32_t>(s * batch.length));
  return bench.ints(values);
}

struct Layer {
  ops::PackedLinear qkv, proj, fc1, fc2;
};
struct Merger {
  ops::PackedLinear fc1, fc2;
};

struct Tower {
  Tower(Bench& bench, ops::WeightFormat format) : patch_embed(bench.linear(kPatchDim, kHidden)) {
    for (std::int64_t l = 0; l < kLayers; ++l) {
      const auto linear = [&](std::int64_t in, std::int64_t out) {
        return bench.linear(in, out, format);
      };
      layers.push_back({linear(kHidden, 3 * kHidden), linear(kHidden, kHidden),
                        linear(kHidden, kWide), linear(kWide, kHidden)});
    }
    for (int m = 0; m < 4; ++m)
      mergers.push_back({bench.linear(kJoined, kJoined), bench.linear(kJoined, kOut)});
    ones = bench.floats(kJoined, 1.0f);
    zeros = bench.floats(kJoined, 0.0f);
    cos = bench.floats(kMaxPatches * kHeadDim / 2, 0.6f);
    sin = bench.floats(kMaxPatches * kHeadDim / 2, 0.8f);
    patches = bench.random(kMaxPatches, kPatchDim);
  }
  ops::PackedLinear patch_embed;
  std::vector<Layer> layers;
  std::vector<Merger> mergers;
  Tensor ones, zeros, cos, sin, patches;
};

/// The ops of one layer on fixed buffers.
struct Operands {
  ConstTensorView cu;
  std::int64_t max_seqlen;
  TensorView x, normed, qkv, mixed, wide;
};

TensorView first_rows(const Tensor& tensor, std::int64_t rows, std::int64_t cols) {
  return {tensor.buffer.data(), tensor.dtype, {rows, cols}};
}

void norm(ExecContext& ctx, const Tower& t, ConstTensorView x, TensorView out) {
  const Shape parameters{x.shape[1]};
  ops::layer_norm(ctx, {.x = x,
                        .weight = {t.ones.buffer.data(), DType::kF32, parameters},
                        .bias = {t.zeros.buffer.data(), DType::kF32, parameters},
                        .epsilon = kEpsilon,
                        .out = out});
}
void attention(ExecContext& ctx, const Layer& layer, const Operands& o) {
  ops::attention(ctx, {.qkv = o.qkv,
                       .sequences = {.cu_seqlens = o.cu, .max_seqlen = o.max_seqlen},
                       .num_heads = kHeads,
                       .head_dim = kHeadDim,
                       .scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim)),
                       .out = o.mixed,
                       .projection_dtype = layer.qkv.dtype});
}
void rotary_attention(ExecContext& ctx, const Tower& t, const Layer& layer, const Operands& o) {
  const std::int64_t rows = o.qkv.shape[0];
  ops::projected_attention(ctx, {.x = o.normed,
                                 .projection = layer.qkv,
                                 .qkv = o.qkv,
                                 .cos = first_rows(t.cos, rows, kHeadDim / 2),
                                 .sin = first_rows(t.sin, rows, kHeadDim / 2),
                                 .sequences = {.cu_seqlens = o.cu, .max_seqlen = o.max_seqlen},
                                 .num_heads = kHeads,
                                 .head_dim = kHeadDim,
                                 .scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim)),
                                 .out = o.mixed});
}

void project(ExecContext& ctx, const Layer& layer, const Operands& o) {
  ops::linear(ctx, {.x = o.mixed, .weight = layer.proj, .residual = o.x, .out = o.x});
}
void widen(ExecContext& ctx, const Layer& layer, const Operands& o) {
  ops::linear(ctx, {.x = o.normed,
                    .weight = layer.fc1,
                    .activation = ops::Activation::kGeluTanh,
                    .out = o.wide});
}
void narrow(ExecContext& ctx, const Layer& layer, const Operands& o) {
  ops::linear(ctx, {.x = o.wide, .weight = layer.fc2, .residual = o.x, .out = o.x});
}

void block(ExecContext& ctx, const Tower& t, const Layer& layer, const Operands& o) {
  norm(ctx, t, o.x, o.normed);
  rotary_attention(ctx, t, layer, o);
  project(ctx, layer, o);
  norm(ctx, t, o.x, o.normed);
  widen(ctx, layer, o);
  narrow(ctx, layer, o);
}

void merge(ExecContext& ctx, const Merger& m, ConstTensorView joined, TensorView wide,
           TensorView out, std::int64_t column) {
  ops::linear(ctx,
              {.x = joined, .weight = m.fc1, .activation = ops::Activation::kGeluErf, .out = wide});
  ops::linear(ctx, {.x = wide, .weight = m.fc2, .out = out, .out_column = column});
}

Operands make_operands(Arena& arena, std::int64_t rows, ConstTensorView cu, std::int64_t longest) {
  const auto tensor = [&](std::int64_t cols) { return arena.tensor(DType::kBF16, {rows, cols}); };
  return {
      cu,           longest, tensor(kHidden), tensor(kHidden), tensor(3 * kHidden), tensor(kHidden),
      tensor(kWide)};
}

void tower(ExecContext& ctx, const Tower& t, const Batch& batch, ConstTensorView cu) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t rows = batch.rows();
  const Operands o = make_operands(ctx.arena, rows, cu, batch.length);
  const Shape joined_shape{rows / 4, kJoined};
  const TensorView out = ctx.arena.tensor(DType::kBF16, {rows / 4, 4 * kOut});
  const TensorView side_wide = ctx.arena.tensor(DType::kBF16, joined_shape);
  ExecContext side = ctx.on_side();
  ops::linear(ctx,
              {.x = first_rows(t.patches, rows, kPatchDim), .weight = t.patch_embed, .out = o.x});
  std::size_t tap = 0;
  for (std::int64_t l = 0; l < kLayers; ++l) {
    block(ctx, t, t.layers[static_cast<std::size_t>(l)], o);
    if (tap == std::size(kTaps) || kTaps[tap] != l) continue;
    const TensorView joined = ctx.arena.tensor(DType::kBF16, joined_shape);
    norm(ctx, t, o.x.reshaped(joined_shape), joined);
    side.stream.wait_for(ctx.stream);
    ++tap;
    merge(side, t.mergers[tap], joined, side_wide, out, static_cast<std::int64_t>(tap) * kOut);
  }
  const TensorView wide = ctx.arena.tensor(DType::kBF16, joined_shape);
  norm(ctx, t, o.x, o.normed);
  merge(ctx, t.mergers[0], o.normed.reshaped(joined_shape), wide, out, 0);
  ctx.stream.wait_for(ctx.side);
}

/// Floating-point operations of the GEMMs and attention of one forward.
double tower_flops(const Batch& batch) {
  const auto rows = static_cast<double>(batch.rows());
  const double weights =
      kPatchDim * kHidden + kLayers * (4.0 * kHidden * kHidden + 2.0 * kHidden * kWide) +
      4.0 / 4 * (static_cast<double>(kJoined) * kJoined + static_cast<double>(kJoined) * kOut);
  return 2 * rows * weights +
         4.0 * rows * static_cast<double>(batch.length) * kHidden * static_cast<double>(kLayers);
}

void print_towers(Bench& bench, const Tower& t, double seconds) {
  std::printf("%-12s %6s %9s %9s %9s %6s %6s %8s\n", "tower", "nodes", "burst", "ms", "TFLOP/s",
              "MHz", "W", "J");
  for (const Batch batch : {Batch{1, 64}, Batch{1, 256}, Batch{1, 1024}, Batch{1, 4096},
                            Batch{1, 16384}, Batch{8, 256}, Batch{20, 440}, Batch{8, 1024}}) {
    const Tensor cu = offsets(bench, batch);
    const Timing timing =
        bench.time([&](ExecContext& ctx) { tower(ctx, t, batch, cu.view()); }, seconds);
    const double ms = seconds > 0 ? timing.sustained_ms : timing.burst_ms;
    std::printf("%4lld x %-5lld %6zu %9.3f %9.3f %9.0f %6.0f %6.0f %8.3f\n",
                static_cast<long long>(batch.count), static_cast<long long>(batch.length),
                timing.nodes, timing.burst_ms, ms, tower_flops(batch) / ms * 1e-9, timing.mhz,
                timing.watts, timing.joules);
    std::fflush(stdout);
  }
}

/// Operands of a layer in memory of their own, with random values.
class OpOperands {
 public:
  OpOperands(Bench& bench, const Batch& batch) : OpOperands(bench, batch, batch.rows()) {}
  [[nodiscard]] Operands views() const {
    const std::int64_t rows = x_.shape[0];
    return {cu_.view(),
            longest_,
            x_.view(),
            normed_.view(),
            qkv_.view(),
            mixed_.view(),
            first_rows(wide_, rows, kWide)};
  }

 private:
  OpOperands(Bench& bench, const Batch& batch, std::int64_t rows)
      : longest_(batch.length),
        cu_(offsets(bench, batch)),
        x_(bench.random(rows, kHidden)),
        normed_(bench.random(rows, kHidden)),
        qkv_(bench.random(rows, 3 * kHidden)),
        mixed_(bench.random(rows, kHidden)),
        wide_(make_tensor(bench.device(), DType::kBF16, {rows, kWide})) {
    bench.fill(wide_);
  }

  std::int64_t longest_;
  Tensor cu_, x_, normed_, qkv_, mixed_, wide_;
};

struct Op {
  const char* name;
  std::function<void(ExecContext&, const Tower&, const Layer&, const Operands&)> run;
};

const std::vector<Op>& all_ops() {
  static const std::vector<Op> ops{
      {"norm", [](auto& ctx, auto& t, auto&, auto& o) { norm(ctx, t, o.x, o.normed); }},
      {"qkv", [](auto& ctx, auto&, auto& l,
                 auto& o) { ops::linear(ctx, {.x = o.normed, .weight = l.qkv, .out = o.qkv}); }},
      {"attn", [](auto& ctx, auto&, auto& l, auto& o) { attention(ctx, l, o); }},
      {"both", [](auto& ctx, auto& t, auto& l, auto& o) { rotary_attention(ctx, t, l, o); }},
      {"proj", [](auto& ctx, auto&, auto& l, auto& o) { project(ctx, l, o); }},
      {"fc1", [](auto& ctx, auto&, auto& l, auto& o) { widen(ctx, l, o); }},
      {"fc2", [](auto& ctx, auto&, auto& l, auto& o) { narrow(ctx, l, o); }}};
  return ops;
}

/// One op at a time, once per layer in a graph, so that each run finds other weights.
/// @param wanted names of ops; empty: all.
void print_ops(Bench& bench, const Tower& t, double seconds,
               const std::vector<std::string_view>& wanted) {
  std::printf("%-9s %-6s %9s %9s %6s %6s %8s   microseconds\n", "batch", "op", "burst", "sustained",
              "MHz", "W", "mJ");
  for (const Batch batch : {Batch{1, 64}, Batch{1, 256}, Batch{1, 1024}, Batch{8, 256},
                            Batch{1, 4096}, Batch{8, 1024}, Batch{20, 440}, Batch{1, 16384}}) {
    const OpOperands operands(bench, batch);
    const Operands o = operands.views();
    for (const Op& op : all_ops()) {
      if (!wanted.empty() && std::ranges::find(wanted, op.name) == wanted.end()) continue;
      const Timing timing = bench.time(
          [&](ExecContext& ctx) {
            for (const Layer& layer : t.layers) op.run(ctx, t, layer, o);
          },
          seconds);
      std::printf("%2lldx%-6lld %-6s %9.2f %9.2f %6.0f %6.0f %8.2f\n",
                  static_cast<long long>(batch.count), static_cast<long long>(batch.length),
                  op.name, timing.burst_ms * 1e3 / kLayers, timing.sustained_ms * 1e3 / kLayers,
                  timing.mhz, timing.watts, timing.joules * 1e3 / kLayers);
      std::fflush(stdout);
    }
  }
}

/// Useful TFLOP/s of attention for every head dim of the supported models.
void print_attention(Bench& bench, bool is_fp8) {
  constexpr int kRepeats = 4;
  const std::vector<Batch> batches{{64, 64},  {40, 196}, {16, 256}, {20, 440},
                                   {4, 1024}, {8, 1024}, {1, 4096}, {1, 16384}};
  std::printf("%-8s", "head_dim");
  for (const Batch& batch : batches)
    std::printf(" %4lldx%-5lld", static_cast<long long>(batch.count),
                static_cast<long long>(batch.length));
  std::printf("  TFLOP/s\n");
  for (const std::int64_t dim : {64, 72, 80, 88, 96, 112, 128}) {
    std::printf("%-8lld", static_cast<long long>(dim));
    for (const Batch& batch : batches) {
      const std::int64_t heads = 3 * kHidden / (3 * dim);
      const Tensor qkv = bench.random(batch.rows(), 3 * heads * dim);
      const Tensor out = make_tensor(bench.device(), DType::kBF16, {batch.rows(), heads * dim});
      const Tensor cu = offsets(bench, batch);
      const Timing timing = bench.time([&](ExecContext& ctx) {
        for (int i = 0; i < kRepeats; ++i)
          ops::attention(ctx, {.qkv = qkv.view(),
                               .sequences = {.cu_seqlens = cu.view(), .max_seqlen = batch.length},
                               .num_heads = heads,
                               .head_dim = dim,
                               .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
                               .out = out.view(),
                               .projection_dtype = is_fp8 ? DType::kF8E4M3 : DType::kBF16});
      });
      const double flops = 4.0 * static_cast<double>(batch.rows()) *
                           static_cast<double>(batch.length) * static_cast<double>(heads * dim);
      std::printf(" %10.0f", flops * kRepeats / timing.burst_ms * 1e-9);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

int run(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const auto has = [&](std::string_view flag) {
    return std::ranges::find(arguments, flag) != arguments.end();
  };
  CudaDeviceOptions options = first_gpu();
  if (has("--portable")) options.attention = CudaAttention::kPortable;
  if (has("--hopper")) options.attention = CudaAttention::kHopper;
  if (has("--cudnn")) options.attention = CudaAttention::kCudnn;
  Bench bench(options);
  const bool is_fp8 = has("--fp8");
  if (has("--attention")) print_attention(bench, is_fp8);
  if (has("--attention") && !has("--ops")) return 0;
  const double seconds = has("--sustained") ? kSustainedSeconds : 0;
  const Tower t(bench, is_fp8 ? ops::WeightFormat::kFp8 : ops::WeightFormat::kNative);
  std::vector<std::string_view> wanted;
  std::ranges::copy_if(arguments, std::back_inserter(wanted),
                       [](std::string_view argument) { return !argument.starts_with("--"); });
  if (has("--ops")) print_ops(bench, t, seconds, wanted);
  if (!has("--no-towers")) print_towers(bench, t, seconds);
  return 0;
}

}  // namespace
}  // namespace fovea::bench

int main(int argc, char** argv) { return fovea::bench::run(argc, argv); }
