// Statistics of repeated measurements.
#include "bench/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace fovea::cli {
namespace {

/// @param samples not empty.
double mean_of(std::span<const double> samples) {
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

}  // namespace

double percentile(std::span<const double> samples, double percent) {
  if (samples.empty()) return 0;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double rank = static_cast<double>(sorted.size() - 1) * percent / 100.0;
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - std::floor(rank)) * (sorted[above] - sorted[below]);
}

double population_std(std::span<const double> samples) {
  if (samples.empty()) return 0;
  const double mean = mean_of(samples);
  const double squares = std::accumulate(
      samples.begin(), samples.end(), 0.0,
      [&](double sum, double sample) { return sum + (sample - mean) * (sample - mean); });
  return std::sqrt(squares / static_cast<double>(samples.size()));
}

Summary summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  const auto [min, max] = std::minmax_element(samples.begin(), samples.end());
  return {.mean = mean_of(samples),
          .median = percentile(samples, 50),
          .p90 = percentile(samples, 90),
          .p99 = percentile(samples, 99),
          .min = *min,
          .max = *max};
}

JsonObject to_json(const Summary& summary) {
  return {{"mean", summary.mean}, {"median", summary.median}, {"p90", summary.p90},
          {"p99", summary.p99},   {"min", summary.min},       {"max", summary.max}};
}

}  // namespace fovea::cli
