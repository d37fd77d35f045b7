#include "serve/text/base64.h"

#include <algorithm>
#include <array>

#include "core/interrupt.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNone = 0xff;
constexpr std::size_t kPiece = std::size_t{1} << 20;  ///< of text, between two looks; whole groups

/// Character -> its six bits, or kNone.
constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<std::uint8_t>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}();

std::uint32_t value_of(char character) { return kValues[static_cast<std::uint8_t>(character)]; }

/// Text without the padding at its end; nothing if that is not what its length asks for.
std::optional<std::string_view> without_padding(std::string_view text) {
  std::string_view bare = text;
  while (bare.size() + 2 > text.size() && bare.ends_with('=')) bare.remove_suffix(1);
  const bool padded = bare.size() != text.size();
  if (bare.size() % 4 == 1 || (padded && text.size() % 4 != 0)) return std::nullopt;
  return bare;
}

/// Appends the three bytes of each four characters. @return false if a character is outside the
/// alphabet.
bool append_groups(std::string_view text, std::vector<std::uint8_t>& bytes) {
  std::size_t out = bytes.size();
  bytes.resize(out + text.size() / 4 * 3);
  std::uint32_t wrong = 0;  // bit 7 if a character was outside the alphabet
  for (std::size_t in = 0; in < text.size(); in += 4) {
    std::uint32_t group = 0;
    for (std::size_t i = in; i < in + 4; ++i) {
      const std::uint32_t value = value_of(text[i]);
      wrong |= value;
      group = group << 6 | (value & 63);
    }
    bytes[out++] = static_cast<std::uint8_t>(group >> 16);
    bytes[out++] = static_cast<std::uint8_t>(group >> 8);
    bytes[out++] = static_cast<std::uint8_t>(group);
  }
  return (wrong & 0x80) == 0;
}

/// Appends the bytes of the up to three characters at the end. @return false if one is outside the
/// alphabet, or bits are set that belong to no byte.
bool append_rest(std::string_view text, std::vector<std::uint8_t>& bytes) {
  std::uint32_t wrong = 0;
  std::uint32_t group = 0;
  std::size_t bits = 0;
  for (const char character : text) {
    const std::uint32_t value = value_of(character);
    wrong |= value;
    group = group << 6 | (value & 63);
    bits += 6;
  }
  for (; bits >= 8; bits -= 8) bytes.push_back(static_cast<std::uint8_t>(group >> (bits - 8)));
  return (wrong & 0x80) == 0 && (group & ((1U << bits) - 1)) == 0;
}

constexpr std::string_view kScheme = "data:";
/// Most bytes of the type and its parameters.
constexpr std::size_t kMaxHeadBytes = 1024;

bool is_token(std::string_view text) {
  const auto fits = [](char c) {
    return c > ' ' && c < 0x7f &&
           std::string_view("()<>@,;:\\\"/[]?=").find(c) == std::string_view::npos;
  };
  return !text.empty() && std::ranges::all_of(text, fits);
}

/// Whether text is two tokens with `separator` between them.
bool is_pair(std::string_view text, char separator) {
  const std::size_t at = text.find(separator);
  return at != std::string_view::npos && is_token(text.substr(0, at)) &&
         is_token(text.substr(at + 1));
}

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  std::size_t out = 0;
  std::size_t in = 0;
  for (; in + 3 <= bytes.size(); in += 3) {
    const std::uint32_t group = at(in) << 16 | at(in + 1) << 8 | at(in + 2);
    for (int shift = 18; shift >= 0; shift -= 6) text[out++] = kAlphabet[group >> shift & 63];
  }
  if (const std::size_t rest = bytes.size() - in; rest > 0) {
    const std::uint32_t group = at(in) << 16 | (rest == 2 ? at(in + 1) << 8 : 0);
    text[out++] = kAlphabet[group >> 18];
    text[out++] = kAlphabet[group >> 12 & 63];
    if (rest == 2) text[out++] = kAlphabet[group >> 6 & 63];
  }
  return text;
}

std::optional<std::vector<std::uint8_t>> from_base64(std::string_view text) {
  const std::optional<std::string_view> bare = without_padding(text);
  if (!bare) return std::nullopt;
  const std::size_t rest = bare->size() % 4;
  std::vector<std::uint8_t> bytes;
  bytes.reserve(bare->size() / 4 * 3 + rest * 3 / 4);
  std::string_view groups = bare->substr(0, bare->size() - rest);
  while (!groups.empty()) {
    check_interrupt();
    if (!append_groups(groups.substr(0, kPiece), bytes)) return std::nullopt;
    groups.remove_prefix(std::min(kPiece, groups.size()));
  }
  if (!append_rest(bare->substr(bare->size() - rest), bytes)) return std::nullopt;
  return bytes;
}

std::size_t base64_bytes(std::string_view text) { return text.size() / 4 * 3 + text.size() % 4; }

bool is_data_url(std::string_view text) { return begins_with(text, kScheme); }

std::optional<DataUrl> parse_data_url(std::string_view text) {
  if (!is_data_url(text)) return std::nullopt;
  text.remove_prefix(kScheme.size());
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos || comma > kMaxHeadBytes) return std::nullopt;
  std::string_view head = text.substr(0, comma);
  const std::size_t last = head.rfind(';');
  if (last == std::string_view::npos || to_lower(head.substr(last + 1)) != "base64") {
    return std::nullopt;
  }
  head = head.substr(0, last);
  const std::size_t end = std::min(head.find(';'), head.size());
  DataUrl url{.type = to_lower(head.substr(0, end)), .base64 = text.substr(comma + 1)};
  if (!url.type.empty() && !is_pair(url.type, '/')) return std::nullopt;
  for (head.remove_prefix(end); !head.empty();) {
    head.remove_prefix(1);
    const std::string_view parameter = head.substr(0, head.find(';'));
    if (!is_pair(parameter, '=')) return std::nullopt;
    head.remove_prefix(parameter.size());
  }
  return url;
}

}  // namespace fovea::serve
