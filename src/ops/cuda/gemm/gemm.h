#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/cuda_stream.h"
#include "device/cuda/sm_partition.h"
#include "fovea/tower/ops/linear.h"
#include "ops/cuda/common/packed_heads.h"

namespace fovea::cuda {

inline constexpr std::int64_t kBf16Bytes = 2;  ///< of an element

/// Dtypes of a GEMM's x, weight and out. Bias and residual are bf16.
enum class GemmFormat : std::uint8_t {
  kBf16,
  kFp8,       ///< x and weight are E4M3, out is bf16
  kFp8ToFp8,  ///< all three are E4M3
};
/// What makes numbers of E4M3: the scale of their row.
struct Fp8Scales {
  const float* x = nullptr;       ///< [rows]
  const float* weight = nullptr;  ///< [out_features]
  float* out = nullptr;           ///< [rows], written with kFp8ToFp8 only, as are the next three
  /// [rows], at least the Euclidean norm of a row of x. With it, largest_row and largest_bias,
  /// those of PackedLinear, rows of the result are bounded before they are computed, which their
  /// scale is taken from: |out[r, n]| <= x_norm[r] largest_row + largest_bias, activations only
  /// shrink it. The bound exceeds the result by some factor of 10 to 30. That costs range, of which
  /// E4M3 has 2^17, but no precision.
  const float* x_norm = nullptr;
  float largest_row = 0;
  float largest_bias = 0;
};

/// One GEMM, everything bf16, unless `format` says otherwise, and row-major:
///   out[r, n] = activation(sum_k x[r, k] * weight[n, k] + bias[n]) + residual[r, n]
/// accumulated in f32 and rounded once, but see GemmChoice::Way::kUnfused.
struct Gemm {
  std::int64_t rows;
  std::int64_t in_features;
  std::int64_t out_features;
  const std::byte* x;         ///< [rows, in_features]
  const std::byte* weight;    ///< [out_features, in_features]
  const std::byte* bias;      ///< [out_features], or null
  const std::byte* residual;  ///< [rows, out_features], or null; may be `out`
  ops::Activation activation = ops::Activation::kNone;
  std::byte* out;  ///< first element; rows are out_stride elements apart
  std::int64_t out_stride;
  /// Rows that are real, on the device; null: all. cuBLASLt computes all rows regardless.
  const std::int32_t* live = nullptr;
  bool is_recorded = false;  ///< this is a recording, or a rehearsal for one
  /// The columns are queries, keys and values for the Hopper attention kernel: queries go to `out`,
  /// keys and values to the workspace, rotated where there are angles. Null: plain rows. Only our
  /// kernels do that, see HopperGemm::has_heads.
  const PackedHeads* heads = nullptr;
  GemmFormat format = GemmFormat::kBf16;  ///< others by our kernels only
  Fp8Scales scales = {};
};
/// The GEMM of a linear layer, of whose quantized operands only weights are known.
[[nodiscard]] Gemm gemm_of(const ops::LinearArgs& args, bool is_recorded);
[[nodiscard]] inline int head_dim_of(const Gemm& gemm) {
  return gemm.heads == nullptr ? 0 : gemm.heads->head_dim;
}

/// What the fastest way depends on. Rows come last: keys of one GEMM are neighbours in a map.
struct GemmKey {
  std::int64_t in_features;
  std::int64_t out_features;
  std::int64_t out_stride;
  int activation;  ///< ops::Activation
  bool bias;
  bool residual;
  int head_dim;   ///< of queries, keys and values; 0: plain rows
  int format;     ///< GemmFormat
  int alignment;  ///< bytes to which every operand is aligned: 2, 4, 8 or 16
  std::int64_t rows;
  friend auto operator<=>(const GemmKey&, const GemmKey&) = default;
};

struct HopperGemmKernel;

/// One of our own kernels (gemm/hopper/hopper_gemm.h) and the number of its CTAs that
/// share a tile.
struct HopperGemmPlan {
  const HopperGemmKernel* kernel = nullptr;
  int splits = 1;
};

/// How to compute a GEMM.
struct GemmChoice {
  enum class Way : std::uint8_t {
    kOwn,      ///< by a kernel of ours, which knows every epilogue
    kLibrary,  ///< by an algorithm of cuBLASLt that was chosen for `rows` rows
    kUnfused,  ///< activation and residual apart (gemm/unfused.h), rounded once more, where rows
               ///< are not multiples of 16 bytes; the GEMM as chosen for itself
  };
  Way way;
  HopperGemmPlan own = {};
  cublasLtMatmulAlgo_t algorithm = {};
  std::int64_t rows = 0;    ///< 0: kept by an earlier process
  bool is_measured = true;  ///< else it stays out of the file: a guess, for want of memory
};

class GemmChoiceTable;
class HopperGemm;

/// GEMMs by whatever was measured to be fastest: own kernels or algorithms of cuBLASLt.
/// Only a rehearsal for a recording measures: its first GEMM of a shape times what there is, on
/// memory of its own (tens of milliseconds), and the choice is kept. Eager runs, and recordings
/// that were not rehearsed, wait for no measurement: they take the choice of the nearest row count
/// that was measured, or what looks most promising (GemmChoiceTable::take). Thread-safe; two
/// threads may measure the same shape, the later result stays.
class GemmLibrary {
 public:
  /// @param cache_dir folder where choices are kept between processes, in a file named after what
  ///   they are valid for; empty: nowhere. A damaged file is ignored and replaced.
  /// @param has_hopper_kernels whether the GPU runs them; otherwise cuBLASLt computes everything.
  GemmLibrary(const SmPartition& sms, const std::string& cache_dir, bool has_hopper_kernels);
  ~GemmLibrary();
  GemmLibrary(const GemmLibrary&) = delete;
  GemmLibrary& operator=(const GemmLibrary&) = delete;

  /// Asynchronous but for measurements; safe to capture. @throws Error(kDevice) if the library
  /// refuses.
  void run(CudaStream& stream, const Gemm& gemm);

 private:
  /// Up to `most` ways to compute a GEMM, the most promising first.
  [[nodiscard]] std::vector<GemmChoice> candidates(CudaStream& stream, const Gemm& gemm,
                                                   std::size_t most) const;
  /// What is known to be fastest; measured now if it is not known, in a rehearsal.
  [[nodiscard]] GemmChoice choose(CudaStream& stream, const Gemm& gemm);
  /// Whether a kernel of ours can compute it.
  [[nodiscard]] bool has_own(const Gemm& gemm) const;
  /// Whether a choice that was kept can compute this GEMM, and may.
  [[nodiscard]] bool fits(CudaStream& stream, const Gemm& gemm, const GemmChoice& choice) const;
  /// The fastest of the candidates for all rows; the first if none could be measured, for want of
  /// memory.
  [[nodiscard]] GemmChoice fastest(CudaStream& stream, const Gemm& gemm,
                                   std::span<const GemmChoice> candidates);
  void run(CudaStream& stream, const Gemm& gemm, const GemmChoice& choice);

  UniqueCublasLt library_;
  std::unique_ptr<const HopperGemm> own_;  // null where the GPU does not run them
  int num_sms_ = 0;
  std::unique_ptr<GemmChoiceTable> choices_;
};

}  // namespace fovea::cuda
