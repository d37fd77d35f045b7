#include "serve/metrics/metrics_text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace fovea::serve {
namespace {

std::string number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (std::isnan(value)) return "NaN";
  std::array<char, 32> text{};
  const bool is_short = value == 0 || (std::abs(value) >= 1e-5 && std::abs(value) < 1e15);
  const auto form = is_short ? std::chars_format::fixed : std::chars_format::general;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, form).ptr;
  return {text.data(), end};
}

void append_label(std::string& text, const Label& label) {
  if (label.second.empty()) return;
  text += text.ends_with('{') ? "" : ",";
  text += label.first;
  text += "=\"";
  for (const char character : label.second) {
    if (character == '\n') {
      text += "\\n";
      continue;
    }
    if (character == '"' || character == '\\') text += '\\';
    text += character;
  }
  text += '"';
}

}  // namespace

void MetricsText::begin(std::string_view name, std::string_view help, std::string_view type) {
  name_ = name;
  text_ += "# HELP ";
  text_.append(name).append(" ").append(help);
  text_ += "\n# TYPE ";
  text_.append(name).append(" ").append(type).append("\n");
}

void MetricsText::line(std::string_view suffix, double value, Labels labels, const Label* last) {
  text_.append(name_).append(suffix);
  if (!common_.empty() || labels.size() > 0 || last != nullptr) {
    text_ += '{';
    for (const Label& label : common_) append_label(text_, label);
    for (const Label& label : labels) append_label(text_, label);
    if (last != nullptr) append_label(text_, *last);
    text_ += '}';
  }
  text_ += " " + number(value) + "\n";
}

void MetricsText::buckets(std::span<const double> bounds, std::span<const std::uint64_t> counts,
                          double sum, Labels labels) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= bounds.size(); ++i) {
    count += counts[i];
    const std::string bound = i < bounds.size() ? number(bounds[i]) : "+Inf";
    const Label le{"le", bound};
    line("_bucket", static_cast<double>(count), labels, &le);
  }
  line("_sum", sum, labels, nullptr);
  line("_count", static_cast<double>(count), labels, nullptr);
}

}  // namespace fovea::serve
