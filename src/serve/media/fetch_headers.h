#pragma once

#include <map>
#include <string>
#include <string_view>

#include "serve/text/headers.h"
#include "serve/text/url.h"

namespace fovea::serve {

/// The headers that fetches of media have beside the transport's own: those of all hosts, and those
/// of one origin (scheme, host and port), which replace them by name. Each hop of a redirect has
/// those of its own origin, so that a credential never reaches another host, nor the same one
/// without TLS.
class FetchHeaders {
 public:
  /// Adds "Name: value" for all hosts.
  /// @param source for messages, which never show a value: "--media-header".
  /// @throws Error(kInvalidArgument) for what is no header, for those that the transport sets
  /// (Host, Range, Accept-Encoding, ...), and for credentials, which no two hosts should share.
  void add(std::string_view line, const std::string& source);

  /// Adds the headers of a file: {"*": {"Accept": "image/*"}, "https://a.test": {"Authorization":
  /// "Bearer ..."}, "http://proxy.test:3128": {"Proxy-Authorization": "Basic ..."}}.
  /// @throws Error(kInvalidArgument) as add(), for keys that are neither "*" nor an origin, and for
  /// a file that others than its owner and group may read, its group may change, or that belongs to
  /// another user than this and root; Error(kCorruptData) for what is no JSON; Error(kNotFound),
  /// Error(kIo).
  void read(const std::string& path);

  /// Those of a hop to this URL, without Proxy-Authorization.
  [[nodiscard]] Headers of(const Url& url) const;
  /// Those of a proxy: Proxy-Authorization, or none.
  [[nodiscard]] Headers of_proxy(const Url& proxy) const;

 private:
  std::map<std::string, Headers> by_origin_;  ///< "*": all
};

/// "https://a.test:443": the origin of a URL.
[[nodiscard]] std::string origin_of(const Url& url);

}  // namespace fovea::serve
