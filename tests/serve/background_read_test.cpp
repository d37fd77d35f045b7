#include "serve/background_read.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>

namespace fovea::serve {
namespace {

/// What is read once somebody takes it.
template <class Result>
Result taken(BackgroundRead<Result>& reader) {
  for (;;) {
    if (std::optional<Result> result = reader.take()) return *result;
    std::this_thread::yield();
  }
}

TEST(BackgroundRead, ReadsOnceForEveryStart) {
  BackgroundRead<int> reader([number = std::make_shared<int>(0)] { return ++*number; });
  EXPECT_EQ(reader.take(), std::nullopt);
  reader.start();
  EXPECT_EQ(taken(reader), 1);
  EXPECT_EQ(reader.take(), std::nullopt);
  reader.start();
  EXPECT_EQ(taken(reader), 2);
}

TEST(BackgroundRead, KeepsNobodyWaitingForAReadThatHangs) {
  // Both outlive the test, as the thread may.
  const auto gate = std::make_shared<std::promise<void>>();
  const std::shared_future<void> opened = gate->get_future().share();
  BackgroundRead<int> reader([opened] {
    opened.wait();
    return 1;
  });
  reader.start();
  EXPECT_EQ(reader.take(), std::nullopt);
  gate->set_value();
  EXPECT_EQ(taken(reader), 1);

  BackgroundRead<int> abandoned([forever = std::make_shared<std::promise<void>>()] {
    forever->get_future().wait_for(std::chrono::milliseconds(100));
    return 1;
  });
  abandoned.start();
}

TEST(BackgroundRead, ReadsAgainWhatMayBeOutdated) {
  const auto gate = std::make_shared<std::promise<void>>();
  const std::shared_future<void> opened = gate->get_future().share();
  BackgroundRead<int> reader([opened, number = std::make_shared<std::atomic<int>>(0)] {
    opened.wait();
    return ++*number;
  });
  reader.start();
  reader.start();
  reader.start();
  gate->set_value();
  EXPECT_EQ(taken(reader), 2);
  EXPECT_EQ(reader.take(), std::nullopt);
}

TEST(BackgroundRead, IsWaitedForUntilASignalAsksForTheEnd) {
  const Signals signals;
  const auto gate = std::make_shared<std::promise<void>>();
  const std::shared_future<void> opened = gate->get_future().share();
  BackgroundRead<int> reader([opened, number = std::make_shared<std::atomic<int>>(0)] {
    opened.wait();
    return ++*number;
  });
  reader.start();
  kill(getpid(), SIGTERM);
  EXPECT_EQ(reader.wait(signals), std::nullopt);  // the file still hangs
  kill(getpid(), SIGHUP);
  gate->set_value();
  EXPECT_GE(reader.wait(signals).value(), 1);
}

TEST(BackgroundRead, TakesNoSignals) {
  BackgroundRead<bool> reader([] {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    return sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGHUP) == 1;
  });
  reader.start();
  EXPECT_TRUE(taken(reader));
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0);
}

TEST(BackgroundRead, BringsWhatWasThrown) {
  BackgroundRead<int> reader([]() -> int { throw Error(ErrorCode::kIo, "no such file"); });
  reader.start();
  EXPECT_THROW((void)taken(reader), Error);
  EXPECT_EQ(reader.take(), std::nullopt);
}

}  // namespace
}  // namespace fovea::serve
