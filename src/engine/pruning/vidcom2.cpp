// VidCom2: rows like the mean of their frame and of the video go, fewer of frames that are unlike
// the video. Steps are numbered as in docs/reference/qwen_glm.md, "Pruned videos".
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "engine/pruning/methods.h"
#include "engine/pruning/wide_rows.h"

namespace fovea {

namespace {

constexpr double kLeastLength = 1e-12;
constexpr double kTemperature = 0.01;

/// Step 1: the half of the columns that varies least over the rows, ascending.
std::vector<std::int64_t> steady_columns(const PrunedVideo& video, ThreadPool& pool) {
  constexpr std::int64_t kBlock = 256;  // columns of a task
  const std::int64_t width = video.rows.width;
  std::vector<double> variances(static_cast<std::size_t>(width));
  pool.parallel_for((width + kBlock - 1) / kBlock, [&](std::int64_t block, int) {
    const std::int64_t begin = block * kBlock;
    const auto columns = static_cast<std::size_t>(std::min(kBlock, width - begin));
    // Differences to the first row: what never changes has variance 0 exactly.
    std::vector<float> first(columns);
    std::vector<float> row(columns);
    std::vector<double> sums(columns);
    std::vector<double> squares(columns);
    read_columns(video.rows, 0, begin, first);
    for (std::int64_t at = 1; at < video.rows.rows; ++at) {
      read_columns(video.rows, at, begin, row);
      for (std::size_t i = 0; i < columns; ++i) {
        const double difference = static_cast<double>(row[i]) - static_cast<double>(first[i]);
        sums[i] += difference;
        squares[i] += difference * difference;
      }
    }
    const auto rows = static_cast<double>(video.rows.rows);
    for (std::size_t i = 0; i < columns; ++i) {
      const double mean = sums[i] / rows;
      variances[static_cast<std::size_t>(begin) + i] = squares[i] / rows - mean * mean;
    }
  });
  std::vector<std::int64_t> columns = sorted_indices(variances, std::less{});
  columns.resize(std::max<std::size_t>(1, columns.size() / 2));
  std::ranges::sort(columns);
  return columns;
}

/// Step 3: a sum of Gaussian kernels of several widths. @param distance squared.
double likeness(double distance) {
  double sum = 0;
  for (double width = 0.125; width <= 2; width *= 2) sum += std::exp(-distance / (2 * width));
  return sum;
}

/// Of every row, how alike it is to the mean of the video and to that of its frame.
struct Likeness {
  std::vector<double> to_video;
  std::vector<double> to_frame;
};

/// The rows of one frame at the steady columns, of length 1.
class Features {
 public:
  Features(const PrunedVideo& video, std::span<const std::int64_t> columns)
      : video_(video),
        columns_(columns),
        row_(static_cast<std::size_t>(video.rows.width)),
        values_(static_cast<std::size_t>(video.rows_per_frame()) * columns.size()) {}

  /// Step 2: f.
  void read(std::int64_t frame) {
    for (std::int64_t place = 0; place < video_.rows_per_frame(); ++place) {
      read_columns(video_.rows, frame * video_.rows_per_frame() + place, 0, row_);
      const std::span<float> to = row(place);
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = row_[static_cast<std::size_t>(columns_[i])];
      }
      const double norm = std::max(std::sqrt(dot(to, to)), kLeastLength);
      for (float& value : to) value = static_cast<float>(static_cast<double>(value) / norm);
    }
  }

  /// [columns]
  [[nodiscard]] std::vector<double> mean() {
    std::vector<double> sums(columns_.size());
    for (std::int64_t place = 0; place < video_.rows_per_frame(); ++place) {
      const std::span<const float> from = row(place);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(from[i]);
    }
    for (double& sum : sums) sum /= static_cast<double>(video_.rows_per_frame());
    return sums;
  }

  /// Likeness of each row to `mean`, to `out` [rows_per_frame].
  void compare(std::span<const double> mean, std::span<double> out) {
    for (std::size_t place = 0; place < out.size(); ++place) {
      const std::span<const float> from = row(static_cast<std::int64_t>(place));
      double distance = 0;
      for (std::size_t i = 0; i < from.size(); ++i) {
        const double difference = static_cast<double>(from[i]) - mean[i];
        distance += difference * difference;
      }
      out[place] = likeness(distance);
    }
  }

