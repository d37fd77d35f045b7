#include "core/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <thread>

namespace fovea {
namespace {

FileDescriptor opened() { return FileDescriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC)); }

bool is_open(int number) { return fcntl(number, F_GETFD) >= 0; }

TEST(FileDescriptor, ClosesWhatItHasAtItsEnd) {
  int number = -1;
  {
    const FileDescriptor file = opened();
    number = file.get();
    EXPECT_TRUE(file.is_open());
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
  EXPECT_FALSE(FileDescriptor().is_open());
  EXPECT_FALSE(FileDescriptor(-1).is_open());
}

TEST(FileDescriptor, IsMoved) {
  FileDescriptor first = opened();
  const int number = first.get();
  FileDescriptor second(std::move(first));
  EXPECT_EQ(second.get(), number);
  FileDescriptor third = opened();
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_FALSE(is_open(replaced));
}

TEST(FileDescriptor, LetsGo) {
  FileDescriptor file = opened();
  const int number = file.release();
  EXPECT_FALSE(file.is_open());
  EXPECT_TRUE(is_open(number));
  file.reset(number);
  EXPECT_TRUE(file.close());
  EXPECT_FALSE(is_open(number));
  EXPECT_FALSE(file.close());  // there is nothing to be closed
  EXPECT_EQ(errno, EBADF);
}

TEST(FileDescriptor, KeepsTheReasonOfAFailure) {
  errno = ENOSPC;
  { const FileDescriptor file = opened(); }
  EXPECT_EQ(errno, ENOSPC);
}

TEST(WriteAll, WritesMoreThanTheSystemTakesAtOnce) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  const std::string text(std::size_t{1} << 20, 'x');
  std::string got;
  std::thread reader([&] {
    std::array<char, 4096> piece{};
    for (ssize_t size = 1; size > 0;) {
      size = read(from.get(), piece.data(), piece.size());
      if (size > 0) got.append(piece.data(), static_cast<std::size_t>(size));
    }
  });
  EXPECT_TRUE(write_all(to.get(), std::as_bytes(std::span(text))));
  to.reset();
  reader.join();
  EXPECT_EQ(got, text);
}

TEST(WriteAll, SaysWhatTheSystemDoesNotTake) {
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const std::string_view text = "text";
  EXPECT_TRUE(write_all(full.get(), {}));
  EXPECT_FALSE(write_all(full.get(), std::as_bytes(std::span(text))));
  EXPECT_EQ(errno, ENOSPC);
}

}  // namespace
}  // namespace fovea
