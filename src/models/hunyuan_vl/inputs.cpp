// The input buffers that tell the sources of rows.
#include "models/hunyuan_vl/model.h"

namespace fovea::hunyuan_vl {

namespace {

constexpr const char* kRowSources = "row_sources";
constexpr const char* kLiveRows = "live_rows";

/// Entries of the buffer "live_rows".
enum Live : std::int64_t { kLiveRowsOut, kLiveMixed, kLiveProjected, kNumLive };

/// Begin, the tokens of a grid row by row with a newline behind each row, end.
/// @param token the first of the item. @return the entry behind the last one written.
std::int32_t* write_sources(std::int64_t token_rows, std::int64_t token_cols, std::int32_t token,
                            std::int32_t* out) {
  *out++ = kBegin;
  for (std::int64_t y = 0; y < token_rows; ++y) {
    for (std::int64_t x = 0; x < token_cols; ++x) *out++ = kNumSeparators + token++;
    *out++ = kNewline;
  }
  *out++ = kEnd;
  return out;
}

}  // namespace

std::vector<BufferDecl> RowInputs::declare(const Config&, const GraphCapacity& capacity) {
  return {{kRowSources, DType::kI32, {capacity.tokens}}, {kLiveRows, DType::kI32, {kNumLive}}};
}

void RowInputs::fill(const Config& config, std::span<const common::GridRun> runs,
                     const common::PatchTables&, InputWriter& writer) {
  std::int64_t num_rows = 0;
  for (const common::GridRun& run : runs) num_rows += run.plan.spec.out_rows;
  auto* source = writer.claim(kRowSources, num_rows).as<std::int32_t>();
  auto* live = writer.claim(kLiveRows, kNumLive).as<std::int32_t>();
  std::int32_t token = 0;
  for (const common::GridRun& run : runs) {
    const std::int64_t rows = run.plan.grid[1] / config.grid.spatial_merge_size;
    const std::int64_t cols = run.plan.grid[2] / config.grid.spatial_merge_size;
    source = write_sources(rows, cols, token, source);
    token += static_cast<std::int32_t>(rows * cols);
  }
  live[kLiveRowsOut] = static_cast<std::int32_t>(num_rows);
  live[kLiveMixed] = token + kNumSeparators;
  live[kLiveProjected] = token + 1;
}

RowInputs RowInputs::of(const NamedTensors& in) {
  const auto* live = in[kLiveRows].as<std::int32_t>();
  return {.row_sources = in[kRowSources],
          .rows = {live + kLiveRowsOut},
          .mixed_rows = {live + kLiveMixed},
          .projected_rows = {live + kLiveProjected}};
}

}  // namespace fovea::hunyuan_vl
