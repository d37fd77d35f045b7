#include "serve/http/reply_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace fovea::serve {
namespace {

/// A stream of eight bytes, and what its producer is told.
struct Pipe {
  std::vector<bool> told;
  std::shared_ptr<ReplyStream> stream =
      std::make_shared<ReplyStream>([this](bool more) { told.push_back(more); }, 8);
};

TEST(ReplyStream, GivesWhatWasPutInOrder) {
  Pipe pipe;
  EXPECT_TRUE(pipe.stream->put("ab"));
  EXPECT_TRUE(pipe.stream->put("cd"));
  const ReplyStream::Piece first = pipe.stream->take();
  EXPECT_EQ(first.bytes, "abcd");
  EXPECT_FALSE(first.has_ended);
  EXPECT_TRUE(pipe.stream->put("e"));
  pipe.stream->end(true);
  const ReplyStream::Piece last = pipe.stream->take();
  EXPECT_EQ(last.bytes, "e");
  EXPECT_TRUE(last.has_ended && last.is_whole);
}

TEST(ReplyStream, SaysThatItHasBrokenOff) {
  Pipe pipe;
  EXPECT_TRUE(pipe.stream->put("a"));
  pipe.stream->end(false);
  const ReplyStream::Piece piece = pipe.stream->take();
  EXPECT_EQ(piece.bytes, "a");
  EXPECT_TRUE(piece.has_ended);
  EXPECT_FALSE(piece.is_whole);
}

TEST(ReplyStream, TakesNothingWhileItIsFullAndTellsWhenThereIsRoom) {
  Pipe pipe;
  EXPECT_TRUE(pipe.stream->put("12345678"));
  EXPECT_FALSE(pipe.stream->put("9"));
  EXPECT_TRUE(pipe.told.empty());
  EXPECT_EQ(pipe.stream->take().bytes, "12345678");
  EXPECT_EQ(pipe.told, std::vector<bool>{true});
  EXPECT_TRUE(pipe.stream->put("9"));
  EXPECT_EQ(pipe.stream->take().bytes, "9");
  EXPECT_EQ(pipe.told.size(), 1U) << "nobody waited for room";
}

TEST(ReplyStream, TakesLastBytesWhileItIsFull) {
  Pipe pipe;
  EXPECT_TRUE(pipe.stream->put("12345678"));
  EXPECT_TRUE(pipe.stream->put_last("9"));
  EXPECT_EQ(pipe.stream->take().bytes, "123456789");
  EXPECT_TRUE(pipe.told.empty()) << "nothing waits for room";
  pipe.stream->close();
  EXPECT_FALSE(pipe.stream->put_last("10"));
}

TEST(ReplyStream, TellsTheReaderOfEveryChangeUntilItCloses) {
  Pipe pipe;
  int changes = 0;
  pipe.stream->on_change([&] { ++changes; });
  EXPECT_TRUE(pipe.stream->put("a"));
  pipe.stream->end(true);
  EXPECT_EQ(changes, 2);
  pipe.stream->close();
  pipe.stream->end(true);
  EXPECT_EQ(changes, 2);
}

TEST(ReplyStream, TellsTheProducerOnceThatNobodyReads) {
  Pipe pipe;
  pipe.stream->close();
  pipe.stream->close();
  EXPECT_EQ(pipe.told, std::vector<bool>{false});
  EXPECT_TRUE(pipe.stream->is_closed());
  EXPECT_FALSE(pipe.stream->put("a"));
}

TEST(ReplyStream, TellsNothingAfterItsEnd) {
  Pipe pipe;
  pipe.stream->end(true);
  pipe.stream->close();
  EXPECT_TRUE(pipe.told.empty());
}

TEST(ReplyStream, IsClosedWhenTheLastReadingEndGoes) {
  Pipe pipe;
  {
    const auto end = ReplyStream::reading_end(pipe.stream);
    const std::shared_ptr<ReplyStream> copy = end;  // NOLINT: it holds the stream
    EXPECT_TRUE(pipe.stream->put("a"));
  }
  EXPECT_EQ(pipe.told, std::vector<bool>{false});
}

}  // namespace
}  // namespace fovea::serve
