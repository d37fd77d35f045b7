// Any text as a URL: what is accepted reads back as itself, and holds nothing that could end a line
// or a host early.
#include "serve/text/url.h"

#include <algorithm>

#include "fuzz.h"

using fovea::serve::HostKind;
using fovea::serve::parse_url;
using fovea::test::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fovea::test::text_of(data, size);
  (void)fovea::serve::percent_decoded(text);
  const auto url = parse_url(text);
  if (!url) return 0;
  require(fovea::serve::is_http_url(text));
  require(url->port != 0 && url->target.starts_with('/'));
  require(url->host.find_first_of("@/\\?#%") == std::string::npos && !url->host.empty());
  require((url->kind == HostKind::kIpv6) == (url->host.find(':') != std::string::npos));
  require(std::ranges::all_of(url->text(), [](char c) { return c > ' ' && c < 0x7f; }));
  if (url->text().size() <= fovea::serve::kMaxUrlBytes) require(parse_url(url->text()) == url);
  return 0;
}
