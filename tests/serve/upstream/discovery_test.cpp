#include "serve/upstream/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "graph/recording_log.h"
#include "support/expect_error.h"

namespace fovea::serve {
namespace {

using Outcome = HostAddresses::Outcome;
using Addresses = std::vector<std::string>;

HostAddresses found(const Addresses& addresses) {
  HostAddresses host{.outcome = Outcome::kFound, .addresses = {}};
  for (const std::string& address : addresses) host.addresses.push_back(*parse_address(address));
  return host;
}

/// Name servers that answer as they are told, and a pool that asks them all the time.
class DiscoveryTest : public testing::Test {
 protected:
  HostAddresses answer(const std::string& name) {
    std::unique_lock lock(mutex);
    ++asked[name];
    changed.notify_all();
    if (name == hangs) {
      changed.wait(lock, [&] { return name != hangs; });
    }
    const auto known = answers.find(name);
    return known == answers.end() ? HostAddresses{.outcome = Outcome::kNoHost, .addresses = {}}
                                  : known->second;
  }
  void tell(const std::string& name, HostAddresses host) {
    const std::lock_guard lock(mutex);
    answers[name] = std::move(host);
  }
  /// Returns when an answer that was asked for after this call has been seen to.
  void wait_for_answer(const std::string& name) {
    std::unique_lock lock(mutex);
    const int before = asked[name];
    // The next question has the answer of now, and is done with when another one is asked.
    changed.wait(lock, [&] { return asked[name] >= before + 2; });
  }
  Addresses addresses() const {
    Addresses all;
    for (const ServerPool::Server& server : pool.servers()) all.push_back(server->address());
    return all;
  }
  std::unique_ptr<Discovery> discovery(std::vector<LlmUrl> urls) {
    DiscoveryOptions options{.interval = std::chrono::milliseconds(1),
                             .ask = [this](const std::string& name) { return answer(name); }};
    return std::make_unique<Discovery>(
        urls, options, pool, [this] { ++changes; }, &log);
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, HostAddresses> answers;
  std::map<std::string, int> asked;
  std::string hangs;
  std::atomic<int> changes = 0;
  test::RecordingLog log;
  ServerPool pool{{}, nullptr};
};

const LlmUrl kModels{.url = "http://m:8000", .name = "m"};

TEST_F(DiscoveryTest, FollowsTheAddressesOfAName) {
  tell("m", found({"10.0.0.1", "10.0.0.2"}));
  const auto running = discovery({kModels});
  wait_for_answer("m");
  EXPECT_THAT(addresses(), testing::UnorderedElementsAre("10.0.0.1", "10.0.0.2"));
  EXPECT_EQ(changes, 1) << "and none for the same ones in another order";
  tell("m", found({"10.0.0.3", "10.0.0.2"}));
  wait_for_answer("m");
  EXPECT_THAT(addresses(), testing::UnorderedElementsAre("10.0.0.2", "10.0.0.3"));
  EXPECT_EQ(changes, 2);
}

TEST_F(DiscoveryTest, KeepsWhatItKnowsWhileANameHasNoAddresses) {
  tell("m", found({"10.0.0.1"}));
  auto running = discovery({kModels});
  wait_for_answer("m");
  for (const Outcome outcome : {Outcome::kNoHost, Outcome::kFailed}) {
    tell("m", {.outcome = outcome, .addresses = {}});
    wait_for_answer("m");
    EXPECT_EQ(addresses(), Addresses{"10.0.0.1"});
  }
  tell("m", found({"10.0.0.2"}));
  wait_for_answer("m");
  EXPECT_EQ(addresses(), Addresses{"10.0.0.2"});
  running.reset();
  EXPECT_EQ(log.count("llm_not_found url=http://m:8000 reason=\"it has no address\""), 1)
      << "once, not for each question";
}

TEST_F(DiscoveryTest, WaitsForANameThatHasNoAddressesYet) {
  const auto running = discovery({kModels});
  wait_for_answer("m");
  EXPECT_EQ(addresses(), Addresses());
  tell("m", found({"10.0.0.1"}));
  wait_for_answer("m");
  EXPECT_EQ(addresses(), Addresses{"10.0.0.1"});
}

TEST_F(DiscoveryTest, TakesOneFamily) {
  tell("m", found({"fd00::1", "10.0.0.1", "fd00::2"}));
  tell("n", found({"fd00::1", "fd00::2"}));
  const auto running = discovery({kModels, {.url = "http://n:8000", .name = "n"}});
  wait_for_answer("m");
  wait_for_answer("n");
  EXPECT_THAT(addresses(), testing::UnorderedElementsAre("10.0.0.1", "fd00::1", "fd00::2"));
}

TEST_F(DiscoveryTest, ANameThatHangsHoldsUpNoOther) {
  hangs = "m";
  tell("n", found({"10.0.0.1"}));
  const auto running = discovery({kModels, {.url = "http://n:8000", .name = "n"}});
  wait_for_answer("n");
  EXPECT_EQ(addresses(), Addresses{"10.0.0.1"});
  const std::lock_guard lock(mutex);
  hangs.clear();
  changed.notify_all();
}

TEST_F(DiscoveryTest, OutlivesALookupWithoutMemory) {
  std::atomic<int> times = 0;
  const DiscoveryOptions options{.interval = std::chrono::milliseconds(1),
                                 .ask = [&](const std::string&) -> HostAddresses {
                                   if (++times < 3) throw std::bad_alloc();
                                   return found({"10.0.0.1"});
                                 }};
  const std::vector<LlmUrl> urls{kModels};
  const Discovery running(
      urls, options, pool, [] {}, nullptr);
  while (times < 5) std::this_thread::yield();
  EXPECT_EQ(addresses(), Addresses{"10.0.0.1"});
}

TEST_F(DiscoveryTest, AsksForNoServerThatHasAUrlOfItsOwn) {
  const auto running = discovery({{.url = "http://a:8000", .name = ""}});
  EXPECT_TRUE(asked.empty());
}

TEST_F(DiscoveryTest, RefusesToAskWithoutAPause) {
  const DiscoveryOptions options{.interval = std::chrono::milliseconds(0)};
  const std::vector<LlmUrl> urls{kModels};
  fovea::test::expect_error(ErrorCode::kInvalidArgument, "--llm-dns-interval", [&] {
    const Discovery none(
        urls, options, pool, [] {}, nullptr);
  });
}

}  // namespace
}  // namespace fovea::serve
