#include "serve/text/percent.h"

#include <charconv>

namespace fovea::serve {

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    if (text.front() != '%') {
      plain += text.front();
      text.remove_prefix(1);
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(1, 2);
    const char* end = digits.data() + digits.size();
    if (digits.size() < 2 || std::from_chars(digits.data(), end, value, 16).ptr != end) {
      return std::nullopt;
    }
    plain += static_cast<char>(value);
    text.remove_prefix(3);
  }
  return plain;
}

}  // namespace fovea::serve
