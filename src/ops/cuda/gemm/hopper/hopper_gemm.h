#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/cuda_stream.h"
#include "device/cuda/sm_partition.h"
#include "ops/cuda/common/tensor_maps.h"
#include "ops/cuda/gemm/gemm.h"

namespace fovea::cuda {

/// What a kernel of this family receives. Along the sum, columns are counted in blocks of 128
/// bytes.
struct HopperGemmWork {
  CUtensorMap x;        ///< [rows, in_features] in tiles of the kernel's rows
  CUtensorMap weight;   ///< [out_features, in_features] in tiles of the kernel's columns
  CUtensorMap out_map;  ///< [rows, out_features] in tiles of 16 rows and chunk_cols columns, if any
  CUtensorMap residual_map;  ///< [rows, out_features] in tiles of the kernel's rows, unless split
  const std::byte* bias;
  const std::byte* residual;
  std::byte* out;
  std::int64_t out_stride;
  const std::int32_t* live;
  int rows;
  int out_features;
  int sum_blocks;  ///< of 128 bytes of a row of x
  int splits;      ///< CTAs that share the sum of a tile
  ops::Activation activation;
  Fp8Scales scales;
  PackedHeads heads;  ///< where queries, keys and values go, for kernels with a head dim
};

/// A compiled kernel: the tile of the output that a CTA computes, and how.
struct HopperGemmKernel {
  const char* name;
  int rows;
  int cols;
  int cluster_rows;  ///< of neighbouring tiles that a cluster of CTAs computes together
  int cluster_cols;  ///< of those
  bool pingpong;     ///< two warp groups take turns: one multiplies while the other stores
  bool split;        ///< CTAs of a cluster share the sum of a tile
  bool adds_residual;
  int head_dim;    ///< of the queries, keys and values that it stores; 0: plain rows
  int chunk_cols;  ///< columns that TMA stores at once; 0: it does not store
  GemmFormat format;
  /// Once per partition of the current GPU, before the first launch there.
  /// @param stream of the partition. @param num_sms of the partition.
  /// @return CTAs that it can have at work at once; 0: it cannot run the kernel.
  int (*prepare)(cudaStream_t stream, int num_sms);
  void (*launch)(CudaStream& stream, const HopperGemmWork& work, int num_ctas);
};
/// Kernels with one warp group, with two or three that share a tile, and with two that take turns;
/// those with a head dim; those for E4M3.
[[nodiscard]] std::span<const HopperGemmKernel> small_gemm_kernels();
[[nodiscard]] std::span<const HopperGemmKernel> wide_gemm_kernels();
[[nodiscard]] std::span<const HopperGemmKernel> pingpong_gemm_kernels();
[[nodiscard]] std::span<const HopperGemmKernel> head_gemm_kernels();
[[nodiscard]] std::span<const HopperGemmKernel> fp8_gemm_kernels();

/// GEMMs by our own kernels: TMA and WGMMA, live rows only, every
/// activation and the residual in the epilogue with one rounding. Thread-safe.
class HopperGemm {
 public:
  static constexpr int kMaxCluster = 8;  ///< CTAs; more are not portable

  explicit HopperGemm(const SmPartition& sms);

  /// Whether addresses, strides and sizes suit TMA: multiples of 16 bytes.
  [[nodiscard]] static bool accepts(const Gemm& gemm);
  /// Ways to compute an accepted GEMM, the most promising by a simple model first.
  [[nodiscard]] std::vector<HopperGemmPlan> candidates(const Gemm& gemm) const;
  /// Clock cycles that an accepted GEMM takes by that model.
  [[nodiscard]] double cycles(const Gemm& gemm, const HopperGemmPlan& plan) const;
  /// Whether there is such a kernel, made for the head dim and the format of the key, and it can
  /// run with that many splits, and add a residual.
  [[nodiscard]] static bool is_possible(const HopperGemmPlan& plan, const GemmKey& key);
  /// Whether there are kernels for queries, keys and values of that head dim.
  [[nodiscard]] static bool has_heads(int head_dim, GemmFormat format);
  /// The kernel of that name; null if this build has none.
  [[nodiscard]] static const HopperGemmKernel* find_kernel(const std::string& name);

  /// Asynchronous; safe to capture. `plan` is one of candidates(), or was for another row count.
  void run(CudaStream& stream, const Gemm& gemm, const HopperGemmPlan& plan) const;

 private:
  /// A matrix of `rows` rows, `row_stride` elements apart, and the tiles of it that are copied.
  struct Matrix {
    const std::byte* data;
    std::int64_t rows;
    std::int64_t cols;
    std::int64_t row_stride;
    int tile_rows;
    int tile_cols;
    std::int64_t element_bytes;  ///< 2: bf16, 1: E4M3
  };
  [[nodiscard]] CUtensorMap describe(const Matrix& matrix) const;

  TensorMaps tensor_maps_;
  int num_sms_;
  std::map<const HopperGemmKernel*, int> most_ctas_;  // at work at once; of those that can run
};

}  // namespace fovea::cuda
