#pragma once

#include <cstdint>
#include <utility>

#include "ops/cpu/cpu_kernels.h"
#include "support/linear_fixture.h"

namespace fovea::test {

/// A linear layer on a CPU device of its own, with the memory that it works in.
class PackedLayer {
 public:
  [[nodiscard]] const ops::PackedLinear& packed() const { return packed_; }
  [[nodiscard]] Stream& stream() { return bench_.stream(); }

  /// As ops::linear; `weight` of the arguments is this layer's.
  void apply(ConstTensorView x, TensorView out, ops::Activation activation = {},
             ConstTensorView residual = {}, LiveRows rows = {}, std::int64_t out_column = 0) {
    const ops::LinearArgs args{.x = x,
                               .weight = packed_,
                               .activation = activation,
                               .residual = residual,
                               .rows = rows,
                               .out = out,
                               .out_column = out_column};
    const std::size_t bytes = bench_.device().kernels().linear_workspace(args) + Arena::kAlignment;
    if (memory_.bytes() < bytes) memory_ = bench_.device().allocate(bytes);
    Arena arena(memory_.data(), memory_.bytes());
    ExecContext ctx{bench_.stream(), bench_.device().kernels(), arena, bench_.stream()};
    ops::linear(ctx, args);
  }

 protected:
  PackedLayer(LinearBench bench, const Stored& weight, const Stored* bias, ops::WeightFormat format)
      : bench_(std::move(bench)),
        packed_(ops::pack_linear(bench_.device(), weight.view(),
                                 bias == nullptr ? ConstTensorView{} : bias->view(), format)) {}

 private:
  LinearBench bench_;
  ops::PackedLinear packed_;
  Buffer memory_;
};

/// In float32.
class Float32Layer : public PackedLayer {
 public:
  Float32Layer(CpuIsa isa, const Stored& weight, const Stored* bias, int threads = 1)
      : PackedLayer(LinearBench(isa, threads), weight, bias, ops::WeightFormat::kNative) {}
};

/// In integers of 8 bits.
class Int8Layer : public PackedLayer {
 public:
  Int8Layer(CpuIsa isa, const Stored& weight, const Stored* bias, int threads = 1)
      : PackedLayer(LinearBench(isa, threads), weight, bias, ops::WeightFormat::kInt8) {}
};

/// In bf16.
class Bf16Layer : public PackedLayer {
 public:
  Bf16Layer(CpuIsa isa, const Stored& weight, const Stored* bias, int threads = 1)
      : PackedLayer(LinearBench(isa, threads, DType::kBF16), weight, bias,
                    ops::WeightFormat::kNative) {}
};

}  // namespace fovea::test
