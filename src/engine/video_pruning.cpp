// Rows of videos that repeat the frame before are dropped after the tower (EVS).
#include "engine/video_pruning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/row_dtype.h"
#include "core/stopwatch.h"
#include "models/registry.h"

namespace fovea {

namespace {

/// More than any dissimilarity: the first frame stays whole.
constexpr float kFirstFrame = 255.0F;
constexpr double kLeastNorm = 1e-8;

/// In several sums side by side, which the compiler makes one vector of.
double dot(std::span<const float> a, std::span<const float> b) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::size_t at = 0;
  for (; at + kLanes <= a.size(); at += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<double>(a[at + lane]) * static_cast<double>(b[at + lane]);
    }
  }
  for (; at < a.size(); ++at) sums[0] += static_cast<double>(a[at]) * static_cast<double>(b[at]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

/// A row, widened, and its norm.
struct WideRow {
  std::vector<float> values;
  double norm = 0;

  void read(const Embedding& video, std::int64_t row) {
    const DType dtype = to_dtype(video.dtype);
    values.resize(static_cast<std::size_t>(video.width));
    widen_to_f32(dtype,
                 video.data.data() + static_cast<std::size_t>(row * video.width) * size_of(dtype),
                 values.data(), values.size());
    norm = std::max(std::sqrt(dot(values, values)), kLeastNorm);
  }
};

/// 1 - cosine of every row and the one in its place in the frame before. Rounded to f32, so that
/// equal rows have dissimilarity 0 exactly and keep their order.
std::vector<float> dissimilarities(const Embedding& video, std::int64_t rows_per_frame,
                                   ThreadPool& pool) {
  std::vector<float> result(static_cast<std::size_t>(video.rows), kFirstFrame);
  pool.parallel_for(rows_per_frame, [&](std::int64_t place, int) {
    WideRow before;
    WideRow row;
    before.read(video, place);
    for (std::int64_t at = place + rows_per_frame; at < video.rows; at += rows_per_frame) {
      row.read(video, at);
      const double cosine = dot(row.values, before.values) / (row.norm * before.norm);
      result[static_cast<std::size_t>(at)] = 1.0F - static_cast<float>(cosine);
      std::swap(row, before);
    }
  });
  return result;
}

/// Indices of the `count` largest values, ascending; of equal values the first.
std::vector<std::int64_t> largest(std::span<const float> values, std::int64_t count) {
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::int64_t index) {
    return values[static_cast<std::size_t>(index)];
  });
  order.resize(static_cast<std::size_t>(count));
  std::ranges::sort(order);
  return order;
}

}  // namespace

void check_video_pruning(std::string_view architecture, double rate) {
  FOVEA_CHECK(rate >= 0 && rate < 1, kInvalidArgument,
              "video_pruning_rate must be at least 0 and less than 1, got ", rate);
  if (rate == 0) return;
  const ModelFamily& family = find_family(architecture);
  if (std::ranges::find(family.prunable, architecture) != family.prunable.end()) return;
  std::string prunable;
  for (const ModelFamily* const other : model_families()) {
    for (const std::string_view name : other->prunable) {
      prunable += cat(prunable.empty() ? "" : ", ", name);
    }
  }
  FOVEA_CHECK(false, kUnsupported, "video_pruning_rate: videos of ", architecture, " (family ",
              family.name, ") are not pruned, only those of ", prunable);
}

std::int64_t num_retained(std::int64_t rows, std::int64_t num_frames, double rate) {
  const auto wanted = static_cast<std::int64_t>(static_cast<double>(rows) * (1 - rate));
  return std::max(rows / num_frames, wanted);
}

void prune_video(Embedding& video, double rate, ThreadPool& pool) {
  const Stopwatch watch;
  const std::int64_t num_frames = video.grid_thw ? (*video.grid_thw)[0] : 0;
  FOVEA_CHECK(num_frames > 0 && video.rows % num_frames == 0, kInternal, video.name, ": ",
              video.rows, " rows are no ", num_frames, " frames");
  const std::vector<float> values = dissimilarities(video, video.rows / num_frames, pool);
  video.retained = largest(values, num_retained(video.rows, num_frames, rate));
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
