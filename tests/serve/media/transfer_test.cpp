#include "serve/media/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/local_server.h"

namespace fovea::serve {
namespace {

using Outcome = TransferReply::Outcome;
using test::http_reply;
using test::LocalServer;
using test::send_text;
using ::testing::HasSubstr;
using ::testing::Not;

LocalServer::Answer answer(const std::string& text) {
  return [text](int socket, const std::string& /*head*/) { send_text(socket, text); };
}

Transfer to(const LocalServer& server, const std::string& path = "/") {
  return {.url = parse_url(server.url(path)).value(),
          .addresses = {parse_address("127.0.0.1").value()},
          .max_bytes = 1000,
          .connect_timeout = std::chrono::seconds(30),
          .until = Clock::now() + std::chrono::seconds(30),
          .stop = {}};
}

Outcome outcome_of(const std::string& text) {
  const LocalServer server(answer(text));
  return get(to(server)).outcome;
}

TEST(Transfer, GetsABody) {
  const LocalServer server(answer(http_reply(200, "picture")));
  const TransferReply reply = get(to(server));
  EXPECT_EQ(reply.outcome, Outcome::kReply);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(std::string(reply.body.begin(), reply.body.end()), "picture");
}

TEST(Transfer, SaysNoMoreThanItMust) {
  LocalServer server(answer(http_reply(200, "x")));
  (void)get(to(server, "/a/../b.png?size=2"));
  const std::string head = server.heads().at(0);
  EXPECT_THAT(head, testing::StartsWith("GET /a/../b.png?size=2 HTTP/1.1\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nHost: 127.0.0.1:" + std::to_string(server.port()) + "\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nAccept-Encoding: identity\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nUser-Agent: fovea/"));
  for (const char* name : {"Cookie", "Authorization", "Referer", "Proxy"}) {
    EXPECT_THAT(head, Not(HasSubstr(name)));
  }
}

TEST(Transfer, ConnectsToTheGivenAddressOfAName) {
  LocalServer server(answer(http_reply(200, "x")));
  Transfer transfer = to(server);
  transfer.url.kind = HostKind::kName;
  transfer.url.host = "picture.test";
  EXPECT_EQ(get(transfer).outcome, Outcome::kReply);
  EXPECT_THAT(server.heads().at(0), HasSubstr("\r\nHost: picture.test:"));
}

TEST(Transfer, ConnectsToNoOtherAddress) {
  const LocalServer server(answer(http_reply(200, "x")));
  Transfer transfer = to(server);
  transfer.addresses = {parse_address("127.0.0.2").value()};
  EXPECT_EQ(get(transfer).outcome, Outcome::kFailed);
  EXPECT_EQ(server.accepted(), 0);
}

TEST(Transfer, FollowsNoRedirectAndReadsNoneOfItsBody) {
  const LocalServer server(
      answer(http_reply(302, std::string(5000, 'x'), "Location: /elsewhere\r\n")));
  const TransferReply reply = get(to(server));
  EXPECT_EQ(reply.outcome, Outcome::kReply);
  EXPECT_EQ(reply.status, 302);
  EXPECT_EQ(reply.location, "/elsewhere");
  EXPECT_TRUE(reply.body.empty());
  EXPECT_EQ(server.accepted(), 1);
}

TEST(Transfer, CountsBytesWhetherTheyAreAnnouncedOrNot) {
  EXPECT_EQ(outcome_of(http_reply(200, std::string(1000, 'x'))), Outcome::kReply);
  EXPECT_EQ(outcome_of(http_reply(200, std::string(1001, 'x'))), Outcome::kTooLarge);
  const std::string head = "HTTP/1.1 200 OK\r\n";
  EXPECT_EQ(outcome_of(head + "\r\n" + std::string(1001, 'x')), Outcome::kTooLarge);
  EXPECT_EQ(outcome_of(head + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'x') +
                       "\r\n0\r\n\r\n"),
            Outcome::kTooLarge);
  EXPECT_EQ(outcome_of(head + "Content-Length: 99999999999\r\n\r\n"), Outcome::kTooLarge);
}

TEST(Transfer, FailsWithoutAWholeReply) {
  for (const char* text :
       {"", "no HTTP at all\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nshort",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"}) {
    EXPECT_EQ(outcome_of(text), Outcome::kFailed) << text;
  }
}

TEST(Transfer, EndsEndlessHeaders) {
  std::string text = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 3000; ++i) text += "Name: some longer value of a header\r\n";
  EXPECT_EQ(outcome_of(text + "\r\n"), Outcome::kFailed);
}

TEST(Transfer, FailsWhereNobodyListens) {
  Transfer transfer;
  {
    const LocalServer server(answer(""));
    transfer = to(server);
  }
  EXPECT_EQ(get(transfer).outcome, Outcome::kFailed);
}

TEST(Transfer, DoesNotTrustAServerThatSpeaksNoTls) {
  const LocalServer server(answer(http_reply(200, "x")));
  Transfer transfer = to(server);
  transfer.url.is_https = true;
  EXPECT_EQ(get(transfer).outcome, Outcome::kFailed);
}

TEST(Transfer, EndsInTime) {
  const LocalServer server([](int socket, const std::string& /*head*/) {
    send_text(socket, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome");
    test::wait_for_close(socket);
  });
  Transfer transfer = to(server);
  transfer.until = Clock::now() + std::chrono::milliseconds(50);
  EXPECT_EQ(get(transfer).outcome, Outcome::kLate);
}

TEST(Transfer, StopsWhenAsked) {
  std::stop_source stop;
  const LocalServer server([&](int socket, const std::string& /*head*/) {
    stop.request_stop();
    test::wait_for_close(socket);
  });
  Transfer transfer = to(server);
  transfer.stop = stop.get_token();
  EXPECT_EQ(get(transfer).outcome, Outcome::kStopped);
}

std::string target(const std::string& from, const std::string& location) {
  const auto url = redirect_target(parse_url(from).value(), location);
  return url ? url->text() : "refused";
}

TEST(RedirectTarget, JoinsRelativeReferences) {
  EXPECT_EQ(target("http://a.b/c/d?e", "f.png"), "http://a.b:80/c/f.png");
  EXPECT_EQ(target("http://a.b/c/d?e", "/f.png"), "http://a.b:80/f.png");
  EXPECT_EQ(target("http://a.b/c/d?e", "//f.g/h"), "http://f.g:80/h");
  EXPECT_EQ(target("http://a.b:81/", "?x"), "http://a.b:81/?x");
  EXPECT_EQ(target("http://a.b/", "https://c.d/"), "https://c.d:443/");
  EXPECT_EQ(target("http://a.b/", "http://c.d/ x"), "http://c.d:80/%20x");
}

TEST(RedirectTarget, RefusesWhatNoUrlMayBe) {
  for (const char* location :
       {"http://user@c.d/", "//user@c.d/", "http://0x7f.1/", "file:///etc/passwd", "ftp://c.d/",
        "http:\\\\c.d/", "javascript:x", "http://c.d/\tx"}) {
    EXPECT_EQ(target("http://a.b/", location), "refused") << location;
  }
}

TEST(RedirectTarget, NeverLeavesTls) {
  EXPECT_EQ(target("https://a.b/", "http://a.b/"), "refused");
  EXPECT_EQ(target("https://a.b/", "/c"), "https://a.b:443/c");
}

}  // namespace
}  // namespace fovea::serve
