// Charts as SVG text. Positions are computed in pixels of a fixed canvas; the viewBox lets viewers
// scale it. Text widths are estimated, since a writer has no fonts: 0.6 of the size per character.
#include "report/svg_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr double kFontPx = 12;
constexpr double kTitlePx = 16;
constexpr double kCharacterPx = 0.6 * kFontPx;
constexpr double kMarginPx = 20;
constexpr double kLegendSwatchPx = 12;
constexpr double kLegendRowPx = 20;
constexpr std::string_view kInk = "#1f2328";
constexpr std::string_view kGrid = "#d8dce1";

// Okabe and Ito's palette, less its black and its yellow, which vanishes on white.
constexpr std::array<std::string_view, 6> kPalette{"#0072B2", "#E69F00", "#009E73",
                                                   "#D55E00", "#CC79A7", "#56B4E9"};

std::string_view color_of(std::size_t series) { return kPalette[series % kPalette.size()]; }

std::string escape(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return result;
}

/// Shortest text of a tick: no zeros at the end.
std::string number(double value) {
  std::string text = fixed(value, 3);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

double width_of(const std::string& text) {
  return kCharacterPx * static_cast<double>(text_width(text));
}

struct Point {
  double x = 0;
  double y = 0;
};

/// Attributes and elements of one document.
class Canvas {
 public:
  void rect(Point at, double width, double height, std::string_view fill,
            const std::string& tooltip = "") {
    body_ += "<rect x=\"" + fixed(at.x, 1) + "\" y=\"" + fixed(at.y, 1) + "\" width=\"" +
             fixed(width, 1) + "\" height=\"" + fixed(height, 1) + "\" fill=\"" +
             std::string(fill) + "\"";
    body_ += tooltip.empty() ? "/>\n" : "><title>" + escape(tooltip) + "</title></rect>\n";
  }

  void line(Point from, Point to, std::string_view stroke) {
    body_ += "<line x1=\"" + fixed(from.x, 1) + "\" y1=\"" + fixed(from.y, 1) + "\" x2=\"" +
             fixed(to.x, 1) + "\" y2=\"" + fixed(to.y, 1) + "\" stroke=\"" + std::string(stroke) +
             "\"/>\n";
  }

  void polyline(const std::vector<Point>& points, std::string_view stroke) {
    body_ += "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + std::string(stroke) +
             "\" points=\"";
    for (const Point& point : points) body_ += fixed(point.x, 1) + "," + fixed(point.y, 1) + " ";
    body_ += "\"/>\n";
  }

  void dot(Point at, std::string_view fill, const std::string& tooltip) {
    body_ += "<circle r=\"3.5\" cx=\"" + fixed(at.x, 1) + "\" cy=\"" + fixed(at.y, 1) +
             "\" fill=\"" + std::string(fill) + "\"><title>" + escape(tooltip) +
             "</title></circle>\n";
  }

  /// @param anchor "start", "middle" or "end": which point of the text lies at `at`.
  void text(Point at, std::string_view anchor, const std::string& content, double size = kFontPx) {
    body_ += "<text x=\"" + fixed(at.x, 1) + "\" y=\"" + fixed(at.y, 1) + "\" text-anchor=\"" +
             std::string(anchor) + "\" font-size=\"" + fixed(size, 0) + "\">" + escape(content) +
             "</text>\n";
  }

  /// Text that reads upwards, centred at `at`.
  void vertical_text(Point at, const std::string& content) {
    body_ += "<text text-anchor=\"middle\" font-size=\"" + fixed(kFontPx, 0) +
             "\" transform=\"translate(" + fixed(at.x, 1) + " " + fixed(at.y, 1) +
             ") rotate(-90)\">" + escape(content) + "</text>\n";
  }

  [[nodiscard]] std::string document(double width, double height, const std::string& title) const {
    const std::string size = fixed(width, 0) + "\" height=\"" + fixed(height, 0);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " +
           fixed(width, 0) + " " + fixed(height, 0) +
           "\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"" + std::string(kInk) +
           "\" role=\"img\">\n<title>" + escape(title) + "</title>\n<rect width=\"" + size +
           "\" fill=\"#ffffff\"/>\n" + body_ + "</svg>\n";
  }

 private:
  std::string body_;
};

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

double round_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/// Maps values of one axis to pixels.
class Axis {
 public:
  Axis(Scale scale, double min, double max, double from_px, double to_px)
      : scale_(scale), min_(place(min)), max_(place(max)), from_px_(from_px), to_px_(to_px) {}

  [[nodiscard]] double operator()(double value) const {
    const double span = max_ > min_ ? max_ - min_ : 1.0;
    return from_px_ + (place(value) - min_) / span * (to_px_ - from_px_);
  }

 private:
  [[nodiscard]] double place(double value) const {
    return scale_ == Scale::kLog ? std::log(value) : value;
  }
  Scale scale_;
  double min_;
  double max_;
  double from_px_;
  double to_px_;
};

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
  std::sort(values.begin(), values.end());
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

}  // namespace

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

