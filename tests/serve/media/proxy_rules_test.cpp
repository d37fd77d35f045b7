#include "serve/media/proxy_rules.h"

#include <gtest/gtest.h>

#include <map>

#include "support/expect_error.h"

namespace fovea::serve {
namespace {

using test::expect_error;

/// The host of the proxy of a fetch; "" without one.
std::string proxy_of(const ProxyRules& rules, const std::string& url) {
  const Url* const proxy = rules.find(parse_url(url).value());
  return proxy == nullptr ? "" : proxy->host;
}

ProxyRules rules_of(const std::map<std::string, std::string>& environment) {
  ProxyRules rules;
  rules.use_environment([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
  return rules;
}

TEST(ProxyRules, AreNoneAtFirst) {
  EXPECT_EQ(proxy_of({}, "https://a.test/"), "");
  EXPECT_EQ(proxy_of(rules_of({}), "https://a.test/"), "");
  EXPECT_EQ(proxy_of(rules_of({{"http_proxy", ""}}), "http://a.test/"), "");
}

TEST(ProxyRules, HaveOneProxyForAllFetches) {
  ProxyRules rules;
  rules.use("http://p.test:3128");
  EXPECT_EQ(proxy_of(rules, "https://a.test/"), "p.test");
  EXPECT_EQ(proxy_of(rules, "http://10.0.0.1/"), "p.test");
}

TEST(ProxyRules, RefuseWhatIsNoProxy) {
  for (const char* url : {"p.test:3128", "https://p.test", "http://user:secret@p.test",
                          "http://p.test/path", "socks5://p.test", ""}) {
    try {
      ProxyRules().use(url);
      ADD_FAILURE() << url;
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("--media-proxy: expected")) << error.what();
      EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos);
    }
  }
  expect_error(ErrorCode::kInvalidArgument, "https_proxy: expected the URL of a proxy", [] {
    (void)rules_of({{"https_proxy", "p.test"}});
  });
}

TEST(ProxyRules, ReadTheVariablesThatOthersRead) {
  const ProxyRules rules = rules_of({{"http_proxy", "http://one.test:1"},
                                     {"HTTPS_PROXY", "http://two.test:2"},
                                     {"no_proxy", "a.test, .b.test,10.0.0.0/8,::1"}});
  EXPECT_EQ(proxy_of(rules, "http://c.test/"), "one.test");
  EXPECT_EQ(proxy_of(rules, "https://c.test/"), "two.test");
  EXPECT_EQ(proxy_of(rules_of({{"HTTP_PROXY", "http://one.test:1"}}), "http://c.test/"), "");
  for (const char* direct : {"http://a.test/", "https://x.a.test/", "http://b.test/",
                             "http://x.b.test/", "http://10.255.0.1/", "http://[::1]/"})
    EXPECT_EQ(proxy_of(rules, direct), "") << direct;
  for (const char* proxied : {"http://xa.test/", "http://11.0.0.1/", "http://[::2]/"})
    EXPECT_EQ(proxy_of(rules, proxied), "one.test") << proxied;
}

TEST(ProxyRules, LeaveOutHosts) {
  ProxyRules rules;
  rules.use("http://p.test:3128");
  rules.exclude({"*.below.test", "192.168.0.0/17"}, "--media-no-proxy");
  EXPECT_EQ(proxy_of(rules, "http://a.below.test/"), "");
  EXPECT_EQ(proxy_of(rules, "http://below.test/"), "p.test");
  EXPECT_EQ(proxy_of(rules, "http://192.168.127.1/"), "");
  EXPECT_EQ(proxy_of(rules, "http://192.168.128.1/"), "p.test");
  rules.exclude({"*"}, "--media-no-proxy");
  EXPECT_EQ(proxy_of(rules, "http://other.test/"), "");
  for (const char* wrong : {"10.0.0.0/33", "10.0.0.0/x", "a b", "a.test:80", "http://a.test"})
    expect_error(ErrorCode::kInvalidArgument, "--media-no-proxy: expected ",
                 [&] { rules.exclude({wrong}, "--media-no-proxy"); });
}

}  // namespace
}  // namespace fovea::serve
