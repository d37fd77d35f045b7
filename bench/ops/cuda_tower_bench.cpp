// The ops on a GPU at the sizes of the Qwen3-VL-30B tower: each alone, and the whole tower as one
// recorded graph. Random weights, one set per layer, so that weights come from memory as they do in
// a model; useful work only in the rates. Compare with an eager or captured PyTorch tower of the
// same shapes.
//
//   fovea_bench_cuda_tower [--ops] [--attention] [--portable | --hopper | --cudnn]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_plugin.h"
#include "ops/kernels.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/projected_attention.h"

namespace fovea {
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

using Clock = std::chrono::steady_clock;
using Work = std::function<void(ExecContext&)>;

/// A sequence of lengths, for example 8 x 256.
struct Batch {
  std::int64_t count;
  std::int64_t length;
  [[nodiscard]] std::int64_t rows() const { return count * length; }
};

class Bench {
 public:
  explicit Bench(std::unique_ptr<Device> device)
      : device_(std::move(device)),
        stream_(device_->create_stream()),
        side_(device_->create_stream()),
        memory_(device_->allocate(std::size_t{2} << 30)) {
    std::mt19937_64 generator(1);
    std::normal_distribution<float> normal;
    random_.resize(static_cast<std::size_t>(kMaxPatches * 3 * kHidden));
    for (auto& bits : random_) bits = f32_to_bf16(normal(generator));
    small_.resize(static_cast<std::size_t>(kJoined * kJoined));
    for (std::size_t i = 0; i < small_.size(); ++i)
      small_[i] = f32_to_bf16(0.02f * bf16_to_f32(random_[i]));
  }

  [[nodiscard]] Device& device() { return *device_; }

  [[nodiscard]] Tensor random(std::int64_t rows, std::int64_t cols) {
    return upload(*device_, *stream_,
                  {reinterpret_cast<const std::byte*>(random_.data()), DType::kBF16, {rows, cols}});
  }
  [[nodiscard]] Tensor floats(std::int64_t count, float value) {
    const std::vector<float> values(static_cast<std::size_t>(count), value);
    return upload(*device_, *stream_,
                  {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, {count}});
  }
  [[nodiscard]] Tensor ints(const std::vector<std::int32_t>& values) {
    return upload(*device_, *stream_,
                  {reinterpret_cast<const std::byte*>(values.data()),
                   DType::kI32,
                   {static_cast<std::int64_t>(values.size())}});
  }
  [[nodiscard]] Tensor offsets(const Batch& batch) {
    std::vector<std::int32_t> values;
    for (std::int64_t s = 0; s <= batch.count; ++s)
      values.push_back(static_cast<std::int32_t>(s * batch.length));
    return ints(values);
  }
  [[nodiscard]] ops::PackedLinear linear(std::int64_t in, std::int64_t out) {
    return ops::pack_linear(
        *device_, {reinterpret_cast<const std::byte*>(small_.data()), DType::kBF16, {out, in}},
        {reinterpret_cast<const std::byte*>(small_.data()), DType::kBF16, {out}});
  }

