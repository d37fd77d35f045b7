#include "serve/upstream/llm_url.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "fovea/error.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

constexpr std::string_view kDiscovered = "dns+";

[[noreturn]] void refuse_url(const std::string& text, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, "--llm " + text + ": " + why);
}

LlmUrl parse_llm_url(const std::string& text) {
  const bool is_discovered = begins_with(text, kDiscovered);
  const std::optional<Url> url = parse_url(is_discovered ? text.substr(kDiscovered.size()) : text);
  if (!url) {
    refuse_url(text, is_discovered ? "expected dns+http://NAME:PORT or dns+https://NAME:PORT"
                                   : "expected http://HOST:PORT or https://HOST:PORT");
  }
  if (is_discovered && url->kind != HostKind::kName) {
    refuse_url(text, "expected a name behind dns+, whose addresses are the servers, got " +
                         url->host + ", which is one");
  }
  std::string base = url->text();
  while (base.ends_with('/')) base.pop_back();
  if (url->target.find('?') != std::string::npos) {
    refuse_url(text, "expected a URL without a query");
  }
  if (base.ends_with("/v1")) {
    refuse_url(text, "expected the server without /v1, which has /health beside it");
  }
  return {.url = std::move(base), .name = is_discovered ? url->host : ""};
}

}  // namespace

std::vector<LlmUrl> parse_llm_urls(std::span<const std::string> texts) {
  if (texts.empty()) throw Error(ErrorCode::kInvalidArgument, "a proxy needs --llm URL");
  std::vector<LlmUrl> urls;
  for (const std::string& text : texts) {
    LlmUrl url = parse_llm_url(text);
    if (std::ranges::find(urls, url.url, &LlmUrl::url) != urls.end()) {
      refuse_url(text, "expected each server once, this one is there twice");
    }
    urls.push_back(std::move(url));
  }
  return urls;
}

}  // namespace fovea::serve
