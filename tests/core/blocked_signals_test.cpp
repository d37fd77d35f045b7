#include "core/blocked_signals.h"

#include <gtest/gtest.h>

#include <thread>

namespace fovea {
namespace {

bool takes(int signal) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 0;
}

TEST(BlockedSignals, AreThoseOfTheThreadAndOfThoseThatItStarts) {
  ASSERT_TRUE(takes(SIGTERM));
  {
    const BlockedSignals none;
    EXPECT_FALSE(takes(SIGTERM));
    EXPECT_FALSE(takes(SIGHUP));
    EXPECT_TRUE(takes(SIGSEGV)) << "a fault of its own";
    EXPECT_TRUE(takes(SIGPROF)) << "a sample of its own";
    std::thread([] { EXPECT_FALSE(takes(SIGINT)); }).join();
    const BlockedSignals again;
  }
  EXPECT_TRUE(takes(SIGTERM));
  EXPECT_TRUE(takes(SIGHUP));
}

}  // namespace
}  // namespace fovea
