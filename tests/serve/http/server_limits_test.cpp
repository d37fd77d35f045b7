// What clients may not do, and how long they may take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "serve/http/error_reply.h"
#include "test_server.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;
using test::get;
using test::post;
using test::RawClient;
using test::RawReply;
using test::TestServer;
using testing::HasSubstr;

/// "status code" of a reply that closes the connection.
std::string last_words(RawClient client, const std::string& request) {
  const RawReply reply = client.ask(request);
  const std::size_t code = reply.body.find("\"code\":\"");
  if (code == std::string::npos) return std::to_string(reply.status) + " without a code";
  if (reply.header("Connection") != "close") return "keeps the connection";
  client.shut_sending();
  if (!client.is_closed()) return "sends more";
  const std::size_t begin = code + 8;
  return std::to_string(reply.status) + " " +
         reply.body.substr(begin, reply.body.find('"', begin) - begin);
}

TEST(ServerLimits, RefusesMalformedRequestsAndCloses) {
  TestServer tested;
  for (const std::string request :
       {"GET / HTTP/1.1\nHost: h\n\n", "nonsense\r\n\r\n", "GET /% HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
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

TEST(ServerLimits, AsksTheGateBeforeTheBody) {
  const auto refuse = [](const RequestHead& head,
                         const Route& route) -> std::variant<Reply, Permit> {
    EXPECT_EQ(route.pattern, "/echo");
    EXPECT_TRUE(head.content_length);
    ApiError error(429, "queue_full", "later");
    error.retry_after_s = 7;
    return error_reply(error, head);
  };
  TestServer tested(test::loopback(), refuse);
  RawClient large = tested.connect();
  const RawReply reply =
      large.ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 65537\r\n\r\n");
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.header("Retry-After"), "7");
  EXPECT_EQ(reply.header("Connection"), "close");
  // A small body costs less than a new connection.
  RawClient small = tested.connect();
  EXPECT_EQ(small.ask(post("/echo", std::string(65'536, 'x'))).header("Connection"), "keep-alive");
  EXPECT_EQ(small.ask(post("/echo", "x")).status, 429);
}

TEST(ServerLimits, LetsClientsReadARefusalThatCutsTheirBodyOff) {
  const auto refuse = [](const RequestHead& head, const Route&) -> std::variant<Reply, Permit> {
    return error_reply(ApiError(503, "starting", "later"), head);
  };
  TestServer tested(test::loopback(), refuse);
  RawClient client = tested.connect();
  client.send(post("/echo", std::string(16 << 20, 'x')));
  EXPECT_EQ(client.receive_reply().status, 503);
}

/// Asks for room are noted; those for more than `most` are refused.
Gate gate_with_room(std::vector<std::uint64_t>& asked, std::uint64_t most) {
  return [&asked, most](const RequestHead&, const Route&) {
    Permit permit;
    permit.grow = [&asked, most](std::uint64_t bytes) {
      asked.push_back(bytes);
      if (bytes > most) throw ApiError(429, "queue_full", "later");
    };
    return permit;
  };
}

/// A body of this size in chunks of one byte.
std::string in_chunks(std::size_t size) {
  std::string body = "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::size_t i = 0; i < size; ++i) body += "1\r\nx\r\n";
  return body + "0\r\n\r\n";
}

TEST(ServerLimits, AsksForRoomInStepsThatDouble) {
  constexpr std::uint64_t kStep = 64 << 10;
  std::vector<std::uint64_t> asked;
  TestServer tested(test::loopback(), gate_with_room(asked, 10 * kStep));
  RawClient client = tested.connect();
  EXPECT_EQ(client.ask(post("/echo", "four")).status, 200);
  EXPECT_EQ(client.ask(get("/health")).status, 200);
  EXPECT_EQ(client.ask(post("/echo", std::string(3 * kStep, 'x'))).status, 200);
  EXPECT_EQ(client.ask(in_chunks(kStep + 1)).body.size(), kStep + 1);
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{4, kStep, 2 * kStep, 3 * kStep, kStep, 2 * kStep}));
}

TEST(ServerLimits, AsksForRoomAsBytesComeNotAsTheyAreAnnounced) {
  std::vector<std::uint64_t> asked;
  TestServer tested(test::loopback(), gate_with_room(asked, 1 << 20));
  RawClient client = tested.connect();
  client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 700000000\r\n\r\nbegun");
  client.close();
  EXPECT_EQ(tested.wait_observed(1).at(0).status, 499);
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{64 << 10}));
}

TEST(ServerLimits, RefusesABodyThatFindsNoMoreRoomOnItsWay) {
  constexpr std::uint64_t kStep = 64 << 10;
  std::vector<std::uint64_t> asked;
  TestServer tested(test::loopback(), gate_with_room(asked, kStep));
  EXPECT_EQ(last_words(tested.connect(), post("/echo", std::string(3 * kStep, 'x'))),
            "429 queue_full");
  EXPECT_EQ(last_words(tested.connect(), in_chunks(kStep + 1)), "429 queue_full");
  EXPECT_EQ(tested.ask(post("/echo", "x")).status, 200);
}

TEST(ServerLimits, TakesAPlaceWhenTheBodyIsThere) {
  std::atomic<int> entered = 0;
  std::atomic<bool> is_full = false;
  const auto gate = [&](const RequestHead&, const Route&) -> std::variant<Reply, Permit> {
    Permit permit;
    permit.enter = [&]() -> std::shared_ptr<void> {
      if (is_full) throw ApiError(429, "queue_full", "later");
      ++entered;
      return std::make_shared<int>(1);
    };
    return permit;
  };
  TestServer tested(test::loopback(), gate);
  RawClient slow = tested.connect();
  slow.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbo");
  EXPECT_EQ(tested.ask(post("/echo", "x")).status, 200);
  EXPECT_EQ(entered, 1);
  EXPECT_EQ(slow.ask("dy").body, "body");
  EXPECT_EQ(entered, 2);
  is_full = true;
  const RawReply refused = slow.ask(post("/echo", "x"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.header("Connection"), "keep-alive");  // all of the body has been read
}

TEST(ServerLimits, HoldsRoomAsLongAsAHandlerHasTheBody) {
  std::weak_ptr<int> room;
  const auto gate = [&](const RequestHead&, const Route&) -> std::variant<Reply, Permit> {
    const auto mine = std::make_shared<int>(1);
    room = mine;
    Permit permit;
    permit.room = mine;
    return permit;
  };
  TestServer tested(test::loopback(), gate);
  {
    RawClient client = tested.connect();
    client.send(post("/hold", "x"));
    ASSERT_TRUE(tested.wait_held(1));
  }
  ASSERT_TRUE(tested.wait_gone(1));
  ASSERT_TRUE(tested.wait_idle());
  EXPECT_FALSE(room.expired());  // the client has left, the body is still there
  tested.release();
  EXPECT_TRUE(room.expired());
}

TEST(ServerLimits, AnswersInstantRoutesWhileAllThreadsThatComputeAreBusy) {
  TestServer tested;  // with two of them
  RawClient one = tested.connect();
  RawClient two = tested.connect();
  one.send(post("/block", "x"));
  two.send(post("/block", "x"));
  ASSERT_TRUE(tested.wait_held(2));
  RawClient other = tested.connect();
  other.send(get("/health"));
  EXPECT_EQ(tested.ask(get("/probe")).body, "alive");
  EXPECT_FALSE(other.is_readable(100));
  tested.release();
  EXPECT_EQ(one.receive_reply().body, "held");
  EXPECT_EQ(other.receive_reply().body, "ok");
}

TEST(ServerLimits, OutlivesBodiesThatThereIsNoMemoryFor) {
  std::atomic<bool> has_memory = false;
  const auto gate = [&](const RequestHead&, const Route&) -> std::variant<Reply, Permit> {
    Permit permit;
    permit.grow = [&](std::uint64_t) {
      if (!has_memory) throw std::bad_alloc();
    };
    return permit;
  };
  TestServer tested(test::loopback(), gate);
  EXPECT_EQ(last_words(tested.connect(),
                       "POST /echo HTTP/1.1\r\nHost: h\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n"),
            "503 out_of_memory");
  has_memory = true;
  EXPECT_EQ(tested.ask(post("/echo", "body")).body, "body");
}

TEST(ServerLimits, HoldsAPlaceUntilTheReplyIsSent) {
  std::weak_ptr<int> place;
  const auto gate = [&](const RequestHead&, const Route&) -> std::variant<Reply, Permit> {
    const auto mine = std::make_shared<int>(1);
    place = mine;
    Permit permit;
    permit.place = mine;
    return permit;
  };
  TestServer tested(test::loopback(), gate);
  RawClient client = tested.connect();
  client.send(post("/hold", "x"));
  ASSERT_TRUE(tested.wait_held(1));
  EXPECT_FALSE(place.expired());
  tested.release();
  EXPECT_EQ(client.receive_reply().body, "held");
  EXPECT_EQ(client.ask(get("/nothing")).status, 404);  // the turn before has ended
  EXPECT_TRUE(place.expired());
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
