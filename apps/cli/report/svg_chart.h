#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/axis.h"

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

}  // namespace fovea::cli
