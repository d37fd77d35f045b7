// What clients may not do, and how long they may take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_server.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;
using test::get;
using test::last_words;
using test::post;
using test::RawClient;
using test::RawReply;
using test::TestServer;
using testing::HasSubstr;

TEST(ServerLimits, RefusesMalformedRequestsAndCloses) {
  TestServer tested;
  for (const std::string request :
       {"GET / HTTP/1.1\nHost: h\n\n", "nonsense\r\n\r\n", "GET /% HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", "GET http:/// HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", "\x16\x03\x01\x02\x03",
        "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"}) {
    EXPECT_EQ(last_words(tested.connect(), request), "400 invalid_request") << request;
  }
  EXPECT_EQ(tested.ask(get("/health")).status, 200);
}

TEST(ServerLimits, NamesWhatItDoesNotSpeak) {
  TestServer tested;
  EXPECT_EQ(last_words(tested.connect(), "GET / HTTP/2.0\r\n\r\n"),
            "505 http_version_not_supported");
  EXPECT_EQ(last_words(tested.connect(), get("/", "Transfer-Encoding: gzip\r\n")),
            "501 transfer_coding_not_supported");
  EXPECT_EQ(last_words(tested.connect(), get("/", "Expect: tea\r\n")), "417 expectation_failed");
  EXPECT_EQ(last_words(tested.connect(), get("/", "X-Request-Timeout-Ms: soon\r\n")),
            "400 invalid_value");
}

