#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "fovea/tower/ops/context.h"
#include "fovea/tower/ops/linear.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/tolerance.h"

namespace fovea::test {

/// A CPU device of its own, and what an op needs around it.
class LinearBench {
 public:
  explicit LinearBench(CpuIsa isa, int threads = 1, DType compute = DType::kF32)
      : kernels_(make_cpu_kernels(isa, 0, compute)),
        device_(make_cpu_device(threads, *kernels_)),
        stream_(device_->create_stream()) {}

  [[nodiscard]] Device& device() { return *device_; }
  [[nodiscard]] Stream& stream() { return *stream_; }
  void linear(const ops::LinearArgs& args) {
    ExecContext ctx{*stream_, *kernels_, arena_, *stream_};
    ops::linear(ctx, args);
  }

 private:
  std::unique_ptr<Kernels> kernels_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  Arena arena_ = Arena::measuring();
};

inline constexpr ops::Activation kActivations[] = {
    ops::Activation::kNone,      ops::Activation::kGeluTanh, ops::Activation::kGeluErf,
    ops::Activation::kQuickGelu, ops::Activation::kSilu,     ops::Activation::kRelu2};

/// A row-major f32 matrix with the views that ops take.
struct Matrix {
  Matrix(std::int64_t num_rows, std::int64_t num_cols, float fill = 0.0f)
      : rows(num_rows), cols(num_cols), values(static_cast<std::size_t>(rows * cols), fill) {}

  static Matrix random(std::int64_t rows, std::int64_t cols, unsigned seed) {
    Matrix matrix(rows, cols);
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    std::ranges::generate(matrix.values, [&] { return uniform(generator); });
    return matrix;
  }

  [[nodiscard]] float& at(std::int64_t r, std::int64_t c) {
    return values[static_cast<std::size_t>(r * cols + c)];
  }
  [[nodiscard]] float at(std::int64_t r, std::int64_t c) const {
    return values[static_cast<std::size_t>(r * cols + c)];
  }
  [[nodiscard]] TensorView view() {
    return {reinterpret_cast<std::byte*>(values.data()), DType::kF32, {rows, cols}};
  }
  [[nodiscard]] ConstTensorView view() const {
    return {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, {rows, cols}};
  }
  [[nodiscard]] TensorView first_rows(std::int64_t count) {
    return {reinterpret_cast<std::byte*>(values.data()), DType::kF32, {count, cols}};
  }

  std::int64_t rows;
  std::int64_t cols;
  std::vector<float> values;
};

/// A host tensor as a checkpoint holds it: any float dtype, one byte off any alignment.
struct Stored {
  Stored(const std::vector<float>& from, DType stored_dtype, Shape stored_shape)
      : dtype(stored_dtype), shape(stored_shape), bytes(from.size() * size_of(dtype) + 1) {
    narrow_from_f32(from.data(), dtype, bytes.data() + 1, from.size());
    rounded.resize(from.size());
    widen_to_f32(dtype, bytes.data() + 1, rounded.data(), from.size());
  }
  [[nodiscard]] ConstTensorView view() const { return {bytes.data() + 1, dtype, shape}; }

  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
  std::vector<float> rounded;  ///< what the bytes mean
};

/// Weights in bf16, one set for each shape.
inline Stored random_weight(std::int64_t out_features, std::int64_t in_features) {
  return {Matrix::random(out_features, in_features, 2).values,
          DType::kBF16,
          {out_features, in_features}};
}

/// Those whose leaves this machine can run.
inline std::vector<CpuIsa> isas_of_this_machine() {
  const std::span<const CpuIsa> isas = cpu_isas();
  return {isas.begin(), isas.end()};
}

}  // namespace fovea::test
