#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::cli {

/// Sizes and colours of all charts.
inline constexpr double kFontPx = 12;
inline constexpr double kTitlePx = 16;
inline constexpr std::string_view kInk = "#1f2328";
inline constexpr std::string_view kGrid = "#d8dce1";

/// Colour of the n-th series; the palette repeats after six.
[[nodiscard]] std::string_view color_of(std::size_t series);

/// Estimated width of a text in the usual size, in pixels.
[[nodiscard]] double width_of(const std::string& text);

/// A position in pixels; y grows downwards.
struct Point {
  double x = 0;
  double y = 0;
};

/// The elements of one SVG document, drawn in the order of the calls. Texts are escaped.
class Canvas {
 public:
  /// @param tooltip what viewers show over the rectangle; empty: nothing.
  void rect(Point at, double width, double height, std::string_view fill,
            const std::string& tooltip = "");
  void line(Point from, Point to, std::string_view stroke);
  void polyline(const std::vector<Point>& points, std::string_view stroke);
  void dot(Point at, std::string_view fill, const std::string& tooltip);
  /// @param anchor "start", "middle" or "end": which point of the text lies at `at`.
  void text(Point at, std::string_view anchor, const std::string& content, double size = kFontPx);
  /// Text that reads upwards, centred at `at`.
  void vertical_text(Point at, const std::string& content);

  /// The complete document on white ground.
  [[nodiscard]] std::string document(double width, double height, const std::string& title) const;

 private:
  std::string body_;
};

}  // namespace fovea::cli
