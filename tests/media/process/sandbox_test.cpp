// Each test enters the sandbox in a child, does one thing there, and looks at how the child ends.
#include "media/process/sandbox.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <new>
#include <vector>

namespace fovea::media {
namespace {

constexpr int kDone = 7;  // exit status of a child that came to its end

/// Status, as of waitpid, of a child that does `action` in the sandbox.
int status_after(const std::function<void()>& action) {
  const int host = getpid();
  const pid_t child = fork();
  if (child == 0) {
    const Isolation isolation = enter_sandbox(
        {.address_bytes = std::uint64_t{64} << 20, .cpu_seconds = 1, .host_pid = host});
    if (isolation != Isolation::kSeccomp) _exit(kDone + 1);
    action();
    _exit(kDone);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const int status = status_after([] {});
    if (!WIFEXITED(status) || WEXITSTATUS(status) != kDone) {
      GTEST_SKIP() << "no seccomp on this system or in this build";
    }
  }
};

void expect_killed(const std::function<void()>& action) {
  const int status = status_after(action);
  ASSERT_TRUE(WIFSIGNALED(status)) << "exit status " << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGSYS);
}

void expect_done(const std::function<void()>& action) {
  const int status = status_after(action);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), kDone);
}

TEST_F(SandboxTest, LeavesMemoryAndOpenDescriptors) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  expect_done([&] {
    std::vector<char> bytes(32 << 20, 'x');
    if (write(ends[0], bytes.data(), 100) != 100 || read(ends[1], bytes.data(), 100) != 100)
      _exit(1);
  });
}

TEST_F(SandboxTest, KillsForForbiddenCalls) {
  expect_killed([] { (void)socket(AF_INET, SOCK_STREAM, 0); });
  expect_killed([] { (void)fork(); });
  expect_killed([] { (void)execl("/bin/true", "true", nullptr); });
  expect_killed([] { (void)::kill(getppid(), SIGTERM); });
  expect_killed([] { (void)unlink("/tmp/no-such-file"); });
}

TEST_F(SandboxTest, KillsForMemoryThatCanBeExecuted) {
  expect_killed(
      [] { (void)mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); });
  expect_killed([] {
    void* const page =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)mprotect(page, 4096, PROT_READ | PROT_EXEC);
  });
}

TEST_F(SandboxTest, HidesEveryFile) {
  expect_done([] {
    if (open("/etc/passwd", O_RDONLY) >= 0 || errno != ENOENT) _exit(1);
    if (access("/etc/passwd", R_OK) == 0) _exit(2);
    // As the C library asks before the first line of a stream: which of the two depends on it.
    struct stat status {};
    if (syscall(SYS_fstat, STDOUT_FILENO, &status) == 0 || errno != ENOENT) _exit(3);
    if (fstat(STDOUT_FILENO, &status) == 0) _exit(4);
  });
}

TEST_F(SandboxTest, FailsAllocationsBeyondTheLimit) {
  expect_done([] {
    try {
      const std::vector<char> bytes(128 << 20);
      _exit(1);
    } catch (const std::bad_alloc&) {
    }
  });
}

TEST_F(SandboxTest, EndsWhatRunsForTooLong) {
  const int status = status_after([] {
    volatile bool forever = true;
    while (forever) {
    }
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGXCPU);
}

}  // namespace
}  // namespace fovea::media
