#include "serve/service/self_check.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

namespace fovea::serve {
namespace {

bool ask(SelfCheck& check) {
  std::promise<bool> works;
  check.ask([&](bool result) { works.set_value(result); });
  return works.get_future().get();
}

TEST(SelfCheck, SaysWhatCameOfTheTry) {
  bool works = true;
  SelfCheck check([&](const std::stop_token&) {
    if (!works) throw std::runtime_error("broken");
  });
  EXPECT_TRUE(ask(check));
  works = false;
  EXPECT_FALSE(ask(check));
}

TEST(SelfCheck, TriesOnceForAllWhoAskMeanwhile) {
  std::atomic<int> tries = 0;
  std::promise<void> may_end;
  std::shared_future<void> end = may_end.get_future().share();
  std::atomic<int> answers = 0;
  {
    SelfCheck check([&](const std::stop_token&) {
      ++tries;
      end.wait();
    });
    for (int i = 0; i < 100; ++i) check.ask([&](bool works) { answers += works ? 1 : 1000; });
    EXPECT_LE(tries, 1);
    may_end.set_value();
  }
  EXPECT_EQ(tries, 1);
  EXPECT_EQ(answers, 100);
}

TEST(SelfCheck, EndsATryThatRunsWithItself) {
  std::atomic<int> answers = 0;
  {
    SelfCheck check([](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::yield();
      throw std::runtime_error("ended");
    });
    check.ask([&](bool works) { answers += works ? 1000 : 1; });
  }
  EXPECT_EQ(answers, 1);
}

}  // namespace
}  // namespace fovea::serve
