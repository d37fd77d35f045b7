// Attention between two lists of rows on the CPU: queries on all threads, each with its heads one
// after the other.
#include "ops/cpu/attention/attention.h"

#include <algorithm>

#include "core/check.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/rowwise/row_loop.h"

namespace fovea::cpu {

namespace {

/// Offsets of sequences, read when the work runs.
struct Offsets {
  const std::int32_t* queries;
  const std::int32_t* keys;
  std::int64_t seqs;
};

/// @throws Error(kInternal) for offsets that decrease or leave their rows.
void check_offsets(const char* name, const std::int32_t* offsets, std::int64_t seqs,
                   std::int64_t rows) {
  FOVEA_CHECK(
      offsets[0] >= 0 && offsets[seqs] <= rows && std::is_sorted(offsets, offsets + seqs + 1),
      kInternal, "cross_attention: ", name, " must ascend within [0, ", rows, "]");
}

/// All heads of query `row`, of sequence `seq`.
void attend_row(const ops::CrossAttentionArgs& args, const Offsets& offsets, std::int64_t row,
                std::int64_t seq, AttendQuery attend) {
  const std::int64_t width = args.num_heads * args.head_dim;
  const float* const keys = args.kv.as<float>() + offsets.keys[seq] * 2 * width;
  for (std::int64_t head = 0; head < args.num_heads; ++head) {
    const std::int64_t column = head * args.head_dim;
    attend({.q = args.q.as<float>() + row * width + column,
            .k = keys + column,
            .v = keys + width + column,
            .num_keys = offsets.keys[seq + 1] - offsets.keys[seq],
            .stride = 2 * width,
            .head_dim = args.head_dim,
            .scale = args.scale,
            .out = args.out.as<float>() + row * width + column});
  }
}

}  // namespace

void cross_attention(Stream& stream, const ops::CrossAttentionArgs& args, AttendQuery attend) {
  static_cast<CpuStream&>(stream).submit([args, attend](ThreadPool& pool) {
    const Offsets offsets{args.cu_queries.as<std::int32_t>(), args.cu_keys.as<std::int32_t>(),
                          count_live(args.seqs, args.cu_queries.shape[0] - 1)};
    if (offsets.seqs == 0) return;
    check_offsets("cu_queries", offsets.queries, offsets.seqs, args.q.shape[0]);
    check_offsets("cu_keys", offsets.keys, offsets.seqs, args.kv.shape[0]);
    const std::int64_t begin = offsets.queries[0];
    const std::int64_t rows = offsets.queries[offsets.seqs] - begin;
    const std::int64_t keys = (offsets.keys[offsets.seqs] - offsets.keys[0]) / offsets.seqs;
    const std::int64_t floats = 2 * args.num_heads * args.head_dim * (keys + 1);
    for_row_ranges(pool, rows, floats, [&](std::int64_t first, std::int64_t last) {
      const auto* const ends = offsets.queries + 1;
      std::int64_t seq = std::upper_bound(ends, ends + offsets.seqs, begin + first) - ends;
      for (std::int64_t row = begin + first; row < begin + last; ++row) {
        while (ends[seq] <= row) ++seq;
        attend_row(args, offsets, row, seq, attend);
      }
    });
  });
}

}  // namespace fovea::cpu
