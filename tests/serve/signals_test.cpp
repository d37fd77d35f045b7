#include "serve/signals.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;

TEST(Signals, AreWaitedForInsteadOfEndingTheProcess) {
  const Signals signals;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    kill(getpid(), signal);
    EXPECT_EQ(signals.wait(milliseconds(10'000)), signal);
  }
  EXPECT_EQ(signals.wait(milliseconds(1)), std::nullopt);
}

TEST(Signals, LeaveNoHangUpBehind) {
  {
    const Signals signals;
    kill(getpid(), SIGHUP);
  }
  kill(getpid(), SIGHUP);  // would end this process
}

}  // namespace
}  // namespace fovea::serve
