// The GEMMs of a block of the Qwen3-VL-30B tower by every kernel named, side by side: a file of
// choices makes a kernel compute a shape (src/ops/cuda/gemm/choices.cpp). Without a name the
// backend chooses, and the choices are printed. Weights rotate, so that they come from memory as
// they do in a tower. Kernels for E4M3 compute the products of that format, on rows that are
// quantized already.
//
//   fovea_bench_cuda_gemm ROWS SECONDS [KERNEL...]
//
// ROWS is a list like 64,8192; SECONDS the length of the sustained loop, 0 for bursts only.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/norm.h"
#include "fovea/tower/ops/projected_attention.h"
#include "ops/cuda_bench.h"
#include "ops/quantized.h"

namespace fovea::bench {
namespace {

constexpr std::int64_t kSequence = 1024;
constexpr int kWeights = 9;  // sets, together more than the L2 cache holds

struct Product {
  const char* name;
  std::int64_t in_features;
  std::int64_t out_features;
  ops::Activation activation = ops::Activation::kNone;
  bool residual = false;
  int head_dim = 0;  ///< with attention over sequences of 1024 rows behind it
  bool is_fp8 = false;
  /// A second layer behind it, back to in_features, as one op: the first gives quantized rows.
  bool is_mlp = false;

  [[nodiscard]] ops::WeightFormat format() const {
    return is_fp8 ? ops::WeightFormat::kFp8 : ops::WeightFormat::kNative;
  }
};
constexpr Product kProducts[] = {
    {.name = "qkv", .in_features = 1152, .out_features = 3456},
    {.name = "heads", .in_features = 1152, .out_features = 3456, .head_dim = 72},
    {.name = "proj", .in_features = 1152, .out_features = 1152, .residual = true},
    {.name = "fc1",
     .in_features = 1152,
     .out_features = 4304,
     .activation = ops::Activation::kGeluTanh},
    {.name = "fc2", .in_features = 4304, .out_features = 1152, .residual = true},
    {.name = "merge",
     .in_features = 4608,
     .out_features = 4608,
     .activation = ops::Activation::kGeluErf},
    {.name = "qkv", .in_features = 1152, .out_features = 3456, .is_fp8 = true},
    {.name = "heads", .in_features = 1152, .out_features = 3456, .head_dim = 72, .is_fp8 = true},
    {.name = "proj", .in_features = 1152, .out_features = 1152, .residual = true, .is_fp8 = true},
    {.name = "fc2", .in_features = 4304, .out_features = 1152, .residual = true, .is_fp8 = true},
    {.name = "mlp",
     .in_features = 1152,
     .out_features = 4304,
     .activation = ops::Activation::kGeluTanh,
     .is_fp8 = true,
     .is_mlp = true}};

/// Memory of a quantized tensor of random rows.
Buffer quantized_rows(Bench& bench, const Shape& shape) {
  Buffer memory = bench.device().allocate(ops::quantized_bytes(shape));
  const Tensor x = make_tensor(bench.device(), DType::kBF16, shape);
  bench.fill(x);
  const Tensor weight = bench.floats(shape[1], 1.0f);
  const Tensor bias = bench.floats(shape[1], 0.0f);
  (void)bench.time([&](ExecContext& ctx) {
    ops::layer_norm(ctx, {.x = x.view(),
                          .weight = weight.view(),
                          .bias = bias.view(),
                          .epsilon = 1e-6f,
                          .out = {memory.data(), DType::kF8E4M3, shape}});
  });
  return memory;
}

Timing time_product(Bench& bench, const Product& p, std::int64_t rows, double seconds) {
  const Shape x_shape{rows, p.in_features};
  const Tensor plain = make_tensor(bench.device(), DType::kBF16, x_shape);
  const Buffer quantized = p.is_fp8 ? quantized_rows(bench, x_shape) : Buffer{};
  const ConstTensorView x = p.is_fp8 ? ConstTensorView{quantized.data(), DType::kF8E4M3, x_shape}
                                     : ConstTensorView(plain.view());
  const Tensor out = make_tensor(bench.device(), DType::kBF16, {rows, p.out_features});
  bench.fill(plain);
  bench.fill(out);
  std::vector<ops::PackedLinear> weights;
  std::vector<ops::PackedLinear> second_layers;
  for (int i = 0; i < kWeights; ++i) {
    weights.push_back(bench.linear(p.in_features, p.out_features, p.format()));
    if (p.is_mlp) second_layers.push_back(bench.linear(p.out_features, p.in_features, p.format()));
  }
  std::vector<std::int32_t> cu;
  for (std::int64_t row = 0; row < rows; row += kSequence)
    cu.push_back(static_cast<std::int32_t>(row));
  cu.push_back(static_cast<std::int32_t>(rows));
  const Tensor offsets = bench.ints(cu);
  const Tensor count = bench.ints({static_cast<std::int32_t>(rows)});
  const LiveRows live{
      reinterpret_cast<const std::int32_t*>(count.buffer.data())};  // as recordings have it
  const Tensor angles = bench.floats(rows * p.head_dim / 2 + 1, 0.7f);
  const Shape angle_shape{rows, p.head_dim / 2};
  const Tensor mixed = make_tensor(bench.device(), DType::kBF16, {rows, p.out_features / 3});
  const auto attend = [&](ExecContext& ctx, const ops::PackedLinear& weight) {
    ops::projected_attention(ctx, {.x = x,
                                   .projection = weight,
                                   .qkv = out.view(),
                                   .cos = {angles.buffer.data(), DType::kF32, angle_shape},
                                   .sin = {angles.buffer.data(), DType::kF32, angle_shape},
                                   .sequences = {.cu_seqlens = offsets.view(),
                                                 .max_seqlen = std::min(rows, kSequence),
                                                 .rows = live},
                                   .num_heads = p.out_features / 3 / p.head_dim,
                                   .head_dim = p.head_dim,
                                   .scale = 0.1f,
                                   .out = mixed.view()});
  };
  Timing timing = bench.time(
      [&](ExecContext& ctx) {
        for (const ops::PackedLinear& weight : weights) {
          if (p.is_mlp) {
            const auto i = static_cast<std::size_t>(&weight - weights.data());
            ops::mlp(ctx, {.x = x,
                           .fc1 = weight,
                           .fc2 = second_layers[i],
                           .activation = p.activation,
                           .residual = plain.view(),
                           .rows = live,
                           .wide = out.view(),
                           .out = plain.view()});
            continue;
          }
          if (p.head_dim > 0) {
            attend(ctx, weight);
            continue;
          }
          ops::linear(ctx,
                      {.x = x,
                       .weight = weight,
                       .activation = p.activation,
                       .residual = p.residual ? ConstTensorView(out.view()) : ConstTensorView{},
                       .rows = live,
                       .out = out.view()});
        }
      },
      seconds);
  for (double* value : {&timing.burst_ms, &timing.sustained_ms, &timing.joules}) *value /= kWeights;
  return timing;
}

/// The line that makes `kernel` compute a recorded product.
std::string choice_line(const Product& p, std::int64_t rows, const std::string& kernel) {
  return cat(rows, ' ', p.in_features, ' ', p.out_features, ' ', p.out_features, ' ',
             static_cast<int>(p.activation), " 1 ", p.residual ? 1 : 0, ' ', p.head_dim, ' ',
             (p.is_fp8 ? 1 : 0) + (p.is_mlp ? 1 : 0), " 16 own 1 ", kernel,
             p.head_dim > 0 ? ", heads of 72" : "", '\n');
}

void print(const Product& p, std::int64_t rows, const std::string& kernel, const Timing& t) {
  const double flops =
      (p.is_mlp ? 4.0 : 2.0) * static_cast<double>(rows * p.in_features * p.out_features);
  std::printf("%-5s %-4s %6lld %-38s %9.2f us %5.0f", p.name, p.is_fp8 ? "fp8" : "bf16",
              static_cast<long long>(rows), kernel.c_str(), t.burst_ms * 1e3,
              flops / t.burst_ms * 1e-9);
  if (t.sustained_ms > 0)
    std::printf("  sustained %9.2f us %5.0f  %5.0f MHz %4.0f W %7.4f J", t.sustained_ms * 1e3,
                flops / t.sustained_ms * 1e-9, t.mhz, t.watts, t.joules);
  std::printf("\n");
  std::fflush(stdout);
}

std::string path_of_choices(const CudaDeviceOptions& options) {
  return cat(options.cache_dir, '/', list_directory(options.cache_dir).at(0));
}

std::string read_choices(const std::string& path) {
  const auto bytes = read_file(path, std::size_t{1} << 20);
  return {bytes.begin(), bytes.end()};
}

/// Whether the file still has that line: a line that cannot be followed gives way to a measurement.
bool has_choice(const CudaDeviceOptions& options, const std::string& line) {
  return read_choices(path_of_choices(options)).find(line) != std::string::npos;
}

/// The first two lines of a file of choices for this GPU, which a first GEMM makes it write.
std::string header_of_choices(const CudaDeviceOptions& options) {
  {
    Bench bench(options);
    (void)time_product(bench, kProducts[0], 64, 0);
  }
  const std::string choices = read_choices(path_of_choices(options));
  return choices.substr(0, choices.find('\n', choices.find('\n') + 1) + 1);
}

int run(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: %s ROWS SECONDS [KERNEL...]\n", argv[0]), 2;
  std::vector<std::int64_t> all_rows;
  std::istringstream list(argv[1]);
  for (std::string rows; std::getline(list, rows, ',');) all_rows.push_back(std::stoll(rows));
  const double seconds = std::stod(argv[2]);
  const std::vector<std::string> kernels(argv + 3, argv + argc);
  CudaDeviceOptions options = first_gpu();
  options.cache_dir = std::filesystem::temp_directory_path() / "fovea_bench_cuda_gemm";
  std::filesystem::remove_all(options.cache_dir);
  const auto print_all = [&](const std::string& kernel) {
    Bench bench(options);
    for (const Product& p : kProducts)
      for (const std::int64_t rows : all_rows)
        if (kernel.empty() || kernel.starts_with("fp8") == p.is_fp8) {
          const Timing timing = time_product(bench, p, rows, seconds);
          const bool computes = kernel.empty() || has_choice(options, choice_line(p, rows, kernel));
          print(p, rows, computes ? kernel : "(another: it cannot compute this)", timing);
        }
  };
  if (kernels.empty()) {
    print_all("");
    std::printf("%s", read_choices(path_of_choices(options)).c_str());
    return 0;
  }
  const std::string header = header_of_choices(options);
  for (const std::string& kernel : kernels) {
    std::string choices = header;
    for (const Product& p : kProducts)
      for (const std::int64_t rows : all_rows) choices += choice_line(p, rows, kernel);
    replace_file(path_of_choices(options), choices);
    print_all(kernel);
  }
  return 0;
}

}  // namespace
}  // namespace fovea::bench

int main(int argc, char** argv) { return fovea::bench::run(argc, argv); }
