#include "serve/upstream/forwarder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "serve/upstream/proxied.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::serve {
namespace {

using namespace proxied;
using fovea::test::http_reply;
using fovea::test::send_text;
using fovea::test::wait_for_close;
using testing::HasSubstr;

TEST(Forwarder, PassesARequestThereAndTheAnswerBack) {
  Model model(kAnswers);
  Proxy proxy({&model});
  Sent sent(proxy);
  EXPECT_EQ(sent.reply().status, 200);
  EXPECT_EQ(sent.reply().stream_length, 4U);
  EXPECT_EQ(sent.header("X-A"), "1");
  EXPECT_EQ(sent.header("X-Fovea-Rows"), "7");
  EXPECT_EQ(sent.body(), "text");
  EXPECT_THAT(model.heads(),
              testing::Contains(testing::StartsWith("POST /v1/chat/completions?a=b HTTP/1.1\r\n")));
  proxy.wait_for_metric("fovea_llm_requests_total", 1);
  proxy.wait_for_metric("fovea_llm_in_flight", 0);
}

TEST(Forwarder, AsksEachServerOnceUntilOneAnswers) {
  for (const std::string& bytes : {std::string(), std::string("HTTP/1.1 200 OK\r\nX"),
                                   http_reply(502, "a"), http_reply(503, "a")}) {
    Model bad(answering(bytes));
    Model worse(answering(bytes));
    Model good(kAnswers);
    Proxy proxy({&bad, &worse, &good});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Sent(proxy).body(), "text") << bytes;
    EXPECT_EQ(good.asked, 3);
    EXPECT_LE(bad.asked, 3);
    EXPECT_EQ(proxy.metric("fovea_llm_retries_total"), bad.asked + worse.asked);
  }
}

TEST(Forwarder, PassesTheLastRefusalOn) {
  Model one(answering(http_reply(503, "full", "Retry-After: 7\r\n")));
  Model other(answering(http_reply(503, "full", "Retry-After: 7\r\n")));
  Proxy proxy({&one, &other});
  Sent sent(proxy);
  EXPECT_EQ(sent.reply().status, 503);
  EXPECT_EQ(sent.header("Retry-After"), "7");
  EXPECT_EQ(sent.body(), "full");
  EXPECT_EQ(one.asked + other.asked, 2);
}

TEST(Forwarder, SaysWhyAllHaveFailed) {
  Model one(kCloses);
  Model other(kCloses);
  Proxy proxy({&one, &other});
  Sent sent(proxy);
  EXPECT_EQ(sent.reply().status, 502);
  EXPECT_THAT(sent.body(), HasSubstr("closed the connection without an answer"));
  EXPECT_THAT(sent.body(), HasSubstr("2 tried"));
  EXPECT_EQ(sent.code(), "llm_failed");
  EXPECT_EQ(one.asked + other.asked, 2);
}

TEST(Forwarder, GivesARequestToFourServersAtMost) {
  std::list<Model> full;
  UpstreamOptions options = options_of({});
  for (int i = 0; i < 6; ++i) {
    options.urls.push_back(full.emplace_back(answering(http_reply(503, "full"))).url());
  }
  Proxy proxy(options);
  EXPECT_EQ(Sent(proxy, "cat").body(), "full");
  int asked = 0;
  for (const Model& model : full) asked += model.asked;
  EXPECT_EQ(asked, 4);
}

TEST(Forwarder, DoesNotCountServersThatItCannotReach) {
  std::list<Model> gone;
  UpstreamOptions options = options_of({});
  for (int i = 0; i < 6; ++i) options.urls.push_back(gone.emplace_back(kAnswers).url());
  Model last(kAnswers);
  options.urls.push_back(last.url());
  options.health.interval = std::chrono::minutes(10);
  Proxy proxy(options);
  gone.clear();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Sent(proxy).body(), "text");
  EXPECT_EQ(last.asked, 3);
}

TEST(Forwarder, RestsBetweenHealthChecks) {
  const std::pair<std::chrono::milliseconds HealthOptions::*, const char*> times[] = {
      {&HealthOptions::interval, "--llm-health-interval: expected more than 0 seconds"},
      {&HealthOptions::timeout, "--llm-health-timeout: expected more than 0 seconds"}};
  for (const auto& [time, problem] : times) {
    UpstreamOptions options = options_of({});
    options.urls = {"http://127.0.0.1:1"};
    options.health.*time = std::chrono::milliseconds(0);
    fovea::test::expect_error(ErrorCode::kInvalidArgument, problem,
                              [&] { const Forwarder none(options); });
  }
}

