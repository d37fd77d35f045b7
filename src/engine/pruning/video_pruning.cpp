// Rows of videos are dropped after the tower: who may, how many, and how those that stay move up.
#include "engine/pruning/video_pruning.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "core/check.h"
#include "core/row_dtype.h"
#include "core/stopwatch.h"
#include "engine/pruning/methods.h"
#include "fovea/option_table.h"
#include "models/registry.h"

namespace fovea {

namespace {

std::span<const std::string_view> prunable(const ModelFamily& family, PruningMethod method) {
  return method == PruningMethod::kEvs ? family.prunable.evs : family.prunable.vidcom2;
}

bool is_prunable(const ModelFamily& family, std::string_view architecture, PruningMethod method) {
  const auto names = prunable(family, method);
  return std::ranges::find(names, architecture) != names.end();
}

}  // namespace

PruningRule pruning_of(const EngineOptions& options) {
  return {.rate = options.video_pruning_rate, .method = options.video_pruning_method};
}

void check_video_pruning(const ModelFamily& family, std::string_view architecture,
                         const PruningRule& rule) {
  FOVEA_CHECK(rule.rate >= 0 && rule.rate < 1, kInvalidArgument,
              "video_pruning_rate must be at least 0 and less than 1, got ", rule.rate);
  if (rule.rate == 0 || is_prunable(family, architecture, rule.method)) return;
  std::string names;
  for (const ModelFamily* const other : model_families()) {
    for (const std::string_view name : prunable(*other, rule.method)) {
      names += cat(names.empty() ? "" : ", ", name);
    }
  }
  FOVEA_CHECK(false, kUnsupported, "video_pruning_rate: videos of ", architecture, " (family ",
              family.name, ") are not pruned by ", value_name(rule.method), ", only those of ",
              names);
}

std::int64_t num_retained(std::int64_t rows, std::int64_t num_frames, const PruningRule& rule) {
  const auto wanted = static_cast<std::int64_t>(static_cast<double>(rows) * (1 - rule.rate));
  return std::max(rule.method == PruningMethod::kEvs ? rows / num_frames : num_frames, wanted);
}

void prune_video(Embedding& video, const PruningRule& rule, ThreadPool& pool) {
  const Stopwatch watch;
  const std::int64_t num_frames = video.grid_thw ? (*video.grid_thw)[0] : 0;
  FOVEA_CHECK(num_frames > 0 && video.rows % num_frames == 0, kInternal, video.name, ": ",
              video.rows, " rows are no ", num_frames, " frames");
  const PrunedVideo whole{
      .rows = video, .num_frames = num_frames, .count = num_retained(video.rows, num_frames, rule)};
  video.retained = rule.method == PruningMethod::kEvs ? kept_by_evs(whole, pool)
                                                      : kept_by_vidcom2(whole, rule.rate, pool);
  const std::size_t row_bytes =
      static_cast<std::size_t>(video.width) * size_of(to_dtype(video.dtype));
  std::byte* to = video.data.data();
  for (const std::int64_t row : *video.retained) {  // never behind the row it moves to
    const std::byte* const from = video.data.data() + static_cast<std::size_t>(row) * row_bytes;
    if (from != to) std::memcpy(to, from, row_bytes);
    to += row_bytes;
  }
  video.rows = std::ssize(*video.retained);
  video.data =
      RowBytes(std::span(video.data).first(static_cast<std::size_t>(video.rows) * row_bytes));
  video.times.output_ms += watch.elapsed_ms();
}

}  // namespace fovea
