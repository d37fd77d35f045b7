// SVG text. Positions are pixels of a fixed canvas; the viewBox lets viewers scale it. Text widths
// are estimated, since a writer has no fonts: 0.6 of the size per character.
#include "report/svg_canvas.h"

#include <array>

#include "fovea/text.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr double kCharacterPx = 0.6 * kFontPx;

// Okabe and Ito's palette, less its black and its yellow, which vanishes on white.
constexpr std::array<std::string_view, 6> kPalette{"#0072B2", "#E69F00", "#009E73",
                                                   "#D55E00", "#CC79A7", "#56B4E9"};

/// Characters that an XML document cannot hold.
/// Source: W3C, Extensible Markup Language (XML) 1.0, fifth edition, section 2.2.
bool is_no_xml(char32_t code) { return code < 0x20 || code == 0xfffe || code == 0xffff; }

std::string escape(std::string_view text) {
  std::string result;
  for (const char c : replace_characters(text, "?", is_no_xml)) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

}  // namespace

std::string_view color_of(std::size_t series) { return kPalette[series % kPalette.size()]; }

double width_of(const std::string& text) {
  return kCharacterPx * static_cast<double>(text_width(text));
}

void Canvas::rect(Point at, double width, double height, std::string_view fill,
                  const std::string& tooltip) {
  body_ += "<rect x=\"" + fixed(at.x, 1) + "\" y=\"" + fixed(at.y, 1) + "\" width=\"" +
           fixed(width, 1) + "\" height=\"" + fixed(height, 1) + "\" fill=\"" + std::string(fill) +
           "\"";
  body_ += tooltip.empty() ? "/>\n" : "><title>" + escape(tooltip) + "</title></rect>\n";
}

void Canvas::line(Point from, Point to, std::string_view stroke) {
  body_ += "<line x1=\"" + fixed(from.x, 1) + "\" y1=\"" + fixed(from.y, 1) + "\" x2=\"" +
           fixed(to.x, 1) + "\" y2=\"" + fixed(to.y, 1) + "\" stroke=\"" + std::string(stroke) +
           "\"/>\n";
}

void Canvas::polyline(const std::vector<Point>& points, std::string_view stroke) {
  body_ +=
      "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + std::string(stroke) + "\" points=\"";
  for (const Point& point : points) body_ += fixed(point.x, 1) + "," + fixed(point.y, 1) + " ";
  body_ += "\"/>\n";
}

void Canvas::dot(Point at, std::string_view fill, const std::string& tooltip) {
  body_ += "<circle r=\"3.5\" cx=\"" + fixed(at.x, 1) + "\" cy=\"" + fixed(at.y, 1) + "\" fill=\"" +
           std::string(fill) + "\"><title>" + escape(tooltip) + "</title></circle>\n";
}

void Canvas::text(Point at, std::string_view anchor, const std::string& content, double size) {
  body_ += "<text x=\"" + fixed(at.x, 1) + "\" y=\"" + fixed(at.y, 1) + "\" text-anchor=\"" +
           std::string(anchor) + "\" font-size=\"" + fixed(size, 0) + "\">" + escape(content) +
           "</text>\n";
}

void Canvas::vertical_text(Point at, const std::string& content) {
  body_ += "<text text-anchor=\"middle\" font-size=\"" + fixed(kFontPx, 0) +
           "\" transform=\"translate(" + fixed(at.x, 1) + " " + fixed(at.y, 1) +
           ") rotate(-90)\">" + escape(content) + "</text>\n";
}

std::string Canvas::document(double width, double height, const std::string& title) const {
  const std::string size = fixed(width, 0) + "\" height=\"" + fixed(height, 0);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " +
         fixed(width, 0) + " " + fixed(height, 0) +
         "\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"" + std::string(kInk) +
         "\" role=\"img\">\n<title>" + escape(title) + "</title>\n<rect width=\"" + size +
         "\" fill=\"#ffffff\"/>\n" + body_ + "</svg>\n";
}

}  // namespace fovea::cli
