#pragma once

#include <type_traits>

namespace fovea::cuda {

/// The head dims that a kernel is compiled for, in ascending order.
template <int... kDims>
struct HeadDims {
  [[nodiscard]] static constexpr bool contains(int head_dim) {
    return ((head_dim == kDims) || ...);
  }

  /// Calls body(std::integral_constant<int, kDim>{}) with the first kDim that is not smaller than
  /// `head_dim`; there is one.
  template <class Body>
  static void choose(int head_dim, const Body& body) {
    (void)((head_dim <= kDims && (body(std::integral_constant<int, kDims>{}), true)) || ...);
  }
};

/// Those of kernels that pad heads with zeros to whole steps of 16 dims.
using PaddedHeadDims = HeadDims<16, 32, 48, 64, 80, 96, 112, 128>;

}  // namespace fovea::cuda
