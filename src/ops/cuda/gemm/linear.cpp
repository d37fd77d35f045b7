// The linear layer: weights in the layout of the checkpoint, as bf16 or as E4M3.
#include "ops/cuda/gemm/linear.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "core/check.h"
#include "device/cuda/handles.h"
#include "ops/cuda/common/operands.h"
#include "ops/cuda/rowwise/rowwise.h"
#include "ops/quantized.h"
#include "ops/steps.h"

namespace fovea::cuda {

namespace {

constexpr std::int64_t kFp8Multiple = 16;  // of features: rows are multiples of 16 bytes for TMA

/// Uploads bytes. Blocks until the copy is done.
Buffer upload_bytes(Device& device, const void* host, std::size_t bytes) {
  Buffer buffer = device.allocate(bytes);
  const std::unique_ptr<Stream> stream = device.create_copy_stream();
  stream->copy(buffer.data(), static_cast<const std::byte*>(host), bytes);
  stream->synchronize();
  return buffer;
}

std::vector<float> widened(ConstTensorView host) {
  std::vector<float> wide(static_cast<std::size_t>(host.shape.elements()));
  widen_to_f32(host.dtype, host.data, wide.data(), wide.size());
  return wide;
}

Buffer upload_bf16(Device& device, ConstTensorView host) {
  const auto bytes = static_cast<std::size_t>(host.shape.elements() * kBf16Bytes);
  if (host.dtype == DType::kBF16) return upload_bytes(device, host.data, bytes);
  const std::vector<float> wide = widened(host);
  std::vector<std::byte> narrowed(bytes);
  narrow_from_f32(wide.data(), DType::kBF16, narrowed.data(), wide.size());
  return upload_bytes(device, narrowed.data(), bytes);
}

bool suits_fp8(const ops::PackedLinear& layer) {
  return layer.in_features % kFp8Multiple == 0 && layer.out_features % kFp8Multiple == 0;
}

/// Weights as E4M3, each row relative to its largest number, and what bounds the layer's results.
void quantize_weights(Device& device, ConstTensorView weight, ConstTensorView bias,
                      ops::PackedLinear& packed) {
  const std::vector<float> wide = widened(weight);
  const auto cols = static_cast<std::size_t>(packed.in_features);
  std::vector<std::uint8_t> values(wide.size());
  std::vector<float> scales(static_cast<std::size_t>(packed.out_features));
  for (std::size_t r = 0; r < scales.size(); ++r) {
    const auto row = std::span(wide).subspan(r * cols, cols);
    float largest = 0;
    for (const float value : row) largest = std::max(largest, std::abs(value));
    scales[r] = largest > 0 ? largest / kMaxE4M3 : 1.0f;
    double square = 0;
    for (std::size_t c = 0; c < cols; ++c) {
      const std::uint8_t bits = f32_to_e4m3(row[c] / scales[r]);
      values[r * cols + c] = bits;
      const double value = double{e4m3_to_f32(bits)} * scales[r];
      square += value * value;
    }
    packed.largest_row = std::max(packed.largest_row, static_cast<float>(std::sqrt(square)));
  }
  if (bias) {
    for (const float value : widened(bias))
      packed.largest_bias = std::max(packed.largest_bias, std::abs(value));
  }
  packed.dtype = DType::kF8E4M3;
  packed.weight = upload_bytes(device, values.data(), values.size());
  packed.scale = upload_bytes(device, scales.data(), scales.size() * sizeof(float));
}

/// Makes quantized rows the x of a GEMM.
void set_x(Gemm& gemm, const ops::QuantizedRows& rows) {
  gemm.x = rows.values;
  gemm.scales.x = rows.scale;
  gemm.scales.x_norm = rows.norm;
}

}  // namespace

ops::PackedLinear pack_linear(Device& device, int device_index, ConstTensorView weight,
                              ConstTensorView bias, ops::WeightFormat format) {
  const DeviceGuard guard(device_index);
  ops::PackedLinear packed;
  packed.out_features = weight.shape[0];
  packed.in_features = weight.shape[1];
  packed.has_bias = static_cast<bool>(bias);
  if (format == ops::WeightFormat::kFp8 && suits_fp8(packed)) {
    quantize_weights(device, weight, bias, packed);
  } else {
    packed.dtype = DType::kBF16;
    packed.weight = upload_bf16(device, weight);
  }
  if (bias) packed.bias = upload_bf16(device, bias);
  return packed;
}

std::size_t linear_workspace(const ops::LinearArgs& args) {
  const bool quantizes = args.weight.dtype == DType::kF8E4M3 && args.x.dtype != DType::kF8E4M3;
  return quantizes ? ops::quantized_bytes(args.x.shape) : 0;
}

Gemm prepare_gemm(const Submission& submission, const ops::LinearArgs& args, int num_sms) {
  Gemm gemm = gemm_of(args, submission.is_recorded);
  if (args.x.dtype == DType::kF8E4M3) {
    set_x(gemm, ops::parts_of(args.x));
  } else {
    check_bf16("linear", "x", args.x);
    if (gemm.format == GemmFormat::kBf16) return gemm;
    check_vectors("linear", "x", args.x);
    const TensorView x = ops::quantized_tensor(submission.arena, args.x.shape);
    quantize_rows(stream_of(submission), args.x, args.rows, ops::parts_of(x), num_sms);
    set_x(gemm, ops::parts_of(x));
  }
  return gemm;
}

void linear(const Submission& submission, const ops::LinearArgs& args, GemmLibrary& library,
            int num_sms) {
  const Arena::Scope scope(submission.arena);
  library.run(stream_of(submission), prepare_gemm(submission, args, num_sms));
}

void mlp(const Submission& submission, const ops::MlpArgs& args, GemmLibrary& library,
         int num_sms) {
  const bool is_fp8 = args.fc1.dtype == DType::kF8E4M3 && args.fc2.dtype == DType::kF8E4M3;
  if (!is_fp8) {
    linear(submission, ops::first_layer(args), library, num_sms);
    linear(submission, ops::second_layer(args), library, num_sms);
    return;
  }
  const Arena::Scope scope(submission.arena);
  CudaStream& stream = stream_of(submission);
  const ops::QuantizedRows wide =
      ops::parts_of(ops::quantized_tensor(submission.arena, args.wide.shape));
  Gemm first = prepare_gemm(submission, ops::first_layer(args), num_sms);
  first.format = GemmFormat::kFp8ToFp8;
  first.out = wide.values;
  first.scales.out = wide.scale;
  library.run(stream, first);
  Gemm second = gemm_of(ops::second_layer(args), submission.is_recorded);
  set_x(second, wide);
  library.run(stream, second);
}

}  // namespace fovea::cuda
