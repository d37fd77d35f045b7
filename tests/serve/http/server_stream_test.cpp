// Replies that come piece by piece, from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

#include "test_server.h"

namespace fovea::serve {
namespace {

using test::get;
using test::loopback;
using test::RawClient;
using test::RawReply;
using test::TestServer;

TEST(ServerStream, SendsPiecesAsTheyCome) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(get("/stream"));
  const auto stream = tested.wait_stream();
  EXPECT_EQ(client.receive_reply().header("Transfer-Encoding"), "chunked");
  ASSERT_TRUE(stream->put("first"));
  EXPECT_EQ(client.receive_until("first\r\n"), "5\r\nfirst\r\n") << "before there is a second";
  ASSERT_TRUE(stream->put(std::string(300, 'x')));
  EXPECT_EQ(client.receive_until("x\r\n").substr(0, 5), "12c\r\n");
  stream->end(true);
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_EQ(client.ask(get("/health")).body, "ok") << "the connection lives on";
  EXPECT_EQ(tested.wait_observed(2)[0].bytes_out, 305U);
}

TEST(ServerStream, SendsALengthThatIsKnown) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(get("/stream?6"));
  const auto stream = tested.wait_stream();
  ASSERT_TRUE(stream->put("abc"));
  ASSERT_TRUE(stream->put("def"));
  stream->end(true);
  const RawReply reply = client.receive_reply();
  EXPECT_EQ(reply.body, "abcdef");
  EXPECT_EQ(reply.header("Transfer-Encoding"), "");
  EXPECT_EQ(client.ask(get("/health")).body, "ok");
}

TEST(ServerStream, EndsWithTheConnectionForClientsOfHttp10) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto stream = tested.wait_stream();
  ASSERT_TRUE(stream->put("abc"));
  stream->end(true);
  const RawReply reply = client.receive_reply();
  EXPECT_EQ(reply.header("Connection"), "close");
  EXPECT_EQ(reply.header("Transfer-Encoding"), "");
  EXPECT_EQ(client.receive(3), "abc");
  EXPECT_TRUE(client.is_closed());
}

TEST(ServerStream, NeverEndsInOrderWhatHasBrokenOff) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(get("/stream"));
  const auto stream = tested.wait_stream();
  ASSERT_TRUE(stream->put("abc"));
  stream->end(false);
  EXPECT_EQ(client.receive_reply().status, 200);
  EXPECT_EQ(client.receive_until("abc\r\n"), "3\r\nabc\r\n");
  EXPECT_TRUE(client.is_closed()) << "without a last chunk";
  EXPECT_EQ(tested.wait_observed(1)[0].error_code, "reply_broken_off");
}

TEST(ServerStream, EndsInOrderWhenItsTimeHasCome) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(get("/stream?20ms"));
  const auto stream = tested.wait_stream();
  (void)stream->put("abc");  // or its time has come before
  EXPECT_EQ(client.receive_reply().status, 200);
  EXPECT_TRUE(client.receive_until("0\r\n\r\n").ends_with("0\r\n\r\n"));
  EXPECT_TRUE(tested.wait_told(1));
  EXPECT_EQ(client.ask(get("/health")).body, "ok") << "the connection lives on";
  EXPECT_EQ(tested.wait_observed(1)[0].error_code, "");
}

TEST(ServerStream, TellsThatTheClientHasLeft) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(get("/stream"));
  const auto stream = tested.wait_stream();
  ASSERT_TRUE(stream->put("abc"));
  client.receive_until("abc\r\n");
  client.close();
  EXPECT_TRUE(tested.wait_told(1));
  EXPECT_EQ(tested.wait_observed(1)[0].status, 499);
}

TEST(ServerStream, AClientMayLeaveWhatHasATime) {
  TestServer tested;
  for (const bool has_something : {true, false}) {
    RawClient client = tested.connect();
    client.send(get("/stream?1000000ms"));
    const auto stream = tested.wait_stream();
    EXPECT_EQ(client.receive_reply().status, 200);
    if (has_something) {
      ASSERT_TRUE(stream->put("abc"));
      client.receive_until("abc\r\n");
    }
    client.close();
    EXPECT_TRUE(tested.wait_told(has_something ? 1 : 2));
  }
  const auto seen = tested.wait_observed(2);
  EXPECT_EQ(seen[0].status, 200) << "it has ended the reply";
  EXPECT_EQ(seen[0].bytes_out, 3U);
  EXPECT_EQ(seen[1].status, 499);
}

