#pragma once

#include <cstdint>
#include <vector>

namespace fovea::cli {

enum class Scale : std::uint8_t { kLinear, kLog };

/// Maps values of one axis to pixels: `min` to `from_px`, `max` to `to_px`. Of a logarithmic axis
/// values, min and max are > 0.
class Axis {
 public:
  Axis(Scale scale, double min, double max, double from_px, double to_px)
      : scale_(scale), min_(place(min)), max_(place(max)), from_px_(from_px), to_px_(to_px) {}

  [[nodiscard]] double operator()(double value) const;

 private:
  [[nodiscard]] double place(double value) const;

  Scale scale_;
  double min_;
  double max_;
  double from_px_;
  double to_px_;
};

/// Round numbers (1, 2 or 5 times a power of ten) that cover [0, max] with about `count` steps.
[[nodiscard]] std::vector<double> linear_ticks(double max, int count);
/// The numbers 1, 2, 5 times powers of ten from the last one <= min to the first one >= max.
/// @param min > 0.
[[nodiscard]] std::vector<double> log_ticks(double min, double max);

}  // namespace fovea::cli
