// Fetches through a proxy: what it is asked for, what it is told, and what it never sees.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <mutex>
#include <string>

#include "serve/media/fetches.h"

namespace fovea::serve {
namespace {

using test::http_reply;
using test::LocalServer;
using test::send_text;

using Lookups = HostAddresses::Outcome;

/// A proxy on 127.0.0.2, which is inside: it opens tunnels, and answers in them itself.
class Proxied : public ::testing::Test {
 protected:
  MediaSourceOptions options() {
    MediaSourceOptions options = options_for(proxy_);
    options.proxies.use(url());
    options.headers =
        headers_of_file(R"({"http://picture.test": {"Authorization": "Bearer a"}, ")" + url() +
                        R"(": {"Proxy-Authorization": "Basic b"}})");
    return options;
  }
  /// picture.test is public, inside.test is not.
  static HostAddresses ask(const std::string& name) {
    if (name == "picture.test") return addresses({"127.0.0.1"});
    if (name == "inside.test") return addresses({"127.0.0.3"});
    return {.outcome = Lookups::kNoHost, .addresses = {}};
  }
  [[nodiscard]] std::string url() const {
    return "http://127.0.0.2:" + std::to_string(proxy_.port());
  }
  std::string tunneled() {
    const std::lock_guard lock(mutex_);
    return tunneled_;
  }

  std::string reply_ = http_reply(200, "picture");
  std::mutex mutex_;  // guards tunneled_
  std::string tunneled_;
  LocalServer proxy_{[this](int socket, const std::string& head) {
                       if (!head.starts_with("CONNECT ")) return send_text(socket, reply_);
                       send_text(socket, "HTTP/1.1 200 Tunnel\r\n\r\n");
                       std::string inner;
                       char byte = 0;
                       while (!inner.ends_with("\r\n\r\n") && recv(socket, &byte, 1, 0) == 1)
                         inner += byte;
                       const std::lock_guard lock(mutex_);
                       tunneled_ = inner;
                       send_text(socket, reply_);
                     },
                     "127.0.0.2"};
};

TEST_F(Proxied, AsksForATunnelToTheAddressThatWasChecked) {
  Fetcher fetcher(options(), hooks(ask));
  EXPECT_EQ(run(fetcher, "http://picture.test/a.png"), "200 picture");
  const std::string head = proxy_.heads().at(0);
  EXPECT_TRUE(head.starts_with("CONNECT 127.0.0.1:80 HTTP/1.1\r\n")) << head;
  EXPECT_EQ(header_in(head, "Proxy-Authorization"), "Basic b");
  EXPECT_EQ(header_in(head, "Authorization"), "none");
  EXPECT_TRUE(tunneled().starts_with("GET /a.png HTTP/1.1\r\n")) << tunneled();
  EXPECT_EQ(header_in(tunneled(), "Host"), "picture.test");
  EXPECT_EQ(header_in(tunneled(), "Authorization"), "Bearer a");
  EXPECT_EQ(header_in(tunneled(), "Proxy-Authorization"), "none");
}

TEST_F(Proxied, RefusesWhatItRefusesWithoutOne) {
  Fetcher fetcher(options(), hooks(ask));
  for (const char* to : {"http://inside.test/", "http://127.0.0.3/", "http://none.test/",
                         "http://169.254.169.254/", "http://127.0.0.1:22/", "http://[::1]/"})
    EXPECT_EQ(run(fetcher, to), "403 media_url_blocked") << to;
  EXPECT_EQ(run(fetcher, url()), "403 media_url_blocked");
  EXPECT_EQ(proxy_.accepted(), 0);
  reply_ = http_reply(302, "", "Location: http://inside.test/\r\n");
  EXPECT_EQ(run(fetcher, "http://picture.test/"), "403 media_url_blocked");
  EXPECT_EQ(proxy_.accepted(), 1);
}

TEST_F(Proxied, HasTheProxyLookUpListedNames) {
  MediaSourceOptions asked = options();
  asked.policy = UrlPolicy::kAllowlist;
  asked.allowed_domains = {"outside.test", "127.0.0.3"};
  asked.proxy_looks_up = true;
  Fetcher fetcher(asked, hooks([](const std::string& name) -> HostAddresses {
                    ADD_FAILURE() << name << " was looked up";
                    return {};
                  }));
  EXPECT_EQ(run(fetcher, "http://outside.test/a.png"), "200 picture");
  EXPECT_TRUE(proxy_.heads().at(0).starts_with("GET http://outside.test/a.png HTTP/1.1\r\n"));
  EXPECT_EQ(header_in(proxy_.heads().at(0), "Proxy-Authorization"), "Basic b");
  EXPECT_EQ(run(fetcher, "http://other.test/"), "403 media_url_blocked");
  EXPECT_EQ(run(fetcher, "http://127.0.0.3/"), "403 media_url_blocked");
  EXPECT_EQ(proxy_.accepted(), 1);
}

TEST_F(Proxied, GoesAroundTheProxyWhereToldTo) {
  const LocalServer direct(answer(http_reply(200, "direct")));
  MediaSourceOptions some = options();
  some.allowed_ports.push_back(direct.port());
  some.proxies.exclude({"127.0.0.1"}, "--media-no-proxy");
  Fetcher fetcher(some, hooks(ask));
  EXPECT_EQ(run(fetcher, direct.url()), "200 direct");
  EXPECT_EQ(proxy_.accepted(), 0);
}

TEST_F(Proxied, SaysThatTheProxyFailed) {
  MediaSourceOptions options = options_for(proxy_);
  options.proxies.use("http://gone.test:3128");
  Fetcher fetcher(options, hooks(ask));
  EXPECT_EQ(run(fetcher, "http://picture.test/"), "502 media_fetch_failed");
}

}  // namespace
}  // namespace fovea::serve
