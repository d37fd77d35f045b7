#include "core/local_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

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

std::span<const std::byte> span_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST_F(LocalSocket, MovesBytesWithoutWaiting) {
  EXPECT_EQ(receive(), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(send_some(a_.get(), span_of("abcdef")), 6);
  EXPECT_EQ(receive(), 4);
  EXPECT_EQ(std::string(got_.data(), 4), "abcd");
  EXPECT_EQ(receive(), 2);
}

TEST_F(LocalSocket, SaysThatTheOtherEndIsClosed) {
  a_.reset();
  EXPECT_EQ(receive(), 0);
  EXPECT_EQ(send_some(b_.get(), span_of("a")), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(LocalSocket, TakesAnOpenFileAlong) {
  const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(send_some(a_.get(), span_of("ab"), null.get()), 2);
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
  ASSERT_EQ(send_some(a_.get(), span_of("ab"), null.get()), 2);
  const FileDescriptor before(dup(null.get()));
  const int next = before.get() + 1;
  EXPECT_EQ(receive(), 2);
  EXPECT_LT(fcntl(next, F_GETFD), 0);
}

/// Open files of this process.
std::ptrdiff_t num_open_files() {
  using Entries = std::filesystem::directory_iterator;
  return std::distance(Entries("/proc/self/fd"), Entries());
}

TEST_F(LocalSocket, KeepsOneOfSeveralOpenFiles) {
  const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::array<int, 3> files{null.get(), null.get(), null.get()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(files))> control{};
  char byte = 'a';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(files));
  std::memcpy(CMSG_DATA(rights), files.data(), sizeof(files));
  for (const bool wanted : {true, false}) {
    ASSERT_EQ(sendmsg(a_.get(), &message, 0), 1);
    FileDescriptor came;
    const std::ptrdiff_t before = num_open_files();
    EXPECT_EQ(receive(wanted ? &came : nullptr), 1);
    EXPECT_EQ(came.is_open(), wanted);
    EXPECT_EQ(num_open_files(), before + (wanted ? 1 : 0));
  }
}

TEST_F(LocalSocket, MovesAllBytesWhileItMayWait) {
  const std::string sent(1 << 20, 'x');
  std::string received(sent.size(), ' ');
  std::jthread sender([&] {
    EXPECT_EQ(send_all(a_.get(), span_of(sent), -1, [](short) { return true; }), Transfer::kDone);
  });
  const auto wait = [&](short events) {
    EXPECT_EQ(events, POLLIN);
    std::this_thread::yield();
    return true;
  };
  const auto bytes = std::as_writable_bytes(std::span(received));
  EXPECT_EQ(receive_all(b_.get(), bytes, nullptr, wait), Transfer::kDone);
  EXPECT_EQ(received, sent);
}

TEST_F(LocalSocket, MovesNoMoreWhenItMayNotWait) {
  const auto refuse = [](short) { return false; };
  EXPECT_EQ(send_all(a_.get(), span_of(std::string(8 << 20, 'x')), -1, refuse),
            Transfer::kTimedOut);
  EXPECT_EQ(receive_all(a_.get(), std::as_writable_bytes(std::span(got_)), nullptr, refuse),
            Transfer::kTimedOut);
}

TEST_F(LocalSocket, SaysWhyNotAllBytesWereMoved) {
  const auto wait = [](short) { return true; };
  ASSERT_EQ(send_some(a_.get(), span_of("ab")), 2);
  a_.reset();
  const auto bytes = std::as_writable_bytes(std::span(got_));
  EXPECT_EQ(receive_all(b_.get(), bytes, nullptr, wait), Transfer::kClosed);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(send_all(b_.get(), span_of("a"), -1, wait), Transfer::kClosed);
  EXPECT_EQ(errno, EPIPE);
}

}  // namespace
}  // namespace fovea
