#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "core/float_mode.h"
#include "ops/cpu/attention/task.h"
#include "support/isa_units.h"
#include "support/op_fixture.h"

namespace fovea::test {

/// A kind of attention of all units of this machine, those that it has no use for included.
inline std::vector<cpu::AttentionKernel> attention_kernels(
    cpu::AttentionKernel cpu::IsaKernels::*kind) {
  std::vector<cpu::AttentionKernel> kernels;
  for (const cpu::IsaUnit* const unit : units_of_this_machine()) {
    const cpu::AttentionKernel& kernel = unit->kernels.*kind;
    if (kernel.run != nullptr) kernels.push_back(kernel);
  }
  return kernels;
}

/// One head and one sequence: q, k and v of a row side by side.
struct OneHead {
  std::int64_t dim;
  std::vector<float> qkv;

  static OneHead random(std::int64_t rows, std::int64_t dim, std::uint64_t seed) {
    std::mt19937_64 generator(seed);
    return {dim, normal_values(generator, rows * 3 * dim)};
  }

  [[nodiscard]] std::int64_t rows() const {
    return static_cast<std::int64_t>(qkv.size()) / (3 * dim);
  }
  /// @param part 0 q, 1 k, 2 v
  float& at(std::int64_t row, int part, std::int64_t d) {
    return qkv[static_cast<std::size_t>((3 * row + part) * dim + d)];
  }
  [[nodiscard]] float scale() const { return 1.0f / std::sqrt(static_cast<float>(dim)); }

  /// What a kernel makes of the first queries, at most what a task may have, and all keys.
  /// @param change of the task, before it runs.
  template <class Change>
  [[nodiscard]] std::vector<float> run(const cpu::AttentionKernel& kernel,
                                       const Change& change) const {
    const std::int64_t queries = std::min(rows(), cpu::task_queries(kernel, dim));
    // What lies behind the scratch must stay as it is.
    const auto scratch_floats = static_cast<std::size_t>(kernel.scratch_floats(dim, queries, 0));
    std::vector<float> scratch(scratch_floats + 16, kNan);
    std::fill(scratch.begin() + static_cast<std::ptrdiff_t>(scratch_floats), scratch.end(), -1.0f);
    std::vector<float> out(static_cast<std::size_t>(queries * dim), kNan);
    const FloatModeScope mode(kTowerFloatMode);
    cpu::AttentionTask task{.q = qkv.data(),
                            .q_stride = 3 * dim,
                            .k = qkv.data() + dim,
                            .v = qkv.data() + 2 * dim,
                            .stride = 3 * dim,
                            .num_queries = queries,
                            .num_keys = rows(),
                            .head_dim = dim,
                            .scale = scale(),
                            .out = out.data(),
                            .out_stride = dim,
                            .scratch = scratch.data()};
    change(task);
    out.resize(static_cast<std::size_t>(task.num_queries * dim));
    kernel.run(task);
    for (std::size_t i = scratch_floats; i < scratch.size(); ++i) EXPECT_EQ(scratch[i], -1.0f);
    return out;
  }
  [[nodiscard]] std::vector<float> run(const cpu::AttentionKernel& kernel) const {
    return run(kernel, [](cpu::AttentionTask&) {});
  }
  /// With another scale.
  [[nodiscard]] std::vector<float> run(const cpu::AttentionKernel& kernel, float scale) const {
    return run(kernel, [&](cpu::AttentionTask& task) { task.scale = scale; });
  }
  /// @param cos, sin [rows, dim / 2]
  [[nodiscard]] std::vector<float> run(const cpu::AttentionKernel& kernel,
                                       const std::vector<float>& cos,
                                       const std::vector<float>& sin) const {
    return run(kernel, [&](cpu::AttentionTask& task) {
      task.q_angles = task.k_angles = {cos.data(), sin.data()};
    });
  }