  /// Median milliseconds of one replay of what `work` submits.
  double replay_ms(const Work& work, int repetitions = 9) {
    Arena arena(memory_.data(), memory_.bytes());
    ExecContext ctx{.stream = *stream_,
                    .kernels = device_->kernels(),
                    .arena = arena,
                    .side = *side_,
                    .is_recorded = true};
    work(ctx);  // measures the algorithms of products
    stream_->synchronize();
    const auto graph = stream_->capture([&] { work(ctx); });
    nodes_ = graph->num_nodes();
    std::vector<double> times;
    for (int i = -2; i < repetitions; ++i) {
      stream_->synchronize();
      const auto begin = Clock::now();
      stream_->replay(*graph);
      stream_->synchronize();
      const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
      if (i >= 0) times.push_back(took.count());
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
  }
  [[nodiscard]] std::size_t nodes() const { return nodes_; }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Stream> side_;
  Buffer memory_;
  std::vector<std::uint16_t> random_;
  std::vector<std::uint16_t> small_;
  std::size_t nodes_ = 0;
};

struct Layer {
  ops::PackedLinear qkv, proj, fc1, fc2;
};
struct Merger {
  ops::PackedLinear fc1, fc2;
};

struct Tower {
  explicit Tower(Bench& bench) : patch_embed(bench.linear(kPatchDim, kHidden)) {
    for (std::int64_t l = 0; l < kLayers; ++l)
      layers.push_back({bench.linear(kHidden, 3 * kHidden), bench.linear(kHidden, kHidden),
                        bench.linear(kHidden, kWide), bench.linear(kWide, kHidden)});
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
void attention(ExecContext& ctx, const Operands& o) {
  ops::attention(ctx, {.qkv = o.qkv,
                       .sequences = {.cu_seqlens = o.cu, .max_seqlen = o.max_seqlen},
                       .num_heads = kHeads,
                       .head_dim = kHeadDim,
                       .scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim)),
                       .out = o.mixed});
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

void block(ExecContext& ctx, const Tower& t, const Layer& layer, const Operands& o) {
  norm(ctx, t, o.x, o.normed);
  rotary_attention(ctx, t, layer, o);
  ops::linear(ctx, {.x = o.mixed, .weight = layer.proj, .residual = o.x, .out = o.x});
  norm(ctx, t, o.x, o.normed);
  ops::linear(ctx, {.x = o.normed,
                    .weight = layer.fc1,
                    .activation = ops::Activation::kGeluTanh,
                    .out = o.wide});
  ops::linear(ctx, {.x = o.wide, .weight = layer.fc2, .residual = o.x, .out = o.x});
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

/// Floating-point operations of the products and attention of one forward.
double tower_flops(const Batch& batch) {
  const auto rows = static_cast<double>(batch.rows());
  const double weights =
      kPatchDim * kHidden + kLayers * (4.0 * kHidden * kHidden + 2.0 * kHidden * kWide) +
      4.0 / 4 * (static_cast<double>(kJoined) * kJoined + static_cast<double>(kJoined) * kOut);
  return 2 * rows * weights +
         4.0 * rows * static_cast<double>(batch.length) * kHidden * static_cast<double>(kLayers);
}

void print_towers(Bench& bench, const Tower& t) {
  std::printf("%-10s %8s %10s %9s\n", "tower", "nodes", "ms", "TFLOP/s");
  for (const Batch batch : {Batch{1, 64}, Batch{1, 256}, Batch{1, 1024}, Batch{1, 4096},
                            Batch{1, 16384}, Batch{8, 256}, Batch{20, 440}, Batch{8, 1024}}) {
    const Tensor cu = bench.offsets(batch);
    const double ms =
        bench.replay_ms([&](ExecContext& ctx) { tower(ctx, t, batch, cu.view()); }, 15);
    std::printf("%4lld x %-5lld %6zu %10.3f %9.0f\n", static_cast<long long>(batch.count),
                static_cast<long long>(batch.length), bench.nodes(), ms,
                tower_flops(batch) / ms * 1e-9);
    std::fflush(stdout);
  }
}

/// One op at a time, once per layer in a graph, so that each run finds other weights.
void print_ops(Bench& bench, const Tower& t) {
  std::printf("%-6s %8s %8s %8s %8s %8s %8s %8s   microseconds\n", "rows", "norm", "qkv", "attn",
              "both", "proj", "fc1", "fc2");
  for (const std::int64_t rows : {64, 256, 1024, 4096, 8800, 16384}) {
    const Tensor cu = bench.offsets({1, rows});
    Buffer memory = bench.device().allocate(static_cast<std::size_t>(rows) * 24000);
    Arena arena(memory.data(), memory.bytes());
    const Operands o = make_operands(arena, rows, cu.view(), rows);
    using Op = std::function<void(ExecContext&, const Layer&)>;
    const std::vector<Op> all{
        [&](ExecContext& ctx, const Layer&) { norm(ctx, t, o.x, o.normed); },
        [&](ExecContext& ctx, const Layer& l) {
          ops::linear(ctx, {.x = o.normed, .weight = l.qkv, .out = o.qkv});
        },
        [&](ExecContext& ctx, const Layer&) { attention(ctx, o); },
        [&](ExecContext& ctx, const Layer& l) { rotary_attention(ctx, t, l, o); },
        [&](ExecContext& ctx, const Layer& l) {
          ops::linear(ctx, {.x = o.mixed, .weight = l.proj, .residual = o.x, .out = o.x});
        },
        [&](ExecContext& ctx, const Layer& l) {
          ops::linear(ctx, {.x = o.normed,
                            .weight = l.fc1,
                            .activation = ops::Activation::kGeluTanh,
                            .out = o.wide});
        },
        [&](ExecContext& ctx, const Layer& l) {
          ops::linear(ctx, {.x = o.wide, .weight = l.fc2, .residual = o.x, .out = o.x});
        }};
    // Random operands everywhere: zeros draw less power and run faster.
    const Tensor values = bench.random(rows, 3 * kHidden);
    bench.replay_ms([&](ExecContext& ctx) {
      for (const TensorView& operand : {o.x, o.normed, o.qkv, o.mixed})
        ctx.stream.copy(operand.data, values.buffer.data(), operand.bytes());
      ctx.stream.copy(o.wide.data, values.buffer.data(), values.buffer.bytes());
    });
    std::printf("%-6lld", static_cast<long long>(rows));
    for (const Op& op : all) {
      const double ms = bench.replay_ms([&](ExecContext& ctx) {
        for (const Layer& layer : t.layers) op(ctx, layer);
      });
      std::printf(" %8.2f", ms * 1e3 / kLayers);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

/// Useful TFLOP/s of attention for every head dim of the supported models.
void print_attention(Bench& bench) {
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
      const Tensor cu = bench.offsets(batch);
      const double ms = bench.replay_ms([&](ExecContext& ctx) {
        for (int i = 0; i < kRepeats; ++i)
          ops::attention(ctx, {.qkv = qkv.view(),
                               .sequences = {.cu_seqlens = cu.view(), .max_seqlen = batch.length},
                               .num_heads = heads,
                               .head_dim = dim,
                               .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
                               .out = out.view()});
      });
      const double flops = 4.0 * static_cast<double>(batch.rows()) *
                           static_cast<double>(batch.length) * static_cast<double>(heads * dim);
      std::printf(" %10.0f", flops * kRepeats / ms * 1e-9);
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
  const CudaBackend backend = find_cuda();
  const std::vector<int> gpus = usable_gpus(backend);
  if (gpus.empty()) {
    std::fprintf(stderr, "no GPU: %s\n", describe_gpus(backend).c_str());
    return 1;
  }
  std::printf("%s\n", backend.gpus[static_cast<std::size_t>(gpus.front())].description.c_str());
  CudaDeviceOptions options{.index = gpus.front()};
  if (has("--portable")) options.attention = CudaAttention::kPortable;
  if (has("--hopper")) options.attention = CudaAttention::kHopper;
  if (has("--cudnn")) options.attention = CudaAttention::kCudnn;
  Bench bench(make_cuda_device(backend, options));
  if (has("--attention")) print_attention(bench);
  if (has("--attention") && !has("--ops")) return 0;
  const Tower t(bench);
  if (has("--ops")) print_ops(bench, t);
  print_towers(bench, t);
  return 0;
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) { return fovea::run(argc, argv); }
