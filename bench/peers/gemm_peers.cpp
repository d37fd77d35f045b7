// GEMM with oneDNN 2.x (weights in the layout it asks for) and with libxsmm (its small kernels on
// panels of 64 columns), both in f32: neither multiplies f32 by bf16.
#include "peers/gemm_peers.h"

#include <libxsmm.h>
#include <omp.h>

#include <algorithm>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

namespace fovea::bench {

namespace {

using Matmul = std::pair<dnnl::matmul, std::unordered_map<int, dnnl::memory>>;

GemmRun prepare_onednn(const GemmProblem& problem, std::size_t copies, ThreadPool& pool) {
  using dnnl::memory;
  constexpr auto kF32 = memory::data_type::f32;
  omp_set_num_threads(pool.size());
  const auto engine = std::make_shared<dnnl::engine>(dnnl::engine::kind::cpu, 0);
  const auto stream = std::make_shared<dnnl::stream>(*engine);
  const memory::dim rows = problem.rows;
  const memory::dim in = problem.in_features;
  const memory::dim out = problem.out_features;
  const memory::desc x({rows, in}, kF32, memory::format_tag::ab);
  const memory::desc stored({in, out}, kF32, memory::format_tag::ba);
  const memory::desc packed({in, out}, kF32, memory::format_tag::any);
  const memory::desc bias({1, out}, kF32, memory::format_tag::ab);
  const memory::desc result({rows, out}, kF32, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc desc({x, packed, bias, result}, *engine);
  const dnnl::matmul matmul(desc);
  const auto argument = [&](const memory::desc& layout, const float* data) {
    return memory(layout, *engine, const_cast<float*>(data));
  };
  memory weight = argument(stored, problem.weight);
  const auto calls = std::make_shared<std::vector<Matmul>>();
  for (std::size_t i = 0; i < copies; ++i) {
    memory copy(desc.weights_desc(), *engine);
    dnnl::reorder(weight, copy).execute(*stream, weight, copy);
    calls->push_back({matmul,
                      {{DNNL_ARG_SRC, argument(x, problem.x)},
                       {DNNL_ARG_WEIGHTS, copy},
                       {DNNL_ARG_BIAS, argument(bias, problem.bias)},
                       {DNNL_ARG_DST, argument(result, problem.out)}}});
  }
  stream->wait();
  return [engine, stream, calls](std::size_t index) {
    const auto& [primitive, arguments] = (*calls)[index];
    primitive.execute(*stream, arguments);
    stream->wait();
  };
}

constexpr std::int64_t kXsmmColumns = 64;

std::vector<float> xsmm_panels(const GemmProblem& problem) {
  const std::int64_t panels = (problem.out_features + kXsmmColumns - 1) / kXsmmColumns;
  std::vector<float> packed(static_cast<std::size_t>(panels * kXsmmColumns * problem.in_features));
  for (std::int64_t n = 0; n < problem.out_features; ++n) {
    for (std::int64_t k = 0; k < problem.in_features; ++k) {
      const std::int64_t row = n / kXsmmColumns * problem.in_features + k;
      packed[static_cast<std::size_t>(row * kXsmmColumns + n % kXsmmColumns)] =
          problem.weight[n * problem.in_features + k];
    }
  }
  return packed;
}

/// One block of rows times one panel, then the bias while the tile is in the cache. libxsmm counts
/// columns first, so its m and n are our columns and rows.
void run_xsmm_task(const GemmProblem& problem, const float* panel, std::int64_t first_row,
                   std::int64_t num_rows, std::int64_t first_column) {
  constexpr std::int64_t kBlockK = 1152;
  const std::int64_t columns = std::min(kXsmmColumns, problem.out_features - first_column);
  float* const out = problem.out + first_row * problem.out_features + first_column;
  for (std::int64_t k = 0; k < problem.in_features; k += kBlockK) {
    const std::int64_t depth = std::min(kBlockK, problem.in_features - k);
    const int panel_stride = kXsmmColumns;
    const auto x_stride = static_cast<int>(problem.in_features);
    const auto out_stride = static_cast<int>(problem.out_features);
    const float alpha = 1.0f;
    const float beta = k > 0 ? 1.0f : 0.0f;
    const auto kernel = libxsmm_smmdispatch(static_cast<int>(columns), static_cast<int>(num_rows),
                                            static_cast<int>(depth), &panel_stride, &x_stride,
                                            &out_stride, &alpha, &beta, nullptr, nullptr);
    kernel(panel + k * kXsmmColumns, problem.x + first_row * problem.in_features + k, out);
  }
  for (std::int64_t r = 0; r < num_rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      out[r * problem.out_features + c] += problem.bias[first_column + c];
  }
}

GemmRun prepare_libxsmm(const GemmProblem& problem, std::size_t copies, ThreadPool& pool) {
  const auto weights =
      std::make_shared<std::vector<std::vector<float>>>(copies, xsmm_panels(problem));
  return [problem, weights, &pool](std::size_t index) {
    const std::int64_t most_rows = pool.size() == 1 ? 256 : 64;
    const std::int64_t panels = (problem.out_features + kXsmmColumns - 1) / kXsmmColumns;
    const std::int64_t row_blocks = (problem.rows + most_rows - 1) / most_rows;
    pool.parallel_for(panels * row_blocks, [&](std::int64_t task, int) {
      const std::int64_t panel = task / row_blocks;
      const std::int64_t row = task % row_blocks * most_rows;
      run_xsmm_task(problem, (*weights)[index].data() + panel * kXsmmColumns * problem.in_features,
                    row, std::min(most_rows, problem.rows - row), panel * kXsmmColumns);
    });
  };
}

}  // namespace

std::vector<GemmPeer> gemm_peers() {
  return {{"oneDNN", prepare_onednn}, {"libxsmm", prepare_libxsmm}};
}

}  // namespace fovea::bench
