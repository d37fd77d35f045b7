// Axes of charts and their ticks.
#include "report/axis.h"

#include <cmath>

namespace fovea::cli {
namespace {

double round_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

double Axis::operator()(double value) const {
  const double span = max_ > min_ ? max_ - min_ : 1.0;
  return from_px_ + (place(value) - min_) / span * (to_px_ - from_px_);
}

double Axis::place(double value) const { return scale_ == Scale::kLog ? std::log(value) : value; }

std::vector<double> linear_ticks(double max, int count) {
  if (!(max > 0)) max = 1;
  const double step = round_step(max / count);
  const auto steps = static_cast<std::int64_t>(std::ceil(max / step - 1e-9));
  std::vector<double> ticks;
  for (std::int64_t i = 0; i <= steps; ++i) ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::vector<double> log_ticks(double min, double max) {
  std::vector<double> ticks;
  for (double power = std::pow(10.0, std::floor(std::log10(min)));; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * power;
      if (tick <= min * (1 + 1e-9)) ticks.clear();  // a later start is nearer
      ticks.push_back(tick);
      if (tick >= max * (1 - 1e-9)) return ticks;
    }
  }
}

}  // namespace fovea::cli
