// Answers of language models that come piece by piece, and how they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "serve/upstream/proxied.h"

namespace fovea::serve {
namespace {

using namespace proxied;
using fovea::test::send_text;
using fovea::test::wait_for_close;
using testing::HasSubstr;

TEST(ForwardedStream, EndsAnEventStreamWithTheReason) {
  Model between(answering(kStreamHead + chunk("data: 1\n\n") + chunk("data: 2\r\n\r\n")));
  Proxy proxy({&between});
  EXPECT_THAT(Sent(proxy).body(),
              testing::MatchesRegex(
                  "data: 1\n\ndata: 2\r\n\r\ndata: \\{\"error\":.*llm_failed.*\"r1\"\\}\\}\n\n"));
  Model nothing(answering(kStreamHead));
  Proxy silent({&nothing});
  EXPECT_THAT(Sent(silent).body(), testing::StartsWith("data: {\"error\":"));
  Model within(answering(kStreamHead + chunk("data: 1\n\n") + chunk("data: {")));
  Proxy cut({&within});
  EXPECT_EQ(Sent(cut).body(), "data: 1\n\ndata: { (broken off)");
}

TEST(ForwardedStream, EndsAnEventStreamThatIsFullWithTheReason) {
  std::string event(ReplyStream::kCapacity, 'x');
  event.replace(event.size() - 2, 2, "\n\n");
  static_assert(ReplyStream::kCapacity == 0x40000);
  Model breaks(answering(kStreamHead + ("40000\r\n" + event + "\r\n")));
  Proxy proxy({&breaks});
  Sent sent(proxy);
  EXPECT_EQ(sent.reply().status, 200);
  proxy.wait_for_metric("fovea_llm_in_flight", 0);  // nothing has been taken out of it
  const std::string body = sent.body();
  EXPECT_THAT(body.substr(std::min(body.size(), event.size())), HasSubstr("llm_failed"));
}

TEST(ForwardedStream, AddsNothingToAnEventStreamOfAKnownLength) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
  Model breaks(answering(head + "Content-Length: 900\r\n\r\ndata: 1\n\n"));
  Proxy cut({&breaks});
  EXPECT_EQ(Sent(cut).body(), "data: 1\n\n (broken off)");
  Model ends(answering(head + "Content-Length: 900\r\n\r\ndata: [DONE]\n\n"));
  Proxy short_of_it({&ends});
  EXPECT_EQ(Sent(short_of_it).body(), "data: [DONE]\n\n (broken off)");
}

TEST(ForwardedStream, AddsNothingToAnEventStreamWhoseLastEventHasCome) {
  const std::string first = kStreamHead + chunk("data: 1\n\ndata");
  Model ends(answering(first + chunk(": [DONE]\n\n")));
  Proxy done({&ends});
  EXPECT_EQ(Sent(done).body(), "data: 1\n\ndata: [DONE]\n\n");
  done.wait_for_metric("fovea_llm_in_flight", 0);
  Model within(answering(first + chunk(": [DONE]\n")));
  Proxy cut({&within});
  EXPECT_EQ(Sent(cut).body(), "data: 1\n\ndata: [DONE]\n (broken off)");
  Model hangs([&](int socket) {
    send_text(socket, first + chunk(":[DONE]\r\n\r\n"));
    wait_for_close(socket);
  });
  UpstreamOptions options = options_of({&hangs});
  options.idle_timeout = std::chrono::milliseconds(50);
  Proxy late(options);
  EXPECT_EQ(Sent(late).body(), "data: 1\n\ndata:[DONE]\r\n\r\n");
}

TEST(ForwardedStream, AddsNoEventToStreamsThatItDoesNotUnderstand) {
  Model zipped(
      answering("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n"
                "Transfer-Encoding: chunked\r\n\r\n" +
                chunk("x\n\n")));
  Proxy proxy({&zipped});
  EXPECT_EQ(Sent(proxy).body(), "x\n\n (broken off)");
}

TEST(ForwardedStream, EndsAStreamThatStalls) {
  Model stalls([](int socket) {
    send_text(socket, kStreamHead + chunk("data: 1\n\n"));
    wait_for_close(socket);
  });
  UpstreamOptions options = options_of({&stalls});
  options.idle_timeout = std::chrono::milliseconds(50);
  Proxy proxy(options);
  EXPECT_THAT(Sent(proxy).body(), HasSubstr("llm_timeout"));
}

TEST(ForwardedStream, EndsAnAnswerThatNobodyReads) {
  std::promise<void> closed;
  Model talks([&](int socket) {
    send_text(socket, kStreamHead + chunk("data: 1\n\n"));
    wait_for_close(socket);
    closed.set_value();
  });
  Proxy proxy({&talks});
  Sent sent(proxy);
  sent.reply().stream.reset();
  closed.get_future().get();
  proxy.wait_for_metric("fovea_llm_in_flight", 0);
}

}  // namespace
}  // namespace fovea::serve
