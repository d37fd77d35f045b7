// The linear layer: weights as bf16 in the layout of the checkpoint.
#include "ops/cuda/gemm/linear.h"

#include <vector>

#include "device/cuda/handles.h"
#include "ops/cuda/common/operand_check.h"

namespace fovea::cuda {

namespace {

constexpr std::size_t kElementBytes = 2;  // bf16

/// Uploads a host tensor as bf16. Blocks until the copy is done.
Buffer upload_bf16(Device& device, ConstTensorView host) {
  const auto count = static_cast<std::size_t>(host.shape.elements());
  Buffer buffer = device.allocate(count * kElementBytes);
  std::vector<std::byte> narrowed;
  const std::byte* source = host.data;
  if (host.dtype != DType::kBF16) {
    std::vector<float> wide(count);
    widen_to_f32(host.dtype, host.data, wide.data(), count);
    narrowed.resize(count * kElementBytes);
    narrow_from_f32(wide.data(), DType::kBF16, narrowed.data(), count);
    source = narrowed.data();
  }
  FOVEA_CUDA_CHECK(cudaMemcpyAsync(buffer.data(), source, count * kElementBytes,
                                   cudaMemcpyHostToDevice, cudaStreamPerThread));
  FOVEA_CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  return buffer;
}

}  // namespace

ops::PackedLinear pack_linear(Device& device, int device_index, ConstTensorView weight,
                              ConstTensorView bias) {
  const DeviceGuard guard(device_index);
  ops::PackedLinear packed;
  packed.out_features = weight.shape[0];
  packed.in_features = weight.shape[1];
  packed.has_bias = static_cast<bool>(bias);
  packed.dtype = DType::kBF16;
  packed.weight = upload_bf16(device, weight);
  if (bias) packed.bias = upload_bf16(device, bias);
  return packed;
}

}  // namespace fovea::cuda
