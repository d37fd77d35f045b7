#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/address_rules.h"
#include "serve/text/url.h"

namespace fovea::serve {

/// Which fetches of media go through a proxy.
class ProxyRules {
 public:
  /// No proxy.
  ProxyRules() = default;

  /// All fetches go through it. @param url "http://proxy.test:3128".
  /// @throws Error(kInvalidArgument) for https, for user information, for a path.
  void use(std::string_view url);

  /// What the variables say that other programs know: https_proxy or HTTPS_PROXY, http_proxy (not
  /// HTTP_PROXY, which a client of a CGI server can set), no_proxy or NO_PROXY.
  /// @param get the value of a variable; null if there is none. @throws as the other two.
  void use_environment(const std::function<const char*(const char* name)>& get);

  /// Hosts that are fetched from directly: "example.org" and ".example.org" with all names below,
  /// "*.example.org" with these only, an address, a block of addresses ("10.0.0.0/8"), "*".
  /// Addresses are those that stand in URLs: names are not looked up for this.
  /// @throws Error(kInvalidArgument) for what is none of these.
  void exclude(const std::vector<std::string>& hosts, const std::string& source);

  /// The proxy of a fetch; null: none.
  [[nodiscard]] const Url* find(const Url& url) const;

  [[nodiscard]] bool has_any() const noexcept { return for_http_ || for_https_; }

 private:
  struct Block {
    Address address;
    int bits;
  };
  [[nodiscard]] bool is_excluded(const Url& url) const;

  std::optional<Url> for_http_;
  std::optional<Url> for_https_;
  std::vector<std::string> domains_;  ///< as is_listed() has them
  std::vector<Block> blocks_;
  bool excludes_all_ = false;
};

}  // namespace fovea::serve