TEST(Forwarder, TellsTheClientNoLengthOfWhichThereAreTwo) {
  Model unsure(answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: 4\r\n\r\ntext"));
  Proxy proxy({&unsure});
  Sent sent(proxy);
  EXPECT_EQ(sent.reply().stream_length, std::nullopt);
  EXPECT_EQ(sent.body(), "text");
}

TEST(Forwarder, NeverAsksAgainOnceAnAnswerHasBegun) {
  Model broken(answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"));
  Model other(answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"));
  Proxy proxy({&broken, &other});
  EXPECT_EQ(Sent(proxy).body(), "abc (broken off)");
  EXPECT_EQ(broken.asked + other.asked, 1);
}

TEST(Forwarder, EndsAtTheDeadlineAndAsksNobodyElse) {
  Model one(kHangs);
  Model other(kHangs);
  Proxy proxy({&one, &other});
  Sent sent(proxy, {}, std::chrono::milliseconds(50));
  EXPECT_EQ(sent.reply().status, 504);
  EXPECT_EQ(sent.code(), "deadline_exceeded");
  EXPECT_EQ(one.asked + other.asked, 1);
}

TEST(Forwarder, EndsWhatTheClientHasLeft) {
  std::promise<void> closed;
  Model hangs([&](int socket) {
    wait_for_close(socket);
    closed.set_value();
  });
  Proxy proxy({&hangs});
  Sent sent(proxy);
  while (hangs.asked == 0) std::this_thread::yield();
  sent.leave();
  EXPECT_EQ(sent.code(), "client_closed_request");
  closed.get_future().get();
}

TEST(Forwarder, SendsAnImageWhereAnotherForwarderSendsIt) {
  Model one(kAnswers);
  Model other(kAnswers);
  Proxy proxy({&one, &other});
  Proxy restarted({&other, &one});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Sent(proxy, "cat").body(), "text");
    EXPECT_EQ(Sent(restarted, "cat").body(), "text");
  }
  EXPECT_EQ(one.asked * other.asked, 0);
  EXPECT_EQ(one.asked + other.asked, 6);
}

TEST(Forwarder, TakesAServerOutUntilItIsHealthy) {
  Model sick(kAnswers);
  Model well(kAnswers);
  Proxy proxy({&sick, &well});
  sick.health = 503;
  proxy.wait_for_metric("fovea_llm_up", 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Sent(proxy).body(), "text");
  EXPECT_EQ(sick.asked, 0);
  sick.health = 200;
  proxy.wait_for_metric("fovea_llm_up", 2);
  well.health = 500;
  proxy.wait_for_metric("fovea_llm_up", 1);
  EXPECT_EQ(Sent(proxy).body(), "text");
  EXPECT_EQ(sick.asked, 1);
}

TEST(Forwarder, SaysThatNoServerIsUp) {
  std::optional<Model> gone(std::in_place, kAnswers);
  Proxy proxy({&*gone});
  gone.reset();
  proxy.wait_for_metric("fovea_llm_up", 0);
  Sent sent(proxy);
  EXPECT_EQ(sent.reply().status, 503);
  EXPECT_EQ(sent.code(), "llm_down");
  EXPECT_EQ(sent.header("Retry-After"), "2");
  EXPECT_THROW(proxy.forwarder.check_up(), ApiError);
}

TEST(Forwarder, EndsAllRequestsWhenItStops) {
  Model hangs(kHangs);
  Proxy proxy({&hangs});
  Sent sent(proxy);
  while (hangs.asked == 0) std::this_thread::yield();
  proxy.forwarder.stop();
  EXPECT_EQ(sent.reply().status, 503);
  EXPECT_EQ(sent.code(), "draining");
}

TEST(Forwarder, RefusesAFileWithoutCertificates) {
  const fovea::test::TemporaryDirectory folder;
  fovea::test::write_text(folder / "none.pem", "text");
  UpstreamOptions options;
  options.urls = {"https://a"};
  options.ca_certs = folder / "none.pem";
  fovea::test::expect_error(ErrorCode::kInvalidArgument, "no certificate",
                            [&] { const Forwarder forwarder(options); });
  options.ca_certs = folder / "absent.pem";
  fovea::test::expect_error(ErrorCode::kNotFound, "absent.pem",
                            [&] { const Forwarder forwarder(options); });
}

/// The addresses of models.test, which is all that this resolver knows.
class Resolver {
 public:
  void set(const std::vector<std::string>& addresses) {
    const std::lock_guard lock(mutex_);
    addresses_ = addresses;
  }
  HostAddresses answer(const std::string& name) {
    const std::lock_guard lock(mutex_);
    HostAddresses host{.outcome = HostAddresses::Outcome::kNoHost, .addresses = {}};
    if (name != "models.test" || addresses_.empty()) return host;
    host.outcome = HostAddresses::Outcome::kFound;
    for (const std::string& address : addresses_) {
      host.addresses.push_back(*parse_address(address));
    }
    return host;
  }
  UpstreamOptions options(std::uint16_t port) {
    UpstreamOptions options;
    options.urls = {"dns+http://models.test:" + std::to_string(port)};
    options.health.interval = std::chrono::milliseconds(10);
    options.discovery = {.interval = std::chrono::milliseconds(10),
                         .ask = [this](const std::string& name) { return answer(name); }};
    return options;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> addresses_;
};

TEST(Forwarder, SendsToTheServersBehindAName) {
  Resolver resolver;
  Model one(kAnswers);
  Model two(kAnswers, "127.0.0.2", one.port());
  Model three(kAnswers, "127.0.0.3", one.port());
  resolver.set({"127.0.0.1", "127.0.0.2", "127.0.0.3"});
  Proxy proxy(resolver.options(one.port()), 3);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(Sent(proxy).body(), "text");
  for (Model* const model : {&one, &two, &three}) {
    EXPECT_EQ(model->asked, 3);
    EXPECT_THAT(model->heads(),
                testing::Each(HasSubstr("\r\nHost: models.test:" + std::to_string(one.port()))));
  }
}

TEST(Forwarder, LetsARequestEndAtAServerThatIsGone) {
  Resolver resolver;
  std::promise<void> may_end;
  std::shared_future<void> ends(may_end.get_future());
  Model old([&](int socket) {
    send_text(socket, kStreamHead + chunk("data: 1\n\n"));
    ends.wait();
    send_text(socket, chunk("data: 2\n\n") + "0\r\n\r\n");
  });
  Model fresh(kAnswers, "127.0.0.2", old.port());
  resolver.set({"127.0.0.1"});
  Proxy proxy(resolver.options(old.port()), 1);
  Sent sent(proxy);
  EXPECT_EQ(sent.reply().status, 200);
  resolver.set({"127.0.0.2"});
  while (fresh.heads().empty()) std::this_thread::yield();
  proxy.wait_for_metric("fovea_llm_up", 1);
  EXPECT_EQ(Sent(proxy).body(), "text") << "of the new one";
  EXPECT_EQ(proxy.metric("fovea_llm_in_flight{llm=\"http://models.test:" +
                         std::to_string(old.port()) + "\",address=\"127.0.0.1\"}"),
            1);
  may_end.set_value();
  EXPECT_EQ(sent.body(), "data: 1\n\ndata: 2\n\n");
  proxy.wait_for_metric("fovea_llm_in_flight", 0);
  EXPECT_EQ(old.asked, 1);
}

TEST(Forwarder, WaitsForANameThatHasNoServersYet) {
  Resolver resolver;
  Model model(kAnswers);
  Proxy proxy(resolver.options(model.port()), 0);
  EXPECT_EQ(Sent(proxy).code(), "llm_down");
  resolver.set({"127.0.0.1"});
  proxy.wait_for_metric("fovea_llm_up", 1);
  EXPECT_EQ(Sent(proxy).body(), "text");
  resolver.set({});
  EXPECT_EQ(Sent(proxy).body(), "text") << "what was known stays";
}

TEST(Forwarder, RefusesWhatIsNoUrl) {
  UpstreamOptions options;
  options.urls = {"localhost:8000"};
  fovea::test::expect_error(ErrorCode::kInvalidArgument, "expected http://",
                            [&] { const Forwarder forwarder(options); });
}

}  // namespace
}  // namespace fovea::serve
