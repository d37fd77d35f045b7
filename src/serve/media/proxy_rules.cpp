#include "serve/media/proxy_rules.h"

#include <algorithm>
#include <charconv>

#include "core/check.h"
#include "serve/text/headers.h"

namespace fovea::serve {
namespace {

Url proxy_url(std::string_view text, std::string_view source) {
  const std::optional<Url> url = parse_url(text);
  FOVEA_CHECK(url && !url->is_https && url->target == "/", kInvalidArgument, source,
              ": expected the URL of a proxy such as http://proxy.example.org:3128, without user",
              " and password, which belong into --media-headers-file as Proxy-Authorization");
  return *url;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

bool shares_bits(const Address& left, const Address& right, int bits) {
  for (int bit = 0; bit < bits; ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    if (((left.bytes.at(byte) ^ right.bytes.at(byte)) & (0x80 >> bit % 8)) != 0) return false;
  }
  return true;
}

/// How many bits of an address count; nothing for a number that is none.
std::optional<int> bits_of(std::string_view text, int most) {
  int bits = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return bits >= 0 && bits <= most ? std::optional(bits) : std::nullopt;
}

}  // namespace

void ProxyRules::use(std::string_view url) {
  for_http_ = proxy_url(url, "--media-proxy");
  for_https_ = for_http_;
}

void ProxyRules::use_environment(const std::function<const char*(const char* name)>& get) {
  const auto first_of = [&](std::initializer_list<const char*> names, const auto& take) {
    for (const char* const name : names) {
      const char* const value = get(name);
      if (value != nullptr && *value != '\0') return take(value, name);
    }
  };
  first_of({"https_proxy", "HTTPS_PROXY"},
           [&](const char* value, const char* name) { for_https_ = proxy_url(value, name); });
  first_of({"http_proxy"},
           [&](const char* value, const char* name) { for_http_ = proxy_url(value, name); });
  first_of({"no_proxy", "NO_PROXY"},
           [&](const char* value, const char* name) { exclude(listed_names(value), name); });
}

void ProxyRules::exclude(const std::vector<std::string>& hosts, const std::string& source) {
  for (const std::string& text : hosts) {
    const std::string host = to_lower(trimmed(text));
    const std::size_t slash = host.find('/');
    if (host == "*") {
      excludes_all_ = true;
    } else if (const auto address = parse_address(host.substr(0, slash))) {
      const int most = address->is_v6 ? 128 : 32;
      const std::optional<int> bits =
          slash == host.npos ? most : bits_of(std::string_view(host).substr(slash + 1), most);
      FOVEA_CHECK(bits, kInvalidArgument, source, ": expected a block of addresses, got ", host);
      blocks_.push_back({*address, *bits});
    } else {
      const std::string name = host.starts_with('.') ? host.substr(1) : host;
      FOVEA_CHECK(is_domain(name), kInvalidArgument, source,
                  ": expected hosts, addresses or blocks of addresses, got ", host);
      domains_.push_back(name);
      if (!name.starts_with("*.")) domains_.push_back("*." + name);
    }
  }
}

bool ProxyRules::is_excluded(const Url& url) const {
  if (excludes_all_) return true;
  if (url.kind == HostKind::kName) return is_listed(url.host, domains_);
  const std::optional<Address> address = parse_address(url.host);
  return address && std::ranges::any_of(blocks_, [&](const Block& block) {
           return block.address.is_v6 == address->is_v6 &&
                  shares_bits(block.address, *address, block.bits);
         });
}

const Url* ProxyRules::find(const Url& url) const {
  const std::optional<Url>& proxy = url.is_https ? for_https_ : for_http_;
  return proxy && !is_excluded(url) ? &*proxy : nullptr;
}

}  // namespace fovea::serve
