// Who may go on: keys and places are asked for before the body and after it, room as it comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "serve/http/message.h"
#include "test_server.h"

namespace fovea::serve {
namespace {

using test::get;
using test::last_words;
using test::post;
using test::RawClient;
using test::RawReply;
using test::TestServer;

TEST(ServerGate, AsksTheGateBeforeTheBody) {
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
  EXPECT_EQ(tested.wait_observed(3).at(0).error_code, "queue_full");
}

TEST(ServerGate, LetsClientsReadARefusalThatCutsTheirBodyOff) {
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

TEST(ServerGate, AsksForRoomInStepsThatDouble) {
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

TEST(ServerGate, AsksForRoomAsBytesComeNotAsTheyAreAnnounced) {
  std::vector<std::uint64_t> asked;
  TestServer tested(test::loopback(), gate_with_room(asked, 1 << 20));
  RawClient client = tested.connect();
  client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 700000000\r\n\r\nbegun");
  client.close();
  EXPECT_EQ(tested.wait_observed(1).at(0).status, 499);
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{64 << 10}));
}

TEST(ServerGate, RefusesABodyThatFindsNoMoreRoomOnItsWay) {
  constexpr std::uint64_t kStep = 64 << 10;
  std::vector<std::uint64_t> asked;
  TestServer tested(test::loopback(), gate_with_room(asked, kStep));
  EXPECT_EQ(last_words(tested.connect(), post("/echo", std::string(3 * kStep, 'x'))),
            "429 queue_full");
  EXPECT_EQ(last_words(tested.connect(), in_chunks(kStep + 1)), "429 queue_full");
  EXPECT_EQ(tested.ask(post("/echo", "x")).status, 200);
}

TEST(ServerGate, TakesAPlaceWhenTheBodyIsThere) {
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

TEST(ServerGate, HoldsRoomAsLongAsAHandlerHasTheBody) {
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

TEST(ServerGate, AnswersInstantRoutesWhileAllThreadsThatComputeAreBusy) {
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

TEST(ServerGate, OutlivesBodiesThatThereIsNoMemoryFor) {
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

TEST(ServerGate, HoldsAPlaceUntilTheReplyIsSent) {
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

}  // namespace
}  // namespace fovea::serve
