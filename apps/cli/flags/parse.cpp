// From the words of the command line to numbers.
#include "flags/parse.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <algorithm>
#include "errors.h"
#include "report/text.h"

namespace fovea::cli {

std::string whole_number_text(std::int64_t min, std::int64_t max) {
  if (max == kNoLimit) return "a whole number >= " + std::to_string(min);
  return "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
}

std::int64_t parse_whole(std::string_view text, std::int64_t min, std::string_view what,
                         std::int64_t max) {
  const std::string_view digits = trimmed(text);
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc{} || end != digits.data() + digits.size() || value < min || value > max) {
    throw UsageError(std::string(what) + ": expected " + whole_number_text(min, max) + ", got \"" +
                     one_line(text) + "\"");
  }
  return value;
}

int to_int(std::int64_t value, std::string_view what) {
  if (value > std::numeric_limits<int>::max()) {
    throw UsageError(std::string(what) + ": " + std::to_string(value) + " is too large");
  }
  return static_cast<int>(value);
}

double parse_number(std::string_view text, std::string_view what) {
  const std::string_view digits = trimmed(text);
  double value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(value)) {
    throw UsageError(std::string(what) + ": expected a number, got \"" + one_line(text) + "\"");
  }
  return value;
}

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::vector<double> parse_percents(std::string_view text, std::string_view what) {
  std::vector<double> values;
  for (const std::string& part : split_commas(text)) {
    values.push_back(parse_number(part, what));
    if (values.back() >= 0 && values.back() <= 100) continue;
    throw UsageError(std::string(what) + ": expected numbers from 0 to 100, got \"" +
                     one_line(part) + "\"");
  }
  return values;
}

std::vector<std::int64_t> parse_positive_list(std::string_view text, std::string_view what,
                                              std::int64_t max) {
  std::vector<std::int64_t> values;
  for (const std::string& part : split_commas(text))
    values.push_back(parse_whole(part, 1, what, max));
  return values;
}

void read_color(const std::string& text, const std::string& flag, std::uint8_t (&levels)[3]) {
  constexpr std::int64_t kMostLevel = 255;
  const std::vector<std::string> parts = split_commas(text);
  if (parts.size() != std::size(levels)) {
    throw UsageError(flag + ": expected R,G,B, got \"" + one_line(text) + "\"");
  }
  std::ranges::transform(parts, levels, [&](const std::string& level) {
    return static_cast<std::uint8_t>(parse_whole(level, 0, flag, kMostLevel));
  });
}

double parse_part(const std::string& text, const std::string& flag) {
  const double part = parse_number(text, flag);
  if (part >= 0 && part < 1) return part;
  throw UsageError(flag + ": expected a number of at least 0 and less than 1, got \"" + text +
                   "\"");
}

}  // namespace fovea::cli
