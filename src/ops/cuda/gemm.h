#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "device/cuda/cuda_stream.h"

namespace fovea::cuda {

/// One matrix product, everything bf16 and row-major:
///   out[r, n] = gelu_tanh?(sum_k x[r, k] * weight[n, k] + bias[n]) + residual[r, n]
/// accumulated in f32 and rounded once. `gelu_tanh` and a residual exclude each other.
struct Gemm {
  std::int64_t rows;
  std::int64_t in_features;
  std::int64_t out_features;
  const std::byte* x;         ///< [rows, in_features]
  const std::byte* weight;    ///< [out_features, in_features]
  const std::byte* bias;      ///< [out_features], or null
  const std::byte* residual;  ///< [rows, out_features], or null; may be `out`
  bool gelu_tanh = false;
  std::byte* out;  ///< first element; rows are out_stride elements apart
  std::int64_t out_stride;
};

/// What the fastest algorithm depends on. Row counts are rounded up to eight classes per octave, so
/// that arbitrary batches share a few hundred measurements.
struct GemmKey {
  std::int64_t rows_class;
  std::int64_t in_features;
  std::int64_t out_features;
  std::int64_t out_stride;
  int epilogue;  ///< cublasLtEpilogue_t
  bool residual;
  int alignment;  ///< bytes to which every operand is aligned: 2, 4, 8 or 16
  friend auto operator<=>(const GemmKey&, const GemmKey&) = default;
};

/// An algorithm of cuBLASLt and the number of rows it was chosen for.
struct GemmChoice {
  cublasLtMatmulAlgo_t algorithm;
  std::int64_t rows;
};

/// Matrix products through cuBLASLt with measured algorithms. The first product of a shape outside
/// a capture times what the library proposes, on scratch of its own (tens of milliseconds), and the
/// choice is kept; inside a capture nothing is measured, so run a shape once before recording it.
/// Thread-safe; two threads may measure the same shape, the later result stays.
class GemmLibrary {
 public:
  /// @param choices_path file that keeps choices between processes; empty: none. A file of another
  ///   GPU model or library version, or a damaged one, is ignored and replaced.
  GemmLibrary(int device_index, std::string choices_path);

  /// Asynchronous; safe to capture. @throws Error(kDevice) if the library refuses.
  void run(CudaStream& stream, const Gemm& gemm);

 private:
  [[nodiscard]] GemmChoice choose(CudaStream& stream, const Gemm& gemm, const GemmKey& key);
  [[nodiscard]] std::optional<GemmChoice> find(const GemmKey& key);
  void keep(const GemmKey& key, const GemmChoice& choice);

  UniqueCublasLt library_;
  std::string identity_;  // of GPU model and library version: choices are valid for these only
  std::string choices_path_;
  std::mutex mutex_;  // guards the member below and the file
  std::map<GemmKey, GemmChoice> choices_;
};

}  // namespace fovea::cuda
