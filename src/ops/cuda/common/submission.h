#pragma once

#include <cstddef>

#include "device/cuda/cuda_stream.h"
#include "fovea/tower/device/arena.h"
#include "fovea/tower/ops/context.h"

namespace fovea::cuda {

[[nodiscard]] inline CudaStream& stream_of(const Submission& submission) {
  return static_cast<CudaStream&>(submission.stream);
}

/// Memory until the caller's scope of the arena ends.
[[nodiscard]] inline std::byte* take_scratch(const Submission& submission, std::size_t bytes) {
  return submission.arena.tensor(DType::kU8, {static_cast<std::int64_t>(bytes)}).data;
}

}  // namespace fovea::cuda
