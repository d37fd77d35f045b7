#pragma once

#include <cstdint>
#include <limits>

// The seam between attention and its kernels in the units of instruction sets: plain data and
// function pointers. Nothing here has an inline body, so the linker never keeps a copy compiled for
// an instruction set that the machine may lack.
namespace fovea::cpu {

/// Most queries of an attention task with a bias; every task packs the keys of its sequence once.
/// (Of the peak, 1024 tokens, 16 heads of 72, one core of an EPYC 9005: 192 0.80, 288 0.82, 384
/// 0.82; of 128: 0.82, 0.84, 0.86.)
inline constexpr std::int64_t kMaxTaskQueries = 384;
/// Keys that one step of the streaming softmax visits: scores of a strip stay in the level-1 cache.
/// (64 to 256 make no difference above 2 %.)
inline constexpr std::int64_t kKeyBlock = 128;
/// Most queries whose scores against one block of keys are in scratch at a time.
inline constexpr std::int64_t kMaxStripLanes = 48;

/// Angles of the rotary embedding: rows of head_dim / 2 cosines and sines, or null.
struct AttentionAngles {
  const float* cos = nullptr;
  const float* sin = nullptr;
};

/// Some queries of one head against all keys of their sequence. Rows of k and v are `stride` floats
/// apart. Query i does not see key j if j >= prefix_keys and j > first_query + i: its score is then
/// -infinity.
///
/// With a bias the keys are a grid, bias_rows x bias_cols, and the score of query i and key j is
///   scale * q_i . k_j + bias[i, j / bias_cols] + bias[i, bias_rows + j % bias_cols].
struct AttentionTask {
  const float* q;         ///< first query of the task
  std::int64_t q_stride;  ///< floats from one query to the next
  const float* k;         ///< first key of the sequence
  const float* v;         ///< first value of the sequence
  std::int64_t stride;
  std::int64_t num_queries;  ///< 1..kMaxTaskQueries, without a bias 1..task_queries
  std::int64_t num_keys;     ///< >= 1
  std::int64_t head_dim;     ///< multiple of 8
  float scale;
  float* out;  ///< row of the first query
  std::int64_t out_stride;
  float* scratch;               ///< scratch_floats, aligned to 64 bytes, one user at a time
  const float* bias = nullptr;  ///< [num_queries, bias_rows + bias_cols], or null: no bias
  std::int64_t bias_rows = 0;
  std::int64_t bias_cols = 0;
  AttentionAngles q_angles = {};  ///< of the first query; read in 16 bits only
  AttentionAngles k_angles = {};  ///< of the first key
  std::int64_t prefix_keys = std::numeric_limits<std::int64_t>::max();
  std::int64_t first_query = 0;  ///< number of the first query among the rows of its sequence
};

/// Most entries that a load may reach beyond the last one of a row of tables (GridBiasTask).
inline constexpr std::int64_t kMaxVectorWidth = 16;

/// Biases of queries that are neighbours in a row of a grid, against its rows and columns of keys:
///   out[i, k]        = sum_d q[i, d] * by_row[d, k]       for k < rows
///   out[i, rows + k] = sum_d q[i, d] * by_col[d, k - i]   for k < cols
/// d ascending. Of every row of the tables, kMaxVectorWidth - 1 floats beyond the last one used,
/// and up to the larger of rows and cols, can be read.
struct GridBiasTask {
  const float* q;  ///< [num_queries, head_dim]
  std::int64_t q_stride;
  std::int64_t num_queries;
  std::int64_t head_dim;
  const float* by_row;  ///< first entry of the first query, rows of tables row_stride floats apart
  const float* by_col;
  std::int64_t row_stride;
  std::int64_t col_stride;
  std::int64_t rows;
  std::int64_t cols;
  float* out;  ///< [num_queries, rows + cols]
};

/// One kind of attention: in f32, in bf16 (bf16/body.h), or in integers of 16 bits (int16/body.h).
struct AttentionKernel {
  const char* name;  ///< of its unit
  void (*run)(const AttentionTask& task);
  /// Floats of scratch that a task of so many queries needs; a multiple of 16.
  /// @param bias_entries bias_rows + bias_cols, or 0.
  std::int64_t (*scratch_floats)(std::int64_t head_dim, std::int64_t queries,
                                 std::int64_t bias_entries);
  /// Components of queries whose memory, with that of their outputs, takes less than half of a
  /// level-2 cache of 1 MB.
  std::int64_t task_components;
  /// Biases of a grid for `run`; null in 16 bits, which take none.
  void (*grid_bias)(const GridBiasTask& task) = nullptr;
  /// y[i] = 2^x[i]: the exponential of the softmax, on its own so that its error can be tested;
  /// null in 16 bits.
  void (*exp2)(const float* x, float* y, std::int64_t count) = nullptr;
};

/// Most queries of a task without a bias, which together have at most task_components: whole
/// strips, at least kMaxTaskQueries.
[[nodiscard]] std::int64_t task_queries(const AttentionKernel& kernel,
                                        std::int64_t head_dim) noexcept;

}  // namespace fovea::cpu
