#include "core/local_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <string>

namespace fovea {
namespace {

class LocalSocket : public testing::Test {
 protected:
  LocalSocket() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    a_.reset(ends[0]);
    b_.reset(ends[1]);
  }

  ssize_t receive(FileDescriptor* file = nullptr) {
    return receive_some(b_.get(), std::as_writable_bytes(std::span(got_)), file, MSG_DONTWAIT);
  }

  FileDescriptor a_;
  FileDescriptor b_;
  std::array<char, 4> got_{};
};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST_F(LocalSocket, MovesBytesWithoutWaiting) {
  EXPECT_EQ(receive(), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(send_some(a_.get(), bytes_of("abcdef")), 6);
  EXPECT_EQ(receive(), 4);
  EXPECT_EQ(std::string(got_.data(), 4), "abcd");
  EXPECT_EQ(receive(), 2);
}

TEST_F(LocalSocket, SaysThatTheOtherEndIsClosed) {
  a_.reset();
  EXPECT_EQ(receive(), 0);
  EXPECT_EQ(send_some(b_.get(), bytes_of("a")), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(LocalSocket, TakesAnOpenFileAlong) {
  const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(send_some(a_.get(), bytes_of("ab"), null.get()), 2);
  FileDescriptor came;
  ASSERT_EQ(receive(&came), 2);
  ASSERT_TRUE(came.is_open());
  struct stat sent {};
  struct stat received {};
  ASSERT_EQ(fstat(null.get(), &sent), 0);
  ASSERT_EQ(fstat(came.get(), &received), 0);
  EXPECT_EQ(received.st_rdev, sent.st_rdev);
  EXPECT_NE(came.get(), null.get());
}

TEST_F(LocalSocket, ClosesAnOpenFileThatIsNotWanted) {
  const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(send_some(a_.get(), bytes_of("ab"), null.get()), 2);
  const FileDescriptor before(dup(null.get()));
  const int next = before.get() + 1;
  EXPECT_EQ(receive(), 2);
  EXPECT_LT(fcntl(next, F_GETFD), 0);
}

}  // namespace
}  // namespace fovea