std::string to_svg(const BarChart& chart) {
  constexpr double kBarPx = 18;
  constexpr double kBarStepPx = 24;
  constexpr double kPlotPx = 560;
  constexpr double kTotalPx = 80;  // room for the number at the end of a bar

  double label_px = 0;
  std::vector<double> totals(chart.labels.size(), 0.0);
  for (std::size_t bar = 0; bar < chart.labels.size(); ++bar) {
    label_px = std::max(label_px, width_of(chart.labels[bar]));
    for (const BarSeries& series : chart.series) totals[bar] += series.values.at(bar);
  }
  const double max_total = totals.empty() ? 0 : *std::max_element(totals.begin(), totals.end());
  const std::vector<double> ticks = linear_ticks(max_total, 6);
  const double left = kMarginPx + label_px + 10;
  const double width = left + kPlotPx + kTotalPx;
  const Axis x(Scale::kLinear, 0, ticks.back(), left, left + kPlotPx);

  Canvas canvas;
  canvas.text({kMarginPx, kMarginPx + kTitlePx}, "start", chart.title, kTitlePx);
  const double top =
      draw_legend(canvas, {kMarginPx, kMarginPx + kTitlePx + 16}, width, chart.series) + 6;
  const double bottom = top + kBarStepPx * static_cast<double>(chart.labels.size());
  for (const double tick : ticks) {
    canvas.line({x(tick), top}, {x(tick), bottom}, kGrid);
    canvas.text({x(tick), bottom + 16}, "middle", number(tick));
  }
  canvas.text({left + kPlotPx / 2, bottom + 36}, "middle", chart.unit);

  for (std::size_t bar = 0; bar < chart.labels.size(); ++bar) {
    const double y = top + kBarStepPx * static_cast<double>(bar) + (kBarStepPx - kBarPx) / 2;
    canvas.text({left - 8, y + kBarPx - 5}, "end", chart.labels[bar]);
    double sum = 0;
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
      const double value = chart.series[s].values[bar];
      if (value <= 0) continue;
      canvas.rect({x(sum), y}, x(sum + value) - x(sum), kBarPx, color_of(s),
                  chart.series[s].name + ": " + fixed(value, 3));
      sum += value;
    }
    canvas.text({x(sum) + 6, y + kBarPx - 5}, "start", fixed(totals[bar], 2));
  }
  canvas.line({left, top}, {left, bottom}, kInk);
  return canvas.document(width, bottom + 36 + kMarginPx, chart.title);
}

std::string to_svg(const LineChart& chart) {
  constexpr double kWidth = 760;
  constexpr double kPlotHeight = 340;
  constexpr double kLeft = 80;
  constexpr double kRight = kWidth - 30;

  const std::vector<double> xs = values_of(chart, &std::pair<double, double>::first);
  const std::vector<double> x_ticks = x_ticks_of(chart, xs);
  const std::vector<double> y_ticks =
      ticks_of(chart.y_scale, values_of(chart, &std::pair<double, double>::second));

  Canvas canvas;
  canvas.text({kMarginPx, kMarginPx + kTitlePx}, "start", chart.title, kTitlePx);
  const double top =
      draw_legend(canvas, {kMarginPx, kMarginPx + kTitlePx + 16}, kRight, chart.series) + 10;
  const double bottom = top + kPlotHeight;
  const Axis x(chart.x_scale, x_ticks.front(), x_ticks.back(), kLeft, kRight);
  const Axis y(chart.y_scale, y_ticks.front(), y_ticks.back(), bottom, top);

  for (const double tick : y_ticks) {
    canvas.line({kLeft, y(tick)}, {kRight, y(tick)}, kGrid);
    canvas.text({kLeft - 8, y(tick) + 4}, "end", number(tick));
  }
  for (const double tick : x_ticks) {
    canvas.line({x(tick), bottom}, {x(tick), bottom + 5}, kInk);
    canvas.text({x(tick), bottom + 20}, "middle", number(tick));
  }
  canvas.line({kLeft, bottom}, {kRight, bottom}, kInk);
  canvas.line({kLeft, top}, {kLeft, bottom}, kInk);
  canvas.text({(kLeft + kRight) / 2, bottom + 42}, "middle", chart.x_label);
  canvas.vertical_text({kMarginPx + 6, (top + bottom) / 2}, chart.y_label);

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
  return canvas.document(kWidth, bottom + 42 + kMarginPx, chart.title);
}

}  // namespace fovea::cli
