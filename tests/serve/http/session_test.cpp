#include "serve/http/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "serve/http/stream_pair.h"

namespace fovea::serve {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kRequest = "GET /work HTTP/1.1\r\nHost: h\r\n\r\n";

/// A session on the thread of the test, which sees every step of it.
class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    router_.add({.method = "GET",
                 .pattern = "/work",
                 .handler = [this](const std::shared_ptr<Exchange>& exchange,
                                   const PathArguments&) { exchange_ = exchange; }});
    router_.add({.method = "POST",
                 .pattern = "/echo",
                 .handler =
                     [](const std::shared_ptr<Exchange>& exchange, const PathArguments&) {
                       exchange->reply(
                           text_reply(200, "text/plain", std::string(exchange->request().text())));
                     },
                 .is_instant = true});
    parts_.router = &router_;
    parts_.gate = [this](const RequestHead&, const Route&) { return decision_; };
    parts_.observer = [this](const Served& served) {
      statuses_.push_back(served.status);
      EXPECT_EQ(in_progress_, 1) << "it counts until the reply has gone";
    };
    parts_.run_task = [this](std::function<void()> task) { tasks_.push_back(std::move(task)); };
  }

  void start() {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    pair_.client.reset(ends[1]);
    Socket socket(pair_.context);
    socket.assign({AF_UNIX, 0}, ends[0]);
    const auto session = std::make_shared<Session>(
        std::move(socket), nullptr, Accepted{.peer = "unix"}, connections_.take("unix"), group_);
    session_ = session;
    session->start();
    pair_.poll();
  }
  /// What the client gets for bytes that it sends.
  std::string ask(std::string_view request) {
    pair_.send(request);
    pair_.poll();
    return pair_.receive();
  }
  /// Calls the handlers that wait for a thread.
  void run_tasks() {
    for (const auto& task : std::exchange(tasks_, {})) task();
    pair_.poll();
  }
  std::string reply_now() {
    run_tasks();
    std::exchange(exchange_, nullptr)->reply(text_reply(200, "text/plain", "done"));
    pair_.poll();
    return pair_.receive();
  }
  [[nodiscard]] std::size_t count(SessionState state) { return group_.in(state).size(); }
  [[nodiscard]] bool is_over() const { return session_.expired(); }

  HttpOptions options_;
  Router router_;
  Server::Parts parts_;
  std::atomic<std::int64_t> in_progress_ = 0;
  Connections connections_{8};
  SessionGroup group_{.options = options_, .parts = parts_, .requests_in_progress = in_progress_};
  std::weak_ptr<Session> session_;
  std::variant<Reply, Permit> decision_ = Permit{};
  std::vector<std::function<void()>> tasks_;
  std::shared_ptr<Exchange> exchange_;
  std::vector<int> statuses_;
  test::StreamPair pair_;  // its thread ends sessions, which use the others
};

TEST_F(SessionTest, ServesOneRequestAfterTheOther) {
  start();
  EXPECT_EQ(count(SessionState::kIdle), 1U);
  EXPECT_EQ(ask("GET /wo"), "");
  EXPECT_EQ(count(SessionState::kTalking), 1U);
  EXPECT_EQ(in_progress_, 0) << "its head has not come";
  EXPECT_EQ(ask("rk HTTP/1.1\r\nHost: h\r\n\r\n"), "");
  EXPECT_EQ(count(SessionState::kWorking), 1U);
  EXPECT_EQ(in_progress_, 1);
  EXPECT_THAT(reply_now(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(count(SessionState::kIdle), 1U);
  EXPECT_EQ(in_progress_, 0);
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"),
              EndsWith("\r\n\r\nabc"));
  EXPECT_EQ(statuses_, (std::vector{200, 200}));
  EXPECT_FALSE(is_over());
}

TEST_F(SessionTest, KeepsARequestThatComesWhileAnotherIsWorkedOn) {
  start();
  (void)ask(kRequest);
  EXPECT_EQ(ask(kRequest), "");
  EXPECT_THAT(reply_now(), EndsWith("done"));
  EXPECT_THAT(reply_now(), EndsWith("done"));
}

TEST_F(SessionTest, TakesPlaceAndRoomUntilTheReplyHasGone) {
  const auto place = std::make_shared<int>();
  std::uint64_t room = 0;
  Permit permit;
  permit.grow = [&](std::uint64_t bytes) { room = bytes; };
  permit.enter = [&]() -> std::shared_ptr<void> { return place; };
  decision_ = std::move(permit);
  start();
  (void)ask("GET /work HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na");
  EXPECT_EQ(room, 2U);
  EXPECT_EQ(place.use_count(), 1) << "its body has not come";
  (void)ask("b");
  EXPECT_EQ(place.use_count(), 2);
  EXPECT_THAT(reply_now(), EndsWith("done"));
  EXPECT_EQ(place.use_count(), 1);
}

TEST_F(SessionTest, RefusesWithoutReadingTheBody) {
  decision_ = text_reply(429, "text/plain", "full");
  start();
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"),
              HasSubstr("429 Too Many Requests"));
  EXPECT_FALSE(is_over()) << "a small body is dropped";
  decision_ = Permit{};
  EXPECT_THAT(ask("abcdePOST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nf"),
              EndsWith("\r\n\r\nf"));
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n"),
              HasSubstr("Connection: close"));
  EXPECT_EQ(statuses_, (std::vector{429, 200, 413}));
}

