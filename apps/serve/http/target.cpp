#include "serve/http/target.h"

#include <algorithm>
#include <cstdint>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

ApiError malformed(const std::string& message) { return {400, "invalid_request", message}; }

/// Value of a hexadecimal digit; -1 for other characters.
int digit_of(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  if (character >= 'A' && character <= 'F') return character - 'A' + 10;
  return -1;
}

char unescaped(std::string_view escape) {
  const int high = escape.size() == 3 ? digit_of(escape[1]) : -1;
  const int low = escape.size() == 3 ? digit_of(escape[2]) : -1;
  if (high < 0 || low < 0) throw malformed("the path holds a '%' without two hexadecimal digits");
  return static_cast<char>(high * 16 + low);
}

std::string decoded(std::string_view path) {
  std::string text;
  text.reserve(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      text += path[i];
      continue;
    }
    const char character = unescaped(path.substr(i, 3));
    const auto code = static_cast<std::uint8_t>(character);
    if (code < 0x20 || code == 0x7f) throw malformed("the path holds a control character");
    text += character;
    i += 2;
  }
  return text;
}

}  // namespace

Target split_target(std::string_view target) {
  if (!target.starts_with('/')) throw malformed("the path does not begin with '/'");
  const auto is_strange = [](char character) {
    return character <= ' ' || character > '~' || character == '#';
  };
  if (std::ranges::any_of(target, is_strange)) {
    throw malformed("the path holds a character that has to be percent-encoded");
  }
  const std::size_t end = std::min(target.find('?'), target.size());
  Target parts{.path = decoded(target.substr(0, end)), .query = {}};
  if (end < target.size()) parts.query = target.substr(end + 1);
  return parts;
}

std::optional<std::string_view> below_root(std::string_view path, std::string_view root) {
  if (!path.starts_with(root)) return std::nullopt;
  path.remove_prefix(root.size());
  if (path.empty()) return "/";
  if (!path.starts_with('/')) return std::nullopt;
  return path;
}

}  // namespace fovea::serve
