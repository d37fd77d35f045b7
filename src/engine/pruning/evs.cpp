// Efficient video sampling (EVS): what repeats the frame before goes.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "engine/pruning/methods.h"
#include "engine/pruning/wide_rows.h"

namespace fovea {

namespace {

/// More than any dissimilarity: the first frame stays whole.
constexpr float kFirstFrame = 255.0F;
constexpr double kLeastNorm = 1e-8;

/// A row and its norm.
struct WideRow {
  std::vector<float> values;
  double norm = 0;

  void read(const Embedding& video, std::int64_t row) {
    values.resize(static_cast<std::size_t>(video.width));
    read_columns(video, row, 0, values);
    norm = std::max(std::sqrt(dot(values, values)), kLeastNorm);
  }
};

/// 1 - cosine of every row and the one in its place in the frame before. Rounded to f32, so that
/// equal rows have dissimilarity 0 exactly and keep their order.
std::vector<float> dissimilarities(const PrunedVideo& video, ThreadPool& pool) {
  std::vector<float> result(static_cast<std::size_t>(video.rows.rows), kFirstFrame);
  pool.parallel_for(video.rows_per_frame(), [&](std::int64_t place, int) {
    WideRow before;
    WideRow row;
    before.read(video.rows, place);
    for (std::int64_t at = place + video.rows_per_frame(); at < video.rows.rows;
         at += video.rows_per_frame()) {
      row.read(video.rows, at);
      const double cosine = dot(row.values, before.values) / (row.norm * before.norm);
      result[static_cast<std::size_t>(at)] = 1.0F - static_cast<float>(cosine);
      std::swap(row, before);
    }
  });
  return result;
}

}  // namespace

std::vector<std::int64_t> kept_by_evs(const PrunedVideo& video, ThreadPool& pool) {
  std::vector<std::int64_t> kept = sorted_indices(dissimilarities(video, pool), std::greater{});
  kept.resize(static_cast<std::size_t>(video.count));
  std::ranges::sort(kept);
  return kept;
}

}  // namespace fovea
