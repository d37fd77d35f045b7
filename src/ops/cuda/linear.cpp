// The linear layer: one product with bias, activation and residual in its epilogue. Where operands
// do not suit our own kernels and cuBLASLt has no such epilogue, one point-wise kernel follows the
// product and the result is rounded twice, as PyTorch does in bf16.
#include <algorithm>
#include <vector>

#include "core/check.h"
#include "ops/cuda/activation.h"
#include "ops/cuda/cuda_kernels.h"

namespace fovea::cuda {

namespace {

using ops::Activation;

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

/// Moves the operands of a product and of what follows it `rows` rows down.
void advance(Gemm& gemm, ActivationWork& work, std::int64_t rows) {
  constexpr auto kBytes = static_cast<std::int64_t>(kElementBytes);
  gemm.x += rows * gemm.in_features * kBytes;
  work.residual += rows * work.residual_stride * kBytes;
  work.out += rows * work.out_stride * kBytes;
  work.first_row += rows;
}

}  // namespace

ops::PackedLinear CudaKernels::pack_linear(Device& device, ConstTensorView weight,
                                           ConstTensorView bias) const {
  const DeviceGuard guard(device_index_);
  ops::PackedLinear packed;
  packed.out_features = weight.shape[0];
  packed.in_features = weight.shape[1];
  packed.has_bias = static_cast<bool>(bias);
  packed.dtype = DType::kBF16;
  packed.weight = upload_bf16(device, weight);
  if (bias) packed.bias = upload_bf16(device, bias);
  return packed;
}

void CudaKernels::linear(Stream& stream, const ops::LinearArgs& args) const {
  auto& cuda_stream = static_cast<CudaStream&>(stream);
  const std::int64_t out_features = args.weight.out_features;
  std::byte* const out = args.out.data + args.out_column * static_cast<std::int64_t>(kElementBytes);
  Gemm gemm{.rows = args.x.shape[0],
            .in_features = args.weight.in_features,
            .out_features = out_features,
            .x = args.x.data,
            .weight = args.weight.weight.data(),
            .bias = args.weight.has_bias ? args.weight.bias.data() : nullptr,
            .residual = args.residual.data,
            .activation = args.activation,
            .out = out,
            .out_stride = args.out.shape[1],
            .live = args.rows.count};
  if (GemmLibrary::accepts(gemm)) return gemm_.run(cuda_stream, gemm);

  gemm.residual = nullptr;
  gemm.activation = Activation::kNone;
  ActivationWork work{.activation = args.activation,
                      .in = out,
                      .in_stride = args.out.shape[1],
                      .residual = args.residual.data,
                      .residual_stride = args.residual ? out_features : 0,
                      .out = out,
                      .out_stride = args.out.shape[1],
                      .first_row = 0,
                      .rows = gemm.rows,
                      .cols = out_features,
                      .live = args.rows.count};
  if (args.residual.data != args.out.data) {
    gemm_.run(cuda_stream, gemm);
    return launch_activation(cuda_stream, work, num_multiprocessors_);
  }
  // The product must not overwrite the residual it is added to: it goes through scratch in pieces.
  const auto scratch = cuda_stream.own_scratch();
  const std::int64_t piece =
      static_cast<std::int64_t>(scratch.size() / kElementBytes) / out_features;
  FOVEA_CHECK(piece > 0, kUnsupported, "linear: ", out_features,
              " columns are too many for an activation with a residual in place");
  gemm.out = scratch.data();
  gemm.out_stride = out_features;
  work.in = scratch.data();
  work.in_stride = out_features;
  for (std::int64_t left = args.x.shape[0]; left > 0; left -= gemm.rows) {
    gemm.rows = std::min(piece, left);
    work.rows = gemm.rows;
    gemm_.run(cuda_stream, gemm);
    launch_activation(cuda_stream, work, num_multiprocessors_);
    advance(gemm, work, gemm.rows);
  }
}

}  // namespace fovea::cuda
