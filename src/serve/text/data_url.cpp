#include "serve/text/data_url.h"

#include <algorithm>

#include "serve/text/url.h"

namespace fovea::serve {
namespace {

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

std::size_t base64_bytes(std::string_view text) { return text.size() / 4 * 3 + text.size() % 4; }

}  // namespace fovea::serve
