#include "serve/media/fetcher.h"

#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <mutex>

#include "serve/media/fetches.h"

namespace fovea::serve {
namespace {

using test::http_reply;
using test::LocalServer;
using test::send_text;
using ::testing::HasSubstr;

using Lookups = HostAddresses::Outcome;

TEST(Fetcher, FetchesFromPublicAddresses) {
  const LocalServer server(answer(http_reply(200, "picture")));
  Fetcher fetcher(options_for(server), hooks());
  EXPECT_EQ(run(fetcher, server.url()), "200 picture");
}

// Nobody may learn whether there is something behind a URL that is refused.
TEST(Fetcher, RefusesOtherAddressesWithoutAConnection) {
  const LocalServer server(answer(http_reply(200, "secret")));
  const std::string port = ":" + std::to_string(server.port()) + "/";
  const auto ask = [](const std::string& name) {
    if (name == "both.test") return addresses({"93.184.216.34", "127.0.0.1"});
    if (name == "other.test") return addresses({"127.0.0.1", "::1"});
    if (name == "mapped.test") return addresses({"::ffff:127.0.0.1"});
    if (name == "localhost") return ask_system(name);
    return HostAddresses{.outcome = Lookups::kNoHost, .addresses = {}};
  };
  Fetcher fetcher(options_for(server), {.ask = ask});
  for (const char* host : {"127.0.0.1",
                           "0.0.0.0",
                           "[::1]",
                           "[::]",
                           "[::ffff:127.0.0.1]",
                           "[::ffff:169.254.169.254]",
                           "169.254.169.254",
                           "10.0.0.1",
                           "2130706433",
                           "0x7f000001",
                           "0x7f.1",
                           "127.1",
                           "0177.0.0.1",
                           "localhost",
                           "both.test",
                           "other.test",
                           "mapped.test",
                           "none.test",
                           "user@127.0.0.1",
                           "both.test\\@127.0.0.1",
                           "127.0.0.1\t",
                           "\xe2\x91\xa0.test",
                           "",
                           "[fe80::1%25lo]"}) {
    EXPECT_EQ(run(fetcher, "http://" + std::string(host) + port), "403 media_url_blocked") << host;
  }
  EXPECT_EQ(server.accepted(), 0);
}

TEST(Fetcher, EncodesNamesOfFiles) {
  std::string asked;
  const LocalServer server([&](int socket, const std::string& head) {
    asked = head.substr(0, head.find("\r\n"));
    send_text(socket, http_reply(200, "picture"));
  });
  Fetcher fetcher(options_for(server), hooks());
  EXPECT_EQ(run(fetcher, server.url("/\xe5\x9b\xbe b.jpg")), "200 picture");
  EXPECT_EQ(asked, "GET /%E5%9B%BE%20b.jpg HTTP/1.1");
}

TEST(Fetcher, SaysWhatIsMalformed) {
  const LocalServer server(answer(http_reply(200, "secret")));
  Fetcher fetcher(options_for(server), hooks());
  EXPECT_EQ(run(fetcher, server.url("/%2")), "400 invalid_value");
  EXPECT_EQ(run(fetcher, server.url("/a\tb")), "400 invalid_value");
  EXPECT_EQ(server.accepted(), 0);
}

TEST(Fetcher, RefusesOtherPorts) {
  const LocalServer server(answer(http_reply(200, "secret")));
  Fetcher fetcher({.policy = UrlPolicy::kAny}, hooks());
  EXPECT_EQ(run(fetcher, server.url()), "403 media_url_blocked");
  EXPECT_EQ(run(fetcher, "http://127.0.0.1:22/"), "403 media_url_blocked");
  EXPECT_EQ(server.accepted(), 0);
}

TEST(Fetcher, ConnectsToTheAddressesItHasChecked) {
  LocalServer server(answer(http_reply(200, "picture")));
  const LocalServer inside(answer(http_reply(200, "secret")), "127.0.0.2");
  std::atomic<int> asked = 0;
  const auto rebind = [&](const std::string& /*name*/) {
    return addresses({++asked == 1 ? "127.0.0.1" : "127.0.0.2"});
  };
  Fetcher fetcher(options_for(server), hooks(rebind));
  const std::string url = "http://rebind.test:" + std::to_string(server.port()) + "/";
  EXPECT_EQ(run(fetcher, url), "200 picture");
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(server.heads().at(0), HasSubstr("\r\nHost: rebind.test:"));
  EXPECT_EQ(run(fetcher, url), "403 media_url_blocked");
  EXPECT_EQ(asked, 2);
}

TEST(Fetcher, LooksAtTheListBeforeItAsksForNames) {
  const LocalServer server(answer(http_reply(200, "picture")));
  std::atomic<int> asked = 0;
  const auto ask = [&](const std::string& /*name*/) {
    ++asked;
    return addresses({"127.0.0.1"});
  };
  MediaSourceOptions options = options_for(server);
  options.policy = UrlPolicy::kAllowlist;
  options.allowed_domains = {"*.listed.test"};
  Fetcher fetcher(options, hooks(ask));
  const std::string port = ":" + std::to_string(server.port()) + "/";
  EXPECT_EQ(run(fetcher, "http://other.test" + port), "403 media_url_blocked");
  EXPECT_EQ(run(fetcher, "http://listed.test" + port), "403 media_url_blocked");
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(run(fetcher, "http://a.listed.test" + port), "200 picture");
}

TEST(Fetcher, KeepsListedHostsFromPrivateAddresses) {
  MediaSourceOptions options;
  options.policy = UrlPolicy::kAllowlist;
  options.allowed_domains = {"listed.test"};
  Fetcher fetcher(options,
                  hooks([](const std::string& /*name*/) { return addresses({"127.0.0.2"}); }));
  EXPECT_EQ(run(fetcher, "http://listed.test/"), "403 media_url_blocked");
}

TEST(Fetcher, FetchesFromAnyAddressIfToldTo) {
  const LocalServer inside(answer(http_reply(200, "picture")), "127.0.0.2");
  MediaSourceOptions options = options_for(inside);
  options.policy = UrlPolicy::kAny;
  Fetcher fetcher(options, hooks());
  EXPECT_EQ(run(fetcher, "http://127.0.0.2:" + std::to_string(inside.port())), "200 picture");
}

TEST(Fetcher, FollowsRedirects) {
  const LocalServer server([](int socket, const std::string& head) {
    const bool is_first = head.starts_with("GET /first");
    send_text(socket,
              is_first ? http_reply(307, "", "Location: /second\r\n") : http_reply(200, "picture"));
  });
  Fetcher fetcher(options_for(server), hooks());
  EXPECT_EQ(run(fetcher, server.url("/first")), "200 picture");
}

TEST(Fetcher, AppliesAllRulesToRedirects) {
  const LocalServer inside(answer(http_reply(200, "secret")), "127.0.0.2");
  std::string location;
  const LocalServer server([&](int socket, const std::string& /*head*/) {
    send_text(socket, http_reply(302, "", "Location: " + location + "\r\n"));
  });
  MediaSourceOptions options = options_for(server);
  options.allowed_ports.push_back(inside.port());
  Fetcher fetcher(options, hooks());
  const std::string port = ":" + std::to_string(inside.port()) + "/";
  for (const std::string& to :
       {"http://127.0.0.2" + port, "//127.0.0.2" + port, "http://user@127.0.0.1" + port,
        "http://2130706434" + port, "http://0x7f.2" + port,
        "http://localhost.test\\@127.0.0.2" + port, std::string("http://127.0.0.1:22/"),
        std::string("file:///etc/passwd"), std::string("ftp://127.0.0.1/"),
        std::string("gopher://127.0.0.1/")}) {
    location = to;
    EXPECT_EQ(run(fetcher, server.url()), "403 media_url_blocked") << to;
  }
  EXPECT_EQ(inside.accepted(), 0);
}

TEST(Fetcher, KeepsCredentialsFromOtherHosts) {
  LocalServer other(answer(http_reply(200, "picture")));
  LocalServer first([&](int socket, const std::string& head) {
    const bool is_last = head.starts_with("GET /last");
    const std::string to = is_last ? other.url() : "/last";
    send_text(socket, http_reply(302, "", "Location: " + to + "\r\n"));
  });
  MediaSourceOptions options = options_for(first);
  options.allowed_ports.push_back(other.port());
  options.headers =
      headers_of_file(R"({"*": {"User-Agent": "me"}, "http://127.0.0.1:)" +
                      std::to_string(first.port()) + R"(": {"Authorization": "Bearer secret"}})");
  Fetcher fetcher(options, hooks());
  EXPECT_EQ(run(fetcher, first.url()), "200 picture");
  for (const std::string& head : first.heads()) {
    EXPECT_EQ(header_in(head, "Authorization"), "Bearer secret");
    EXPECT_EQ(header_in(head, "User-Agent"), "me");
  }
  EXPECT_EQ(first.heads().size(), 2U);
  EXPECT_EQ(header_in(other.heads().at(0), "Authorization"), "none");
  EXPECT_EQ(header_in(other.heads().at(0), "User-Agent"), "me");
}

TEST(Fetcher, FollowsNoMoreRedirectsThanItMay) {
  const LocalServer server(answer(http_reply(301, "", "Location: /again\r\n")));
  MediaSourceOptions options = options_for(server);
  for (const int redirects : {0, 2}) {
    const int before = server.accepted();
    options.max_redirects = redirects;
    Fetcher fetcher(options, hooks());
    EXPECT_EQ(run(fetcher, server.url()), "502 media_fetch_failed");
    EXPECT_EQ(server.accepted() - before, redirects + 1);
  }
}

TEST(Fetcher, TellsFinalAnswersFromThoseThatMayChange) {
  int status = 0;
  const LocalServer server([&](int socket, const std::string& /*head*/) {
    send_text(socket, http_reply(status, "body"));
  });
  Fetcher fetcher(options_for(server), hooks());
  for (const auto& [answered, expected] :
       {std::pair(400, "422 media_fetch_4xx"), std::pair(401, "422 media_fetch_4xx"),
        std::pair(404, "422 media_fetch_4xx"), std::pair(408, "502 media_fetch_failed"),
        std::pair(429, "502 media_fetch_failed"), std::pair(500, "502 media_fetch_failed"),
        std::pair(503, "502 media_fetch_failed"), std::pair(206, "502 media_fetch_failed"),
        std::pair(302, "502 media_fetch_failed"), std::pair(200, "200 body")}) {
    status = answered;
    EXPECT_EQ(run(fetcher, server.url()), expected) << answered;
  }
}

TEST(Fetcher, SaysWhatIsTooLarge) {
  const LocalServer server(answer(http_reply(200, std::string(1001, 'x'))));
  Fetcher fetcher(options_for(server), hooks());
  EXPECT_EQ(run(fetcher, server.url()), "422 image_too_large");
  Fetch video = fetch_of(server.url());
  video.modality = Modality::kVideo;
  EXPECT_EQ(start(fetcher, video).get(), "422 video_too_large");
}

TEST(Fetcher, FailsWithoutAWholeReply) {
  const LocalServer server(answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"));
  Fetcher fetcher(options_for(server), hooks());
  EXPECT_EQ(run(fetcher, server.url()), "502 media_fetch_failed");
}

TEST(Fetcher, FailsWithoutAnAnswerOfTheNameServer) {
  Fetcher fetcher({}, hooks([](const std::string& /*name*/) {
                    return HostAddresses{.outcome = Lookups::kFailed, .addresses = {}};
                  }));
  EXPECT_EQ(run(fetcher, "http://picture.test/"), "502 media_fetch_failed");
}

TEST(Fetcher, GivesUpInTime) {
  const LocalServer server(hang);
  Fetcher fetcher(options_for(server), hooks());
  Fetch fetch = fetch_of(server.url());
  fetch.timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(start(fetcher, fetch).get(), "504 media_fetch_timeout");
}

TEST(Fetcher, KeepsTheDeadlineOfTheRequest) {
  const LocalServer server(hang);
  Fetcher fetcher(options_for(server), hooks());
  Fetch fetch = fetch_of(server.url());
  fetch.bounds.deadline = Clock::now() + std::chrono::milliseconds(50);
  EXPECT_EQ(start(fetcher, fetch).get(), "504 deadline_exceeded");
  const int before = server.accepted();
  EXPECT_EQ(start(fetcher, fetch).get(), "504 deadline_exceeded");
  EXPECT_EQ(server.accepted(), before);
}

TEST(Fetcher, StopsWhenTheClientHasLeft) {
  std::stop_source client;
  const LocalServer server([&](int socket, const std::string& /*head*/) {
    client.request_stop();
    test::wait_for_close(socket);
  });
  Fetcher fetcher(options_for(server), hooks());
  Fetch fetch = fetch_of(server.url());
  fetch.bounds.stop = client.get_token();
  EXPECT_EQ(start(fetcher, fetch).get(), "499 client_closed_request");
}

TEST(Fetcher, WaitsForNoNameServerLongerThanItMay) {
  std::latch released(1);
  std::stop_source client;
  Fetcher fetcher({}, hooks([&](const std::string& name) {
                    if (name == "leave.test") client.request_stop();
                    released.wait();
                    return addresses({"127.0.0.1"});
                  }));
  Fetch slow = fetch_of("http://slow.test/");
  slow.timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(start(fetcher, slow).get(), "504 media_fetch_timeout");
  Fetch left = fetch_of("http://leave.test/");
  left.bounds.stop = client.get_token();
  EXPECT_EQ(start(fetcher, left).get(), "499 client_closed_request");
  released.count_down();
}

TEST(Fetcher, EndsWhatRunsAndWhatWaits) {
  std::vector<std::future<std::string>> results;
  const LocalServer server(hang);
  {
    Fetcher fetcher(options_for(server), hooks());
    for (int i = 0; i < 4; ++i) results.push_back(start(fetcher, fetch_of(server.url())));
  }
  for (std::future<std::string>& result : results) EXPECT_EQ(result.get(), "503 draining");
}

TEST(Fetcher, LetsNoEndlessQueueGrow) {
  const LocalServer server(hang);
  MediaSourceOptions options = options_for(server);
  options.max_frames = 1;
  Fetcher fetcher(options, hooks());
  std::vector<std::future<std::string>> results;
  int started = 0;
  try {
    for (; started < 1000; ++started) results.push_back(start(fetcher, fetch_of(server.url())));
    ADD_FAILURE() << "expected a limit";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 429);
    EXPECT_EQ(error.code(), "queue_full");
    EXPECT_EQ(error.retry_after_s, 1);
  }
  EXPECT_GE(started, 100);
}

}  // namespace
}  // namespace fovea::serve
