// Texts of others: characters of UTF-8 as strictly as XML and terminals need them, and files.
// Source: RFC 3629, section 4.
#include "fovea/text.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/boundary.h"
#include "core/file.h"

namespace fovea {

namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Bytes of a character that begins with `lead`, 0 if none does.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

/// Control characters, and those that break lines or turn the direction of what follows.
bool moves_text(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

Character first_character(std::string_view text) noexcept {
  constexpr char32_t kSmallest[]{0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = length_of(lead);
  if (length == 1) return {.code = lead, .bytes = 1};
  if (length == 0 || length > text.size() ||
      !std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length), continues))
    return {.code = std::nullopt};
  char32_t code = lead & (0x7fU >> length);
  for (const char c : text.substr(1, length - 1)) {
    code = (code << 6) | (static_cast<unsigned char>(c) & 0x3fU);
  }
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kSmallest[length] || code > 0x10ffff || surrogate) return {.code = std::nullopt};
  return {.code = code, .bytes = length};
}

std::string printable(std::string_view text, std::size_t max_bytes) try {
  return replace_characters(shortened(text, max_bytes), "?", moves_text);
} catch (...) {
  rethrow_as_error();
}

std::string read_text_file(const std::string& path, std::size_t max_bytes) try {
  const std::vector<std::uint8_t> bytes = read_file(path, max_bytes);
  return {bytes.begin(), bytes.end()};
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