TEST(ServerLimits, LimitsHeads) {
  HttpOptions options = test::loopback();
  options.max_header_bytes = 1'000;
  options.max_headers = 5;
  TestServer tested(options);
  EXPECT_EQ(tested.ask(get("/health", "A: " + std::string(900, 'x') + "\r\n")).status, 200);
  EXPECT_EQ(last_words(tested.connect(), get("/health", "A: " + std::string(5'000, 'x') + "\r\n")),
            "431 headers_too_large");
  EXPECT_EQ(last_words(tested.connect(), "GET /" + std::string(5'000, 'x')),
            "431 headers_too_large");
  EXPECT_EQ(
      last_words(tested.connect(), get("/health", "A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\n")),
      "431 headers_too_large");
}

TEST(ServerLimits, NamesTheLimitOfBodiesBeforeTheyCome) {
  HttpOptions options = test::loopback();
  options.max_body_bytes = 1'000;
  TestServer tested(options);
  EXPECT_EQ(tested.ask(post("/echo", std::string(1'000, 'x'))).status, 200);
  RawClient client = tested.connect();
  const RawReply reply =
      client.ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 700000000000\r\n\r\n");
  EXPECT_EQ(reply.status, 413);
  EXPECT_THAT(reply.body, HasSubstr("1000 bytes"));
  EXPECT_THAT(reply.body, HasSubstr("--max-body-bytes"));
  EXPECT_THAT(reply.body, HasSubstr("\"code\":\"body_too_large\""));
  EXPECT_EQ(reply.header("Connection"), "close");
}

TEST(ServerLimits, CountsChunkedBodiesAsTheyCome) {
  HttpOptions options = test::loopback();
  options.max_body_bytes = 1'000;
  TestServer tested(options);
  const std::string head = "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  RawClient client = tested.connect();
  const std::string full = head + "3e8\r\n" + std::string(1'000, 'x') + "\r\n";
  EXPECT_EQ(client.ask(full + "0\r\n\r\n").status, 200);
  EXPECT_EQ(last_words(std::move(client), full + "1\r\nx\r\n"), "413 body_too_large");
}

TEST(ServerLimits, AsksClientsThatWaitToGoOn) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(client.ask("body").body, "body");
  EXPECT_EQ(client.ask(get("/health", "Expect: 100-continue\r\n")).body, "ok");
}

TEST(ServerLimits, RefusesClientsThatWait) {
  HttpOptions options = test::loopback();
  options.max_body_bytes = 3;
  TestServer tested(options);
  EXPECT_EQ(last_words(tested.connect(),
                       "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
                       "Content-Length: 4\r\n\r\n"),
            "413 body_too_large");
}

TEST(ServerLimits, AnnouncedLengthsCostNothing) {
  TestServer tested;
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(tested.connect());
    clients.back().send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 700000000\r\n\r\nbegun");
  }
  EXPECT_EQ(tested.ask(get("/health")).status, 200);
}

TEST(ServerLimits, CutsTrickledHeads) {
  HttpOptions options = test::loopback();
  options.header_timeout = milliseconds(150);
  TestServer tested(options);
  RawClient client = tested.connect();
  for (const char byte : get("/health", "A: " + std::string(60'000, 'x') + "\r\n")) {
    if (!client.send({&byte, 1}) || client.is_readable(5)) break;
  }
  const RawReply reply = client.receive_reply();
  EXPECT_EQ(reply.status, 408);
  EXPECT_THAT(reply.body, HasSubstr("\"code\":\"slow_request\""));
}

TEST(ServerLimits, CutsStalledHeadsAndBodies) {
  HttpOptions options = test::loopback();
  options.header_timeout = milliseconds(50);
  options.body_idle_timeout = milliseconds(50);
  TestServer tested(options);
  EXPECT_EQ(last_words(tested.connect(), "GET /"), "408 slow_request");
  EXPECT_EQ(last_words(tested.connect(),
                       "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nbody"),
            "408 slow_request");
  EXPECT_EQ(
      last_words(tested.connect(),
                 "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
      "408 slow_request");
}

TEST(ServerLimits, CutsTrickledBodies) {
  HttpOptions options = test::loopback();
  options.min_body_rate = 1 << 20;
  options.rate_grace = milliseconds(50);
  options.rate_window = milliseconds(100);
  TestServer tested(options);
  RawClient client = tested.connect();
  client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 70000\r\n\r\n");
  for (int i = 0; i < 60'000 && client.send("x") && !client.is_readable(5); ++i) {
  }
  EXPECT_EQ(client.receive_reply().status, 408);
  EXPECT_EQ(tested.wait_observed(1).at(0).error_code, "slow_request");
}

TEST(ServerLimits, LetsSlowClientsBeThatAreFastEnough) {
  HttpOptions options = test::loopback();
  options.min_body_rate = 1;
  options.rate_grace = milliseconds(0);
  options.rate_window = milliseconds(1'000);
  TestServer tested(options);
  RawClient client = tested.connect();
  client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 15\r\n\r\n");
  for (int i = 0; i < 15; ++i) {
    EXPECT_FALSE(client.is_readable(100));
    client.send("x");
  }
  EXPECT_EQ(client.receive_reply().status, 200);
}

TEST(ServerLimits, CutsClientsThatDoNotRead) {
  HttpOptions options = test::loopback();
  options.reply_idle_timeout = milliseconds(100);
  TestServer tested(options);
  RawClient client = tested.connect();
  client.send(get("/big"));
  const test::Observed observed = tested.wait_observed(1).at(0);
  EXPECT_EQ(observed.status, 499);
  EXPECT_EQ(observed.error_code, "slow_reader");
  EXPECT_LT(observed.bytes_out, std::uint64_t{64} << 20);
  EXPECT_TRUE(tested.wait_idle());
}

TEST(ServerLimits, CutsClientsThatReadTooSlowly) {
  HttpOptions options = test::loopback();
  options.min_reply_rate = std::int64_t{1} << 30;
  options.rate_grace = milliseconds(50);
  options.rate_window = milliseconds(100);
  TestServer tested(options);
  RawClient client = tested.connect();
  client.send(get("/big"));
  std::size_t got = 0;
  try {
    for (; got < 60'000; ++got) {
      client.receive(64);
      (void)client.is_readable(0);
      std::this_thread::sleep_for(milliseconds(2));
      if (!tested.wait_observed(0).empty()) break;
    }
  } catch (const std::runtime_error&) {  // cut
  }
  EXPECT_EQ(tested.wait_observed(1).at(0).error_code, "slow_reader");
}

TEST(ServerLimits, EndsIdleConnections) {
  HttpOptions options = test::loopback();
  options.keep_alive_timeout = milliseconds(50);
  TestServer tested(options);
  RawClient client = tested.connect();
  EXPECT_EQ(client.ask(get("/health")).status, 200);
  EXPECT_TRUE(client.is_closed());
}

TEST(ServerLimits, GivesConnectionsThatHaveSentNothingTheTimeOfAHead) {
  HttpOptions options = test::loopback();
  options.header_timeout = milliseconds(50);
  options.keep_alive_timeout = std::chrono::minutes(10);
  TestServer tested(options);
  EXPECT_TRUE(tested.connect().is_closed());
  RawClient client = tested.connect();
  EXPECT_EQ(client.ask(get("/health")).status, 200);
  EXPECT_FALSE(client.is_readable(200));
  EXPECT_EQ(client.ask(get("/health")).status, 200);
}

TEST(ServerLimits, AnswersForHandlersThatMissTheDeadline) {
  HttpOptions options = test::loopback();
  options.reply_grace = milliseconds(50);
  TestServer tested(options);
  RawClient client = tested.connect();
  const RawReply reply = client.ask(post("/hold", "x", "X-Request-Timeout-Ms: 50\r\n"));
  EXPECT_EQ(reply.status, 504);
  EXPECT_THAT(reply.body, HasSubstr("\"code\":\"deadline_exceeded\""));
  EXPECT_TRUE(tested.wait_gone(1));
  tested.release();  // too late
  EXPECT_EQ(client.ask(get("/health")).body, "ok");
}

TEST(ServerLimits, CountsTheBodyTowardsTheDeadline) {
  TestServer tested;
  EXPECT_EQ(last_words(tested.connect(),
                       "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n"
                       "X-Request-Timeout-Ms: 50\r\n\r\nbody"),
            "504 deadline_exceeded");
}

TEST(ServerLimits, TellsOfClientsThatLeaveWithinABody) {
  TestServer tested;
  tested.connect().send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nbody");
  EXPECT_EQ(tested.wait_observed(1).at(0).status, 499);
  EXPECT_EQ(tested.wait_observed(1).at(0).bytes_in, 4u);
}

TEST(ServerLimits, TellsNothingOfClientsThatAskNothing) {
  TestServer tested;
  tested.connect().close();
  tested.connect().send("GET /hea");
  EXPECT_EQ(tested.ask(get("/health")).status, 200);
  EXPECT_TRUE(tested.wait_idle());
  EXPECT_EQ(tested.wait_observed(1).size(), 1u);
}

}  // namespace
}  // namespace fovea::serve