TEST(ServerStream, AClientThatSendsMoreEndsWhatHasATime) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(get("/stream?1000000ms"));
  const auto stream = tested.wait_stream();
  ASSERT_TRUE(stream->put("abc"));
  EXPECT_EQ(client.receive_reply().status, 200);
  client.receive_until("abc\r\n");
  client.send("\r\n");
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_TRUE(tested.wait_told(1));
  EXPECT_EQ(client.ask(get("/health")).body, "ok") << "the connection lives on";
  EXPECT_EQ(tested.wait_observed(1)[0].status, 200);
}

TEST(ServerStream, AClientThatSendsMoreWaitsForWhatHasNoTime) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(get("/stream") + get("/health"));
  const auto stream = tested.wait_stream();
  ASSERT_TRUE(stream->put("abc"));
  client.receive_until("abc\r\n");
  ASSERT_TRUE(stream->put("def"));
  EXPECT_EQ(client.receive_until("def\r\n"), "3\r\ndef\r\n");
  stream->end(true);
  client.receive_until("0\r\n\r\n");
  EXPECT_EQ(client.receive_reply().body, "ok");
}

TEST(ServerStream, TellsThatNobodyWantsABody) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send("HEAD /stream HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.receive_reply(false).status, 200);
  EXPECT_TRUE(tested.wait_told(1));
  EXPECT_EQ(client.ask(get("/health")).body, "ok");
}

TEST(ServerStream, HoldsBackWhoeverIsFasterThanTheClient) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(get("/stream"));
  const auto stream = tested.wait_stream();
  const std::string piece(ReplyStream::kCapacity, 'x');
  std::size_t taken = 0;
  const auto fill = [&] {
    for (std::size_t i = 0; i < 1000; ++i) {
      if (!stream->put(piece)) return true;
      ++taken;
    }
    return false;
  };
  ASSERT_TRUE(fill()) << "the client takes nothing";
  for (std::size_t i = 0; i < taken; ++i) client.receive_until("x\r\n");
  EXPECT_TRUE(tested.wait_told(0, 1));
  EXPECT_TRUE(stream->put("more"));
  stream->end(true);
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "4\r\nmore\r\n0\r\n\r\n");
}

TEST(ServerStream, CutsAClientThatTakesNothing) {
  HttpOptions options = loopback();
  options.reply_idle_timeout = std::chrono::milliseconds(100);
  TestServer tested(options);
  RawClient client = tested.connect();
  client.send(get("/stream"));
  const auto stream = tested.wait_stream();
  const std::string piece(16 * ReplyStream::kCapacity, 'x');
  while (!tested.server->is_idle()) (void)stream->put(piece);
  EXPECT_TRUE(tested.wait_told(1));
  const test::Observed seen = tested.wait_observed(1)[0];
  EXPECT_EQ(seen.status, 499);
  EXPECT_EQ(seen.error_code, "slow_reader");
}

TEST(ServerStream, EndsWithTheServer) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(get("/stream"));
  const auto stream = tested.wait_stream();
  ASSERT_TRUE(stream->put("abc"));
  client.receive_until("abc\r\n");
  tested.server->stop(std::chrono::milliseconds(0));
  EXPECT_TRUE(tested.wait_told(1));
  EXPECT_TRUE(client.is_closed());
}

TEST(ServerStream, DoesNotHoldTheServerWhenItsClientTakesNothing) {
  HttpOptions options = loopback();
  options.reply_idle_timeout = std::chrono::hours(1);
  TestServer tested(options);
  RawClient client = tested.connect();
  client.send(get("/stream"));
  const auto stream = tested.wait_stream();
  ASSERT_TRUE(stream->put(std::string(256 * ReplyStream::kCapacity, 'x')));
  while (!stream->put("more")) std::this_thread::yield();  // the first is on its way
  auto stopped =
      std::async(std::launch::async, [&] { tested.server->stop(std::chrono::milliseconds(0)); });
  const bool has_stopped = stopped.wait_for(std::chrono::minutes(1)) == std::future_status::ready;
  client.close();
  EXPECT_TRUE(has_stopped);
  EXPECT_TRUE(tested.wait_told(1));
}

TEST(ServerStream, IsWaitedForWhenTheServerDrains) {
  TestServer tested;
  RawClient client = tested.connect();
  client.send(get("/stream"));
  const auto stream = tested.wait_stream();
  ASSERT_TRUE(stream->put("abc"));
  client.receive_until("abc\r\n");
  tested.server->drain();
  EXPECT_FALSE(tested.server->is_idle());
  ASSERT_TRUE(stream->put("def"));
  stream->end(true);
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "3\r\ndef\r\n0\r\n\r\n");
  EXPECT_TRUE(tested.wait_idle());
}

}  // namespace
}  // namespace fovea::serve
