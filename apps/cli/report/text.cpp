// Small text helpers of the program: numbers for people, names for hints.
#include "report/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "fovea/text.h"
#include "report/table.h"

namespace fovea::cli {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

/// Fewest insertions, deletions and replacements that turn a into b, by rows of the usual table.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return "-";
  constexpr std::size_t kMaxDecimals = 20;
  std::array<char, std::numeric_limits<double>::max_exponent10 + kMaxDecimals> buffer{};
  const auto [end, failure] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                            std::chars_format::fixed, decimals);
  return failure == std::errc{} ? std::string(buffer.data(), end) : "-";
}

std::string percent(double share) { return fixed(share * 100.0, 1) + " %"; }

std::string counted(std::int64_t count, std::string_view noun, std::string_view plural) {
  const std::string many = plural.empty() ? std::string(noun) + "s" : std::string(plural);
  return std::to_string(count) + " " + (count == 1 ? std::string(noun) : many);
}

std::string bytes_text(std::size_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return fixed(value, unit == 0 ? 0 : 1) + " " + kUnits[unit];
}

std::string size_text(std::int64_t width_px, std::int64_t height_px) {
  return std::to_string(width_px) + "x" + std::to_string(height_px);
}

std::string join(std::span<const std::int64_t> values, std::string_view separator) {
  std::string result;
  for (const std::int64_t value : values) {
    if (!result.empty()) result += separator;
    result += std::to_string(value);
  }
  return result;
}

std::string join(std::span<const std::string> names, std::string_view separator) {
  std::string result;
  for (const std::string& name : names) {
    if (!result.empty()) result += separator;
    result += name;
  }
  return result;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string one_line(std::string_view text) {
  std::string result;
  for (const char c : trimmed(text)) {
    if (c != '\n' && c != '\r' && c != '\t') {
      result += c;
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
  }
  return printable(result, result.size());
}

std::string wrapped(std::string_view text, std::size_t columns) {
  std::string result;
  const auto add_line = [&](std::string_view line) {
    if (line.starts_with(' ')) {
      result += line;
      return;
    }
    std::size_t column = 0;
    while (!line.empty()) {
      const std::string word(line.substr(0, line.find(' ')));
      line.remove_prefix(std::min(word.size() + 1, line.size()));
      const std::size_t width = text_width(word);
      const bool fits = column == 0 || column + 1 + width <= columns;
      if (column > 0) result += fits ? ' ' : '\n';
      result += word;
      column = column == 0 || !fits ? width : column + 1 + width;
    }
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    add_line(text.substr(begin, end - begin));
    if (end < text.size()) result += '\n';
    begin = end + 1;
  }
  std::ranges::replace(result, kUnbrokenBlank.front(), ' ');
  return result;
}

std::string shorten_path(std::string_view path, std::size_t max_length) {
  constexpr std::string_view kCut = "...";
  if (path.size() <= max_length || max_length <= kCut.size()) return std::string(path);
  std::size_t begin = path.size() - (max_length - kCut.size());
  const std::size_t slash = path.find('/', begin);
  if (slash != std::string_view::npos && slash + 1 < path.size()) begin = slash;
  // Do not start inside a UTF-8 sequence: continuation bytes are 10xxxxxx.
  while (begin < path.size() && (static_cast<unsigned char>(path[begin]) & 0xc0) == 0x80) ++begin;
  return std::string(kCut) + std::string(path.substr(begin));
}

std::optional<std::string> nearest_name(std::string_view name,
                                        std::span<const std::string> candidates) {
  const std::string wanted = lower(name);
  std::size_t best_distance = std::max<std::size_t>(1, wanted.size() / 3);
  std::optional<std::string> best;
  for (const std::string& candidate : candidates) {
    const std::string text = lower(candidate);
    const bool unfinished = wanted.size() >= 3 && text.starts_with(wanted);
    const std::size_t distance = unfinished ? 0 : edit_distance(wanted, text);
    if (distance < best_distance || (distance == best_distance && !best)) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace fovea::cli
