#pragma once

#include <cstdint>

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/context.h"

namespace fovea::ops {

/// Point-wise functions applied to the result of a linear layer. Names as in config files:
/// kGeluTanh "gelu_pytorch_tanh": 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
/// kGeluErf  "gelu":              0.5 x (1 + erf(x / sqrt 2))
/// kQuickGelu "quick_gelu":       x sigmoid(1.702 x)
/// kSilu     "silu":              x sigmoid(x)
/// kRelu2    "relu2":             max(x, 0)^2
enum class Activation : std::uint8_t { kNone, kGeluTanh, kGeluErf, kQuickGelu, kSilu, kRelu2 };

/// How the weights of a layer are kept: in the dtype that the backend computes in, or in 8 bits
/// with a scale per row, where the backend has kernels for that and the sizes suit them. Rows of x
/// are then quantized before they are multiplied.
/// kFp8 (Hopper): E4M3; rows of x to the multiples of max |x[r, :]| / 448 that E4M3 has.
/// kInt8 (CPU): 255 numbers at equal distances from the smallest of a row of weights to its
/// largest; rows of x to 256 (src/ops/cpu/gemm/gemm.h).
enum class WeightFormat : std::uint8_t { kNative, kFp8, kInt8 };

/// A weight matrix and its bias in the layout the backend multiplies with; made once at load by
/// pack_linear. Move-only. The device must outlive it.
struct PackedLinear {
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
  bool has_bias = false;
  DType dtype = DType::kF32;  ///< of the stored weights; chosen by the backend
  Buffer weight;              ///< layout private to the backend
  Buffer bias;                ///< layout private to the backend
  Buffer scale;               ///< with 8 bits: what a row of weights is multiplied by, f32
  /// With E4M3, bounds for |x W^T + bias| <= |x| * largest_row + largest_bias, |x| the Euclidean
  /// norm.
  float largest_row = 0;   ///< Euclidean norm of a row of weights
  float largest_bias = 0;  ///< magnitude

  [[nodiscard]] std::size_t bytes() const noexcept {
    return weight.bytes() + bias.bytes() + scale.bytes();
  }
};

/// Packs a weight matrix for `device`; returns when the copy is complete.
/// @param weight host memory, [out_features, in_features], f32 | f16 | bf16, any alignment.
/// @param bias   host memory, [out_features], f32 | f16 | bf16; absent when data is null.
/// @param format 8 bits are a wish: layers whose sizes do not suit the kernels stay kNative.
/// @throws Error(kInvalidArgument) on other shapes or dtypes, Error(kOutOfMemory),
/// Error(kUnsupported) if the backend has no kernels for the format.
[[nodiscard]] FOVEA_API PackedLinear pack_linear(Device& device, ConstTensorView weight,
                                                 ConstTensorView bias,
                                                 WeightFormat format = WeightFormat::kNative);

/// Memory for rows that `layer` will read as x, in ctx.arena until the caller's scope of it ends:
/// for E4M3 weights quantized rows, which the norms write, else rows of the activation dtype.
/// @param like [rows, in_features], activation dtype: the shape of the rows, and their dtype where
///   they are not quantized. It is not read.
/// @throws Error(kInternal) if the arena is too small.
[[nodiscard]] FOVEA_API TensorView input_rows(ExecContext& ctx, const PackedLinear& layer,
                                              const ConstTensorView& like);

struct LinearArgs {
  ConstTensorView x;           ///< [rows, in_features], activation dtype or quantized
  const PackedLinear& weight;  ///< must outlive recorded work
  Activation activation = Activation::kNone;
  ConstTensorView residual =
      {};  ///< [rows, out_features], activation dtype, or absent; may be `out`
  LiveRows rows = {};
  TensorView out;  ///< activation dtype; [rows, out_features], or wider, see out_column
  std::int64_t out_column = 0;  ///< first column of `out` written; row stride is out.shape[1]
};

/// out[r, out_column + n] = residual[r, n] + activation(sum_k x[r, k] * W[n, k] + bias[n])
/// Accumulates in f32, k ascending in a fixed order that does not depend on the number of rows: a
/// row's bits are the same whatever else is in the batch (CPU). Rounds once, to the activation
/// dtype. Exception: on a GPU, if rows are not multiples of 16 bytes and there is an activation
/// with a residual, the sum is also rounded before the activation. `out` must not overlap `x`.
/// With quantized weights x is quantized first, unless it is, in memory from ctx.arena.
/// Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
FOVEA_API void linear(ExecContext& ctx, const LinearArgs& args);

struct MlpArgs {
  ConstTensorView x;              ///< [rows, fc1.in_features], activation dtype or quantized
  const PackedLinear& fc1;        ///< must outlive recorded work
  const PackedLinear& fc2;        ///< from as many features as fc1 has; must outlive recorded work
  Activation activation;          ///< between the two
  ConstTensorView residual = {};  ///< [rows, fc2.out_features], activation dtype, or absent; may be
                                  ///< `out`
  LiveRows rows = {};
  TensorView wide;  ///< [rows, fc1.out_features], activation dtype: memory to work in, no overlap
                    ///< with the others; what it holds afterwards is unspecified
  TensorView out;   ///< activation dtype; [rows, fc2.out_features], or wider, see out_column
  std::int64_t out_column = 0;  ///< first column of `out` written
};

/// out = residual + fc2(activation(fc1(x))), as one op so that a backend can hand quantized rows
/// from one GEMM to the next. Otherwise two linear layers, rounded after each.
/// Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above, or `x` and
/// `out` overlap.
FOVEA_API void mlp(ExecContext& ctx, const MlpArgs& args);

}  // namespace fovea::ops
