// Charts: what stands where, in pixels of a canvas of fixed size.
#include "report/svg_chart.h"

#include <algorithm>
#include <cmath>

#include "report/svg_canvas.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr double kMarginPx = 20;
constexpr double kLegendSwatchPx = 12;
constexpr double kLegendRowPx = 20;

/// Shortest text of a tick: no zeros at the end.
std::string number(double value) {
  std::string text = fixed(value, 3);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// Draws swatches and names from left to right, in as many rows as `right` asks for. Returns the y
/// below the legend.
template <class Series>
double draw_legend(Canvas& canvas, Point at, double right, const std::vector<Series>& series) {
  const double left = at.x;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const double entry_width = kLegendSwatchPx + 6 + width_of(series[i].name) + 16;
    if (at.x > left && at.x + entry_width > right) at = {left, at.y + kLegendRowPx};
    canvas.rect(at, kLegendSwatchPx, kLegendSwatchPx, color_of(i));
    canvas.text({at.x + kLegendSwatchPx + 6, at.y + kLegendSwatchPx - 2}, "start", series[i].name);
    at.x += entry_width;
  }
  return at.y + kLegendRowPx;
}

/// Title and legend; returns the y below them.
template <class Chart>
double draw_heading(Canvas& canvas, const Chart& chart, double right) {
  canvas.text({kMarginPx, kMarginPx + kTitlePx}, "start", chart.title, kTitlePx);
  return draw_legend(canvas, {kMarginPx, kMarginPx + kTitlePx + 16}, right, chart.series);
}

// --- bars ---

constexpr double kBarPx = 18;
constexpr double kBarStepPx = 24;
constexpr double kBarPlotPx = 560;
constexpr double kBarTotalPx = 80;  // room for the number at the end of a bar

/// Sum over the series, one per bar.
std::vector<double> totals_of(const BarChart& chart) {
  std::vector<double> totals(chart.labels.size(), 0.0);
  for (const BarSeries& series : chart.series) {
    for (std::size_t bar = 0; bar < totals.size(); ++bar) totals[bar] += series.values.at(bar);
  }
  return totals;
}

double widest(const std::vector<std::string>& labels) {
  double width = 0;
  for (const std::string& label : labels) width = std::max(width, width_of(label));
  return width;
}

/// Draws the parts of a bar from x(0) on; returns the x at its end.
double draw_bar(Canvas& canvas, const BarChart& chart, std::size_t bar, const Axis& x, double y) {
  double sum = 0;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    const double value = chart.series[s].values[bar];
    if (value <= 0) continue;
    canvas.rect({x(sum), y}, x(sum + value) - x(sum), kBarPx, color_of(s),
                chart.series[s].name + ": " + fixed(value, 3));
    sum += value;
  }
  return x(sum);
}

// --- lines ---

constexpr double kLineChartPx = 760;
constexpr double kLinePlotHeightPx = 340;
constexpr double kLineLeftPx = 80;
constexpr double kLineRightPx = kLineChartPx - 30;

bool drawable(const LineChart& chart, const std::pair<double, double>& point) {
  const bool x_fits = chart.x_scale == Scale::kLinear || point.first > 0;
  const bool y_fits = chart.y_scale == Scale::kLinear || point.second > 0;
  return x_fits && y_fits && std::isfinite(point.first) && std::isfinite(point.second);
}

