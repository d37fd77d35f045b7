#include "serve/http/stream.h"

#include <gtest/gtest.h>

#include <string>

#include "serve/http/stream_pair.h"

namespace fovea::serve {
namespace {

using test::StreamPair;

TEST(Input, KeepsWhatIsNotUsedUp) {
  Input input;
  const auto add = [&](std::string_view text) {
    const std::span<char> room = input.prepare(text.size());
    std::copy(text.begin(), text.end(), room.begin());
    input.commit(text.size());
  };
  add("abc");
  input.consume(2);
  add("def");
  EXPECT_EQ(input.view(), "cdef");
  input.shrink();
  EXPECT_EQ(input.view(), "cdef") << "nothing is lost";
  input.consume(4);
  EXPECT_TRUE(input.view().empty());
}

TEST(Stream, ReadsAheadAsFarAsItIsAllowedTo) {
  StreamPair pair;
  pair.send("abcdef");
  EXPECT_EQ(pair.run(pair.stream->fill(4)).bytes, 4U);
  EXPECT_EQ(pair.stream->input().view(), "abcd");
  EXPECT_EQ(pair.run(pair.stream->fill(4)).bytes, 1U) << "at least one";
  EXPECT_EQ(pair.stream->input().view(), "abcde");
}

TEST(Stream, ReadsPastItsInput) {
  StreamPair pair;
  pair.send("ab");
  std::array<char, 8> bytes{};
  EXPECT_EQ(pair.run(pair.stream->read_some(asio::buffer(bytes))).bytes, 2U);
  EXPECT_EQ(std::string(bytes.data()), "ab");
  EXPECT_TRUE(pair.stream->input().view().empty());
}

TEST(Stream, SaysThatNoMoreComes) {
  StreamPair pair;
  pair.shut_sending();
  const IoResult end = pair.run(pair.stream->fill(8));
  EXPECT_EQ(end.bytes, 0U);
  EXPECT_FALSE(end.has_expired);
}

TEST(Stream, FailsReadsAndWritesPastTheDeadline) {
  StreamPair pair;
  pair.stream->set_deadline(Clock::now());
  EXPECT_TRUE(pair.run(pair.stream->fill(8)).has_expired) << "one in progress";
  EXPECT_TRUE(pair.run(pair.stream->fill(8)).has_expired) << "one that would start";
  const asio::const_buffer buffer("a", 1);
  EXPECT_TRUE(pair.run(pair.stream->write_some({&buffer, 1})).has_expired);
  pair.stream->set_deadline(Clock::time_point::max());
  pair.send("a");
  EXPECT_EQ(pair.run(pair.stream->fill(8)).bytes, 1U) << "a later deadline lets it go on";
}

TEST(Stream, EndsWhatIsInProgressWhenItIsCancelled) {
  StreamPair pair;
  bool is_over = false;
  const auto read = [&]() -> Awaitable<void> {
    const IoResult got = co_await pair.stream->fill(8);
    EXPECT_TRUE(got.error);
    EXPECT_FALSE(got.has_expired);
    is_over = true;
  };
  pair.begin(read());
  pair.poll();
  EXPECT_FALSE(is_over);
  pair.stream->cancel();
  pair.poll();
  EXPECT_TRUE(is_over);
}

TEST(Stream, WritesAndThenSaysThatNoMoreComes) {
  StreamPair pair;
  const std::array buffers{asio::const_buffer("ab", 2), asio::const_buffer("c", 1)};
  EXPECT_EQ(pair.run(pair.stream->write_some(buffers)).bytes, 3U);
  pair.run(pair.stream->shut_down(true));
  EXPECT_EQ(pair.receive(), "abc");
  char byte = 0;
  EXPECT_EQ(recv(pair.client.get(), &byte, 1, 0), 0) << "the end";
}

TEST(Stream, DropsWhatComesUntilTheClientCloses) {
  StreamPair pair;
  pair.send(std::string(64 << 10, 'x'));
  pair.client.reset(-1);
  pair.run(pair.stream->linger());
  StreamPair other;
  other.stream->set_deadline(Clock::now() + std::chrono::milliseconds(1));
  other.run(other.stream->linger());  // the client never closes
}

}  // namespace
}  // namespace fovea::serve
