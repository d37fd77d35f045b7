#pragma once

#include <span>
#include <string>
#include <vector>

namespace fovea::serve {

/// Where --llm leads to: a server, or with "dns+" in front of the URL all servers that the name in
/// it leads to.
struct LlmUrl {
  std::string url;   ///< "http://host:8000", below which are /v1 and /health
  std::string name;  ///< the host, if each of its addresses is a server; empty: the URL is one
};

/// Reads all values of --llm. @throws Error(kInvalidArgument) if there is none, one is no URL, ends
/// with /v1, has a query, or has "dns+" in front of an IP address, and if two lead to the same
/// servers.
[[nodiscard]] std::vector<LlmUrl> parse_llm_urls(std::span<const std::string> texts);

}  // namespace fovea::serve
