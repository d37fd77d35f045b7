#include "serve/http/target.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "serve/api_error.h"
#include "serve/text/percent.h"

namespace fovea::serve {
namespace {

std::string decoded(std::string_view path) {
  std::optional<std::string> text = percent_decoded(path);
  if (!text) throw malformed("the path holds a '%' without two hexadecimal digits");
  const auto is_control = [](char character) {
    const auto code = static_cast<std::uint8_t>(character);
    return code < 0x20 || code == 0x7f;
  };
  if (std::ranges::any_of(*text, is_control)) {
    throw malformed("the path holds a control character");
  }
  return *std::move(text);
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
