// Values of options from the text of flags.
#include "flags/option_flags.h"

#include <algorithm>

#include "errors.h"
#include "report/text.h"

namespace fovea::cli {

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
