#pragma once

#include <cstddef>
#include <cstdint>

#include "core/check.h"
#include "device/cuda/cuda_stream.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/device/arena.h"
#include "fovea/tower/ops/context.h"

// What bodies of ops take from their arguments, and what they require of them.

namespace fovea::cuda {

[[nodiscard]] inline CudaStream& stream_of(const Submission& submission) {
  return static_cast<CudaStream&>(submission.stream);
}

/// Memory until the caller's scope of the arena ends.
[[nodiscard]] inline std::byte* take_scratch(const Submission& submission, std::size_t bytes) {
  return submission.arena.tensor(DType::kU8, {static_cast<std::int64_t>(bytes)}).data;
}

inline bool is_aligned(const void* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

/// @throws Error(kUnsupported) for activations that are not bf16, the only dtype of these kernels.
inline void check_bf16(const char* op, const char* name, ConstTensorView tensor) {
  FOVEA_CHECK(tensor.dtype == DType::kBF16, kUnsupported, op, ": ", name,
              " must be bfloat16 on a GPU, got ", to_string(tensor.dtype));
}

/// For kernels without a variant for narrower accesses. Memory of an Arena is aligned.
/// @throws Error(kInvalidArgument) for an address that is not a multiple of 16 bytes.
inline void check_vectors(const char* op, const char* name, ConstTensorView tensor) {
  FOVEA_CHECK(is_aligned(tensor.data, 16), kInvalidArgument, op, ": ", name,
              " must begin at a multiple of 16 bytes on a GPU");
}

}  // namespace fovea::cuda
