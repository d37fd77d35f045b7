#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fovea::cli {

/// One colour of a stacked bar chart.
struct BarSeries {
  std::string name;
  std::vector<double> values;  ///< one per bar, >= 0
};

/// Horizontal bars, one per label, each made of the values of all series side by side.
struct BarChart {
  std::string title;
  std::string unit;  ///< of the horizontal axis
  std::vector<std::string> labels;
  std::vector<BarSeries> series;
};

/// One line of a line chart.
struct LineSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< ascending by x
};

enum class Scale { kLinear, kLog };

/// Lines with markers. Logarithmic axes take positive values only; other points are left out.
struct LineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  Scale x_scale = Scale::kLinear;
  Scale y_scale = Scale::kLinear;
  std::vector<LineSeries> series;
};

/// Draws a chart as a complete SVG document: white ground, dark text, axes with round numbers and
/// units, a legend, colours that colour-blind readers can tell apart. Needs no fonts, scripts or
/// other files.
[[nodiscard]] std::string to_svg(const BarChart& chart);
[[nodiscard]] std::string to_svg(const LineChart& chart);

/// Round numbers (1, 2 or 5 times a power of ten) that cover [0, max] with about `count` steps.
[[nodiscard]] std::vector<double> linear_ticks(double max, int count);
/// The numbers 1, 2, 5 times powers of ten from the last one <= min to the first one >= max.
/// @param min > 0.
[[nodiscard]] std::vector<double> log_ticks(double min, double max);

}  // namespace fovea::cli
