// Chooses among our own GEMM kernels and starts them.
#include "ops/cuda/gemm/hopper/hopper_gemm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "core/rounding.h"

namespace fovea::cuda {

namespace {

constexpr std::int64_t kBlockBytes = 128;  // of a row of x, that a stage holds
constexpr int kChunkRows = 16;             // of the output, that a warp stores at once
constexpr std::uintptr_t kAlignment = 16;  // bytes; of rows and addresses, for TMA

/// Bytes of an element of x and weights, and of the output.
std::int64_t operand_bytes(GemmFormat format) { return format == GemmFormat::kBf16 ? 2 : 1; }
std::int64_t result_bytes(GemmFormat format) { return format == GemmFormat::kFp8ToFp8 ? 1 : 2; }
/// Blocks of x along the sum.
std::int64_t num_blocks(const Gemm& gemm) {
  return ceil_div(gemm.in_features * operand_bytes(gemm.format), kBlockBytes);
}

/// Clusters of neighbouring tiles.
std::int64_t num_clusters(const Gemm& gemm, const HopperGemmKernel& kernel) {
  return ceil_div(gemm.rows, std::int64_t{kernel.rows} * kernel.cluster_rows) *
         ceil_div(gemm.out_features, std::int64_t{kernel.cols} * kernel.cluster_cols);
}
int cluster_size(const HopperGemmPlan& plan) {
  return plan.splits * plan.kernel->cluster_rows * plan.kernel->cluster_cols;
}

std::vector<const HopperGemmKernel*> all_kernels() {
  std::vector<const HopperGemmKernel*> kernels;
  for (const auto& family : {small_gemm_kernels(), wide_gemm_kernels(), pingpong_gemm_kernels(),
                             head_gemm_kernels(), fp8_gemm_kernels()})
    for (const HopperGemmKernel& kernel : family) kernels.push_back(&kernel);
  return kernels;
}

/// Clock cycles that a GEMM takes by a simple model, fitted to an H100: waves of tiles, each
/// limited by the tensor cores, by the copies, or by latency, unless all wait for the weights; and
/// the way out.
double modelled_cycles(const Gemm& gemm, const HopperGemmPlan& plan, int most_ctas, int num_sms) {
  constexpr double kBytesMultipliedPerCycle = 4096;  // of operands of multiply-adds of one SM
  constexpr double kBytesPerCycle = 60;              // into one SM
  constexpr double kCacheBytesPerCycle = 4000;       // out of the L2 cache
  constexpr double kMemoryBytesPerCycle = 1700;      // out of memory
  constexpr double kBlockLatency = 150;              // of one block of columns
  constexpr double kStoring = 600;
  constexpr double kStoredPerCycle = 5;
  constexpr double kSharing = 1500;           // of a sum between the CTAs of a cluster,
  constexpr double kSharedBytesPerCycle = 7;  // next to the parts themselves
  const HopperGemmKernel& kernel = *plan.kernel;
  const auto area = static_cast<double>(kernel.rows * kernel.cols);
  const std::int64_t all = num_clusters(gemm, kernel) * cluster_size(plan);
  const auto busy = static_cast<double>(std::min<std::int64_t>(all, most_ctas));
  const double busy_each = std::max(1.0, busy / num_sms);
  const auto block_bytes = [](int rows) { return static_cast<double>(rows * kBlockBytes); };
  const double cache_bytes = block_bytes(kernel.rows) / kernel.cluster_cols +
                             block_bytes(kernel.cols) / kernel.cluster_rows;
  const double block =
      std::max({busy_each * area * kBlockBytes / kBytesMultipliedPerCycle,
                busy_each * block_bytes(kernel.rows + kernel.cols) / kBytesPerCycle,
                cache_bytes * busy / kCacheBytesPerCycle, kBlockLatency});
  const std::int64_t blocks = ceil_div(num_blocks(gemm), plan.splits);
  const double multiplying = static_cast<double>(blocks) * block;
  const double sent = area * sizeof(float) * (plan.splits - 1) / plan.splits;
  const double storing = kStoring + area / kStoredPerCycle / plan.splits +
                         (plan.splits > 1 ? kSharing + sent / kSharedBytesPerCycle : 0);
  const auto waves = static_cast<double>(ceil_div(all, most_ctas));
  const double reading = static_cast<double>(num_blocks(gemm) * kBlockBytes * gemm.out_features) /
                         kMemoryBytesPerCycle;
  return kernel.pingpong ? std::max(reading, waves * std::max(multiplying, storing)) + storing
                         : std::max(reading, waves * multiplying + (waves - 1) * storing) + storing;
}

}  // namespace

HopperGemm::HopperGemm(const SmPartition& sms) : num_sms_(sms.num_sms()) {
  const DeviceGuard guard(sms.device_index());
  const UniqueStream stream = sms.create_stream();
  for (const HopperGemmKernel* kernel : all_kernels()) {
    if (const int most = kernel->prepare(stream.get(), num_sms_); most > 0)
      most_ctas_[kernel] = most;
  }
}

bool HopperGemm::accepts(const Gemm& gemm) {
  std::uintptr_t bits = 0;
  for (const std::byte* operand :
       {gemm.x, gemm.weight, gemm.bias, gemm.residual, static_cast<const std::byte*>(gemm.out)}) {
    bits |= reinterpret_cast<std::uintptr_t>(operand);
  }
  for (const std::int64_t columns : {gemm.out_features, gemm.out_stride})
    bits |= static_cast<std::uintptr_t>(columns * result_bytes(gemm.format));
  bits |= static_cast<std::uintptr_t>(gemm.in_features * operand_bytes(gemm.format));
  constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;  // sizes and tile numbers are ints
  return bits % kAlignment == 0 && gemm.rows < kMaxSize && gemm.in_features < kMaxSize &&
         gemm.out_features < kMaxSize &&
         ceil_div(gemm.rows, 64) * ceil_div(gemm.out_features, 32) * kMaxCluster < kMaxSize;
}

std::vector<HopperGemmPlan> HopperGemm::candidates(const Gemm& gemm) const {
  struct Rated {
    HopperGemmPlan plan;
    double cycles;
  };
  constexpr int kBlocksEach = 2;  // per SM
  std::vector<Rated> rated;
  const std::int64_t blocks = num_blocks(gemm);
  for (const auto& [kernel, most_ctas] : most_ctas_) {
    if (gemm.residual != nullptr && !kernel->adds_residual) continue;
    if (kernel->head_dim != head_dim_of(gemm) || kernel->format != gemm.format) continue;
    const int most_splits =
        kernel->split ? kMaxCluster / (kernel->cluster_rows * kernel->cluster_cols) : 1;
    for (int splits = kernel->split ? 2 : 1; splits <= most_splits; ++splits) {
      const HopperGemmPlan plan{kernel, splits};
      // Without waves: every CTA computes one tile.
      if (splits > 1 && (splits > blocks || num_clusters(gemm, *kernel) * cluster_size(plan) >
                                                kBlocksEach * num_sms_)) {
        break;
      }
      rated.push_back({plan, modelled_cycles(gemm, plan, most_ctas, num_sms_)});
    }
  }
  std::ranges::stable_sort(rated, {}, &Rated::cycles);
  std::vector<HopperGemmPlan> plans;
  for (const Rated& entry : rated) plans.push_back(entry.plan);
  return plans;
}

double HopperGemm::cycles(const Gemm& gemm, const HopperGemmPlan& plan) const {
  return modelled_cycles(gemm, plan, most_ctas_.at(plan.kernel), num_sms_);
}

bool HopperGemm::has_heads(int head_dim, GemmFormat format) {
  const auto kernels = format == GemmFormat::kBf16 ? head_gemm_kernels() : fp8_gemm_kernels();
  return std::ranges::find(kernels, head_dim, &HopperGemmKernel::head_dim) != kernels.end();
}

bool HopperGemm::is_possible(const HopperGemmPlan& plan, const GemmKey& key) {
  if (plan.kernel == nullptr || plan.splits < 1) return false;
  if (plan.kernel->head_dim != key.head_dim) return false;
  if (static_cast<int>(plan.kernel->format) != key.format) return false;
  if (key.residual && !plan.kernel->adds_residual) return false;
  return plan.kernel->split ? cluster_size(plan) <= kMaxCluster : plan.splits == 1;
}

const HopperGemmKernel* HopperGemm::find_kernel(const std::string& name) {
  for (const HopperGemmKernel* kernel : all_kernels())
    if (name == kernel->name) return kernel;
  return nullptr;
}

CUtensorMap HopperGemm::describe(const Matrix& matrix) const {
  return tensor_maps_.describe({.data = matrix.data,
                                .element_bytes = matrix.element_bytes,
                                .dims = 2,
                                .sizes = {matrix.cols, matrix.rows},
                                .strides = {matrix.row_stride},
                                .tile = {matrix.tile_cols, matrix.tile_rows}});
}

void HopperGemm::run(CudaStream& stream, const Gemm& gemm, const HopperGemmPlan& plan) const {
  const HopperGemmKernel& kernel = *plan.kernel;
  HopperGemmWork work{};
  // A matrix without gaps between its rows, in tiles as stages hold them.
  const auto in_stages = [&](const std::byte* data, std::int64_t rows, std::int64_t cols,
                             int tile_rows, std::int64_t element_bytes) {
    return describe({.data = data,
                     .rows = rows,
                     .cols = cols,
                     .row_stride = cols,
                     .tile_rows = tile_rows,
                     .tile_cols = static_cast<int>(kBlockBytes / element_bytes),
                     .element_bytes = element_bytes});
  };
  const std::int64_t element_bytes = operand_bytes(gemm.format);
  work.x = in_stages(gemm.x, gemm.rows, gemm.in_features, kernel.rows / kernel.cluster_cols,
                     element_bytes);
  work.weight = in_stages(gemm.weight, gemm.out_features, gemm.in_features,
                          kernel.cols / kernel.cluster_rows, element_bytes);
  if (gemm.residual != nullptr && !kernel.split) {
    work.residual_map =
        in_stages(gemm.residual, gemm.rows, gemm.out_features, kernel.rows, kBf16Bytes);
  }
  if (kernel.chunk_cols > 0) {
    work.out_map = describe({.data = gemm.out,
                             .rows = gemm.rows,
                             .cols = gemm.out_features,
                             .row_stride = gemm.out_stride,
                             .tile_rows = kChunkRows,
                             .tile_cols = kernel.chunk_cols,
                             .element_bytes = result_bytes(gemm.format)});
  }
  work.bias = gemm.bias;
  work.residual = gemm.residual;
  work.out = gemm.out;
  work.out_stride = gemm.out_stride;
  work.live = gemm.live;
  work.rows = static_cast<int>(gemm.rows);
  work.out_features = static_cast<int>(gemm.out_features);
  work.sum_blocks = static_cast<int>(num_blocks(gemm));
  work.splits = plan.splits;
  work.activation = gemm.activation;
  work.scales = gemm.scales;
  if (gemm.heads != nullptr) work.heads = *gemm.heads;
  const int cluster = cluster_size(plan);
  std::int64_t clusters = num_clusters(gemm, kernel);
  // A CTA whose sums come from others has memory for one tile; the others go on to the next.
  if (!kernel.split) clusters = std::min<std::int64_t>(clusters, most_ctas_.at(&kernel) / cluster);
  kernel.launch(stream, work, static_cast<int>(clusters) * cluster);
}

}  // namespace fovea::cuda
