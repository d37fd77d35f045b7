#pragma once

#include <cstdint>
#include <functional>

#include "device/cuda/cuda_stream.h"
#include "fovea/tower/ops/linear.h"
#include "ops/cuda/gemm/gemm.h"

namespace fovea::cuda {

/// The GEMM alone, without activation and residual.
[[nodiscard]] Gemm plain_gemm(Gemm gemm);

/// Computes a GEMM in two steps: first plain_gemm, then one point-wise kernel with activation and
/// residual. Rounds twice, as PyTorch in bf16.
/// @param run_plain computes a plain GEMM on the stream.
/// @throws Error(kUnsupported) if the residual is the output and one row of it exceeds the scratch.
void run_unfused(CudaStream& stream, const Gemm& gemm, int num_sms,
                 const std::function<void(const Gemm&)>& run_plain);

/// out[r, c] = activation(in[r, c]) + residual[r, c] for rows [first_row, first_row + rows) that
/// are live; all bf16, f32 inside, one rounding. Strides are in elements; `out` may be `in` or
/// `residual` with the same stride.
struct ActivationWork {
  ops::Activation activation;
  const std::byte* in;  ///< of row first_row
  std::int64_t in_stride;
  const std::byte* residual;  ///< of row first_row, or null
  std::int64_t residual_stride;
  std::byte* out;  ///< of row first_row
  std::int64_t out_stride;
  std::int64_t first_row;
  std::int64_t rows;
  std::int64_t cols;
  const std::int32_t* live;
};

void launch_activation(CudaStream& stream, const ActivationWork& work, int num_sms);

}  // namespace fovea::cuda
