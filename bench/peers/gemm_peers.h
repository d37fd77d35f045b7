#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/thread_pool.h"

namespace fovea::bench {

/// out[rows, out_features] = x[rows, in_features] * weight[out_features, in_features]^T + bias,
/// f32. The memory outlives what is made of it.
struct GemmProblem {
  std::int64_t rows;
  std::int64_t in_features;
  std::int64_t out_features;
  const float* x;
  const float* weight;
  const float* bias;
  float* out;
};

/// Computes the GEMM once, with copy `index` of the packed weights.
using GemmRun = std::function<void(std::size_t index)>;

/// Another library's way to the same GEMM.
struct GemmPeer {
  std::string name;
  /// Packs `copies` equal sets of weights.
  std::function<GemmRun(const GemmProblem&, std::size_t copies, ThreadPool&)> prepare;
};

/// The libraries this program was built with; gemm_peers_none.cpp has none.
[[nodiscard]] std::vector<GemmPeer> gemm_peers();

}  // namespace fovea::bench