  /// The row of a query in double precision, of all keys or of the first ones.
  [[nodiscard]] std::vector<double> exact(std::int64_t query, std::int64_t keys) const {
    const auto row = [&](std::int64_t r, std::int64_t part) {
      return qkv.data() + (3 * r + part) * dim;
    };
    std::vector<double> scores;
    for (std::int64_t key = 0; key < keys; ++key) {
      const float* const q = row(query, 0);
      scores.push_back(scale() * std::inner_product(q, q + dim, row(key, 1), 0.0));
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    std::vector<double> out(static_cast<std::size_t>(dim));
    double sum = 0;
    for (std::int64_t key = 0; key < keys; ++key) {
      const double weight = std::exp(scores[static_cast<std::size_t>(key)] - largest);
      sum += weight;
      for (std::size_t d = 0; d < out.size(); ++d) out[d] += weight * row(key, 2)[d];
    }
    for (double& value : out) value /= sum;
    return out;
  }

  /// Relative L2 difference of some rows of run() from double precision.
  [[nodiscard]] double error(const cpu::AttentionKernel& kernel) const {
    const std::vector<float> got = run(kernel);
    double difference = 0;
    double norm = 0;
    for (const std::int64_t query : {0, 1, 50, 127, 170, 255, 256, 299}) {
      if (query >= rows()) break;
      const std::vector<double> want = exact(query, rows());
      for (std::size_t d = 0; d < want.size(); ++d) {
        difference += std::pow(got[static_cast<std::size_t>(query * dim) + d] - want[d], 2);
        norm += std::pow(want[d], 2);
      }
    }
    return std::sqrt(difference / norm);
  }
};

/// An element of a head, and what stands in its place.
struct Element {
  std::int64_t row;
  int part;
  std::int64_t d;
  float value;
};

/// Expects that an element of a head of 150 rows and 24 components makes other outputs of those
/// that `reached(row, d)` names, so that `is_spoiled` holds, and leaves the bits of all others.
template <class Reached, class IsSpoiled>
void expect_reaches_only(const cpu::AttentionKernel& kernel, const Element& element,
                         const Reached& reached, const IsSpoiled& is_spoiled) {
  constexpr std::int64_t kDim = 24;
  OneHead head = OneHead::random(150, kDim, 9);
  std::vector<float> want = head.run(kernel);
  head.at(element.row, element.part, element.d) = element.value;
  std::vector<float> got = head.run(kernel);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    if (!reached(place / kDim, place % kDim)) continue;
    ASSERT_TRUE(is_spoiled(got[i])) << got[i] << " at " << i;
    got[i] = want[i] = 0;
  }
  expect_same_bits(got, want);
}

/// Angles of the rotation of a head's rows, [rows, dim / 2].
struct Angles {
  std::vector<float> cos;
  std::vector<float> sin;

  static Angles random(std::int64_t rows, std::int64_t dim, std::uint64_t seed) {
    std::mt19937_64 generator(seed);
    Angles angles;
    for (const float angle : normal_values(generator, rows * (dim / 2))) {
      angles.cos.push_back(std::cos(angle));
      angles.sin.push_back(std::sin(angle));
    }
    return angles;
  }

  /// The head with its queries and keys rotated.
  [[nodiscard]] OneHead applied_to(OneHead head) const {
    const std::int64_t half = head.dim / 2;
    for (std::int64_t row = 0; row < head.rows(); ++row) {
      for (std::int64_t d = 0; d < half; ++d) {
        const auto angle = static_cast<std::size_t>(row * half + d);
        for (const int part : {0, 1}) {
          const float a = head.at(row, part, d);
          const float b = head.at(row, part, half + d);
          const float difference = b * sin[angle];
          head.at(row, part, d) = a * cos[angle] - difference;
          head.at(row, part, half + d) = std::fma(b, cos[angle], a * sin[angle]);
        }
      }
    }
    return head;
  }
};

}  // namespace fovea::test