TEST_F(SessionTest, LeavesALargeBodyOfAnInstantRouteToAThreadThatComputes) {
  start();
  const std::string body((std::size_t{64} << 10) + 1, 'x');
  const std::string head = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 65537\r\n\r\n";
  EXPECT_EQ(ask(head + body), "");
  run_tasks();
  EXPECT_THAT(pair_.receive(), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_EQ(statuses_, std::vector{200});
}

TEST_F(SessionTest, TellsTheHandlerThatTheClientHasLeft) {
  start();
  (void)ask(kRequest);
  run_tasks();
  pair_.shut_sending();
  pair_.poll();
  EXPECT_TRUE(exchange_->gone().stop_requested());
  EXPECT_EQ(statuses_, std::vector{499});
  EXPECT_TRUE(is_over());
  exchange_->reply({.status = 200});  // too late, and harmless
}

TEST_F(SessionTest, AnswersWhereTheHandlerIsLate) {
  options_.request_timeout = std::chrono::milliseconds(1);
  options_.reply_grace = std::chrono::milliseconds(0);
  start();
  (void)ask(kRequest);
  run_tasks();
  while (statuses_.empty()) pair_.run_one();
  EXPECT_THAT(pair_.receive(), HasSubstr("deadline_exceeded"));
  EXPECT_TRUE(exchange_->gone().stop_requested());
}

TEST_F(SessionTest, AnswersARequestThatItsHandlerDrops) {
  start();
  (void)ask(kRequest);
  run_tasks();
  exchange_.reset();
  pair_.poll();
  EXPECT_THAT(pair_.receive(), HasSubstr("500 Internal Server Error"));
}

TEST_F(SessionTest, EndsAtOnceWhereAClientHasAskedForNothing) {
  start();
  pair_.send("GET /wo");
  pair_.shut_sending();
  pair_.poll();
  EXPECT_TRUE(is_over());
  EXPECT_TRUE(statuses_.empty());
}

TEST_F(SessionTest, DrainsWhenItIsIdle) {
  start();
  (void)ask(kRequest);
  group_.is_draining = true;
  session_.lock()->drain();
  EXPECT_THAT(reply_now(), HasSubstr("Connection: close"));
  EXPECT_TRUE(is_over());
  group_.is_draining = false;
  start();
  group_.is_draining = true;
  session_.lock()->drain();
  pair_.poll();
  EXPECT_TRUE(is_over());
}

TEST_F(SessionTest, AnswersWhatIsWorkedOnWhenItIsAborted) {
  start();
  (void)ask(kRequest);
  run_tasks();
  session_.lock()->abort();
  pair_.poll();
  EXPECT_THAT(pair_.receive(), HasSubstr("draining"));
  EXPECT_TRUE(exchange_->gone().stop_requested());
  EXPECT_TRUE(is_over());
}

TEST_F(SessionTest, GivesWayUnlessAHandlerWorks) {
  start();
  session_.lock()->give_way();
  pair_.poll();
  EXPECT_TRUE(is_over());
  start();
  (void)ask("GET /wo");
  session_.lock()->give_way();
  pair_.poll();
  EXPECT_TRUE(is_over());
  start();
  (void)ask(kRequest);
  session_.lock()->give_way();
  EXPECT_THAT(reply_now(), EndsWith("done"));
  EXPECT_FALSE(is_over());
}

}  // namespace
}  // namespace fovea::serve