/// Values of one coordinate over all drawable points, sorted, each once.
std::vector<double> values_of(const LineChart& chart, double std::pair<double, double>::*member) {
  std::vector<double> values;
  for (const LineSeries& series : chart.series) {
    for (const auto& point : series.points) {
      if (drawable(chart, point)) values.push_back(point.*member);
    }
  }
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<double> ticks_of(Scale scale, const std::vector<double>& values) {
  constexpr int kSteps = 6;
  if (values.empty()) return linear_ticks(1, kSteps);
  return scale == Scale::kLog ? log_ticks(values.front(), values.back())
                              : linear_ticks(values.back(), kSteps);
}

/// The measured positions themselves when they are few: 64, 256 and 1024 patches say more than
/// round numbers.
std::vector<double> x_ticks_of(const LineChart& chart, const std::vector<double>& values) {
  constexpr std::size_t kMostNamed = 10;
  if (values.empty() || values.size() > kMostNamed) return ticks_of(chart.x_scale, values);
  return values;
}

/// An axis with the numbers along it.
struct TickedAxis {
  Axis at;
  std::vector<double> ticks;
};

/// @param top, bottom ends of the vertical axis, in pixels.
void draw_axes(Canvas& canvas, const LineChart& chart, const TickedAxis& x, const TickedAxis& y,
               double top, double bottom) {
  for (const double tick : y.ticks) {
    canvas.line({kLineLeftPx, y.at(tick)}, {kLineRightPx, y.at(tick)}, kGrid);
    canvas.text({kLineLeftPx - 8, y.at(tick) + 4}, "end", number(tick));
  }
  for (const double tick : x.ticks) {
    canvas.line({x.at(tick), bottom}, {x.at(tick), bottom + 5}, kInk);
    canvas.text({x.at(tick), bottom + 20}, "middle", number(tick));
  }
  canvas.line({kLineLeftPx, bottom}, {kLineRightPx, bottom}, kInk);
  canvas.line({kLineLeftPx, top}, {kLineLeftPx, bottom}, kInk);
  canvas.text({(kLineLeftPx + kLineRightPx) / 2, bottom + 42}, "middle", chart.x_label);
  canvas.vertical_text({kMarginPx + 6, (top + bottom) / 2}, chart.y_label);
}

void draw_lines(Canvas& canvas, const LineChart& chart, const Axis& x, const Axis& y) {
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    std::vector<Point> points;
    for (const auto& point : chart.series[s].points) {
      if (!drawable(chart, point)) continue;
      points.push_back({x(point.first), y(point.second)});
      canvas.dot(points.back(), color_of(s),
                 chart.series[s].name + ": " + number(point.first) + ", " + number(point.second));
    }
    canvas.polyline(points, color_of(s));
  }
}

}  // namespace

std::string to_svg(const BarChart& chart) {
  const std::vector<double> totals = totals_of(chart);
  const std::vector<double> ticks = linear_ticks(totals.empty() ? 0 : std::ranges::max(totals), 6);
  const double left = kMarginPx + widest(chart.labels) + 10;
  const double width = left + kBarPlotPx + kBarTotalPx;
  const Axis x(Scale::kLinear, 0, ticks.back(), left, left + kBarPlotPx);

  Canvas canvas;
  const double top = draw_heading(canvas, chart, width) + 6;
  const double bottom = top + kBarStepPx * static_cast<double>(chart.labels.size());
  for (const double tick : ticks) {
    canvas.line({x(tick), top}, {x(tick), bottom}, kGrid);
    canvas.text({x(tick), bottom + 16}, "middle", number(tick));
  }
  canvas.text({left + kBarPlotPx / 2, bottom + 36}, "middle", chart.unit);
  for (std::size_t bar = 0; bar < chart.labels.size(); ++bar) {
    const double y = top + kBarStepPx * static_cast<double>(bar) + (kBarStepPx - kBarPx) / 2;
    canvas.text({left - 8, y + kBarPx - 5}, "end", chart.labels[bar]);
    const double end = draw_bar(canvas, chart, bar, x, y);
    canvas.text({end + 6, y + kBarPx - 5}, "start", fixed(totals[bar], 2));
  }
  canvas.line({left, top}, {left, bottom}, kInk);
  return canvas.document(width, bottom + 36 + kMarginPx, chart.title);
}

std::string to_svg(const LineChart& chart) {
  const std::vector<double> x_ticks =
      x_ticks_of(chart, values_of(chart, &std::pair<double, double>::first));
  const std::vector<double> y_ticks =
      ticks_of(chart.y_scale, values_of(chart, &std::pair<double, double>::second));

  Canvas canvas;
  const double top = draw_heading(canvas, chart, kLineRightPx) + 10;
  const double bottom = top + kLinePlotHeightPx;
  const Axis x(chart.x_scale, x_ticks.front(), x_ticks.back(), kLineLeftPx, kLineRightPx);
  const Axis y(chart.y_scale, y_ticks.front(), y_ticks.back(), bottom, top);
  draw_axes(canvas, chart, {x, x_ticks}, {y, y_ticks}, top, bottom);
  draw_lines(canvas, chart, x, y);
  return canvas.document(kLineChartPx, bottom + 42 + kMarginPx, chart.title);
}

}  // namespace fovea::cli