 private:
  [[nodiscard]] std::span<float> row(std::int64_t place) {
    return std::span(values_).subspan(static_cast<std::size_t>(place) * columns_.size(),
                                      columns_.size());
  }

  const PrunedVideo& video_;
  std::span<const std::int64_t> columns_;
  std::vector<float> row_;     // one at all columns
  std::vector<float> values_;  // [rows_per_frame, columns]
};

std::span<double> of_frame(std::vector<double>& values, std::int64_t frame, std::int64_t rows) {
  return std::span(values).subspan(static_cast<std::size_t>(frame * rows),
                                   static_cast<std::size_t>(rows));
}

/// Steps 2 and 3.
Likeness compare_rows(const PrunedVideo& video, ThreadPool& pool) {
  const std::vector<std::int64_t> columns = steady_columns(video, pool);
  const auto rows = static_cast<std::size_t>(video.rows.rows);
  Likeness result{std::vector<double>(rows), std::vector<double>(rows)};
  std::vector<std::vector<double>> means(static_cast<std::size_t>(video.num_frames));
  pool.parallel_for(video.num_frames, [&](std::int64_t frame, int) {
    Features features(video, columns);
    features.read(frame);
    std::vector<double>& mean = means[static_cast<std::size_t>(frame)];
    mean = features.mean();
    features.compare(mean, of_frame(result.to_frame, frame, video.rows_per_frame()));
  });
  std::vector<double> whole(columns.size());
  for (const std::vector<double>& mean : means) {
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] += mean[i];
  }
  for (double& value : whole) value /= static_cast<double>(video.num_frames);
  pool.parallel_for(video.num_frames, [&](std::int64_t frame, int) {
    Features features(video, columns);
    features.read(frame);
    features.compare(whole, of_frame(result.to_video, frame, video.rows_per_frame()));
  });
  return result;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Step 4: rows that each frame is to keep.
std::vector<std::int64_t> shares(const PrunedVideo& video, std::vector<double> to_video,
                                 double rate) {
  const std::int64_t rows = video.rows_per_frame();
  std::vector<double> weights;  // z, then p
  for (std::int64_t frame = 0; frame < video.num_frames; ++frame) {
    weights.push_back(-mean_of(of_frame(to_video, frame, rows)));
  }
  const double most = *std::ranges::max_element(weights);
  for (double& weight : weights) weight = std::exp((weight - most) / kTemperature);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  const double mean = mean_of(weights);
  std::vector<std::int64_t> result;
  for (const double weight : weights) {
    const double share = std::min(1.0, (1 - rate) * (1 + weight - mean));
    const auto kept = static_cast<std::int64_t>(std::nearbyint(share * static_cast<double>(rows)));
    result.push_back(std::clamp<std::int64_t>(kept, 1, rows));
  }
  return result;
}

}  // namespace

std::vector<std::int64_t> kept_by_vidcom2(const PrunedVideo& video, double rate, ThreadPool& pool) {
  Likeness alike = compare_rows(video, pool);
  const std::vector<std::int64_t> wanted = shares(video, alike.to_video, rate);
  std::vector<float> scores(alike.to_video.size());  // rounded: equal rows keep their order
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = static_cast<float>(alike.to_video[i] + alike.to_frame[i]);
  }
  // Step 5: the rows with the smallest scores of each frame, in the order of the scores of all,
  // then the others in that order; the first of these stay.
  const std::vector<std::int64_t> order = sorted_indices(scores, std::less{});
  std::vector<std::int64_t> taken(static_cast<std::size_t>(video.num_frames));
  std::vector<std::int64_t> kept;
  std::vector<std::int64_t> others;
  for (const std::int64_t row : order) {
    const auto frame = static_cast<std::size_t>(row / video.rows_per_frame());
    (taken[frame]++ < wanted[frame] ? kept : others).push_back(row);
  }
  kept.insert(kept.end(), others.begin(), others.end());
  kept.resize(static_cast<std::size_t>(video.count));
  std::ranges::sort(kept);
  return kept;
}

}  // namespace fovea
