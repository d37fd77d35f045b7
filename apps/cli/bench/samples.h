#pragma once

#include <span>

#include "core/json_writer.h"

namespace fovea::cli {

/// The figures that are reported of repeated measurements.
struct Summary {
  double mean = 0;
  double median = 0;
  double p90 = 0;
  double p99 = 0;
  double min = 0;
  double max = 0;
};

/// Value at rank (n - 1) * percent / 100 of the sorted samples, linear between neighbours; 0
/// without samples. Source: numpy.percentile's default, which vLLM's benchmarks use.
[[nodiscard]] double percentile(std::span<const double> samples, double percent);

/// Square root of the mean squared distance from the mean; 0 without samples. Source: numpy.std's
/// default, which divides by n.
[[nodiscard]] double population_std(std::span<const double> samples);

[[nodiscard]] Summary summarize(std::span<const double> samples);

/// The fields under their names.
[[nodiscard]] JsonObject to_json(const Summary& summary);

}  // namespace fovea::cli
