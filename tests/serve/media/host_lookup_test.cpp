#include "serve/media/host_lookup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <new>

namespace fovea::serve {
namespace {

using Outcome = HostAddresses::Outcome;

Clock::time_point in(std::chrono::milliseconds time) { return Clock::now() + time; }

TEST(AskSystem, KnowsLocalhost) {
  const HostAddresses host = ask_system("localhost");
  ASSERT_EQ(host.outcome, Outcome::kFound);
  EXPECT_TRUE(std::ranges::none_of(host.addresses, is_public));
}

TEST(AskSystem, FindsNothingForNamesThatAreNone) {
  const HostAddresses host = ask_system("a name with blanks");
  EXPECT_NE(host.outcome, Outcome::kFound);
  EXPECT_TRUE(host.addresses.empty());
}

TEST(HostLookup, GivesTheAnswer) {
  HostLookup lookup(
      [](const std::string& name) {
        return HostAddresses{.outcome = Outcome::kFound, .addresses = {*parse_address(name)}};
      },
      1);
  const HostAddresses host = lookup.find("192.0.2.1", in(std::chrono::seconds(30)), {});
  EXPECT_EQ(host.outcome, Outcome::kFound);
  EXPECT_EQ(host.addresses.at(0).text(), "192.0.2.1");
}

TEST(HostLookup, TakesAFailureForNoAnswer) {
  HostLookup lookup([](const std::string&) -> HostAddresses { throw std::bad_alloc(); }, 1);
  EXPECT_EQ(lookup.find("a.test", in(std::chrono::seconds(30)), {}).outcome, Outcome::kFailed);
}

TEST(HostLookup, LeavesBehindWhoTakesTooLong) {
  std::latch released(1);
  int asked = 0;
  {
    HostLookup lookup(
        [&](const std::string&) {
          ++asked;
          released.wait();
          return HostAddresses{};
        },
        1);
    EXPECT_EQ(lookup.find("a.test", in(std::chrono::milliseconds(20)), {}).outcome, Outcome::kLate);
    std::stop_source stop;
    stop.request_stop();
    const auto late = in(std::chrono::seconds(30));
    EXPECT_EQ(lookup.find("b.test", late, stop.get_token()).outcome, Outcome::kLate);
    released.count_down();
  }
  EXPECT_LE(asked, 1);  // b.test is not asked for: nobody waits for it
}

}  // namespace
}  // namespace fovea::serve
