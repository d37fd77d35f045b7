#include "serve/upstream/server_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace fovea::serve {
namespace {

using Keys = std::vector<std::string>;
using Tried = std::vector<std::size_t>;

/// Three servers that are up.
class ServerPoolTest : public testing::Test {
 protected:
  ServerPoolTest() {
    for (std::size_t i = 0; i < pool.size(); ++i) pool.mark_up(i);
  }
  std::size_t begin(const Keys& keys = {}, const Tried& tried = {}) {
    return pool.begin(keys, tried).value();
  }
  void end(std::size_t server) { pool.end(server, UpstreamResult::kAnswered); }
  std::string metrics() const {
    MetricsText text({});
    pool.write(text);
    return text.text();
  }

  ServerPool pool{{"http://a", "http://b", "http://c"}};
};

TEST_F(ServerPoolTest, TakesNoneThatIsNotKnownToWork) {
  ServerPool unknown({"http://a"});
  EXPECT_FALSE(unknown.has_other({}));
  EXPECT_EQ(unknown.begin({}, {}), std::nullopt);
}

TEST_F(ServerPoolTest, SpreadsRequestsEvenly) {
  std::multiset<std::size_t> chosen;
  for (int i = 0; i < 9; ++i) chosen.insert(begin());
  for (std::size_t server = 0; server < 3; ++server) EXPECT_EQ(chosen.count(server), 3U);
  end(1);
  EXPECT_EQ(begin(), 1U) << "the one with the fewest";
}

TEST_F(ServerPoolTest, LetsIdleOnesTakeTurns) {
  std::set<std::size_t> chosen;
  for (int i = 0; i < 3; ++i) {
    const std::size_t server = begin();
    chosen.insert(server);
    end(server);
  }
  EXPECT_EQ(chosen.size(), 3U);
}

TEST_F(ServerPoolTest, SendsAnImageBack) {
  const std::size_t home = begin({"cat"});
  end(home);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(begin({"cat"}), home) << i;
    if (i > 0) end(home);
  }
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_sticky_total{sent=\"back\"} 5\n"));
}

TEST_F(ServerPoolTest, SendsMostOfTheImagesBack) {
  const std::size_t one = begin({"a"});
  const std::size_t other = begin({"b", "c"});
  ASSERT_NE(one, other);
  end(one);
  end(other);
  EXPECT_EQ(begin({"a", "b", "c", "new"}), other);
  EXPECT_EQ(begin({"a"}), other) << "which has it by now";
}

TEST_F(ServerPoolTest, SendsAnImageElsewhereWhenItsServerHasMuchMoreToDo) {
  const std::size_t home = begin({"cat"});
  for (std::int64_t i = 0; i < ServerPool::kMostAhead; ++i) EXPECT_EQ(begin({"cat"}), home);
  const std::size_t next = begin({"cat"});
  EXPECT_NE(next, home);
  EXPECT_EQ(begin({"cat"}), next) << "its home from now on";
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_sticky_total{sent=\"elsewhere\"} 1\n"));
}

TEST_F(ServerPoolTest, AllowsAQuarterMoreWhereAllHaveMuchToDo) {
  for (int i = 0; i < 3 * 40; ++i) begin();
  const std::size_t home = begin({"cat"});
  int ahead = 1;
  while (begin({"cat"}) == home) ++ahead;
  EXPECT_EQ(ahead, 11) << "10 beyond 40";
}

TEST_F(ServerPoolTest, PassesOverTheTriedAndTheDown) {
  const std::size_t first = begin({"cat"});
  const std::size_t second = begin({"cat"}, {first});
  EXPECT_NE(second, first);
  const Tried both{first, second};
  EXPECT_TRUE(pool.has_other(both));
  const std::size_t third = 3 - first - second;
  pool.mark_down(third, "a test");
  EXPECT_FALSE(pool.has_other(both));
  EXPECT_EQ(pool.begin({}, both), std::nullopt);
  pool.mark_up(third);
  EXPECT_EQ(begin({}, both), third);
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_retries_total 2\n"));
}

TEST_F(ServerPoolTest, ForgetsTheImagesThatWereSentLongestAgo) {
  const std::size_t home = begin({"cat"});
  for (std::int64_t i = 0; i < ServerPool::kMostKeys; ++i) end(begin({std::to_string(i)}));
  EXPECT_NE(begin({"cat"}), home) << "which has a request, and nothing else to speak for it";
}

TEST_F(ServerPoolTest, CountsWhatBecomesOfRequests) {
  const std::size_t server = begin();
  pool.observe_first_byte(server, 0.2);
  const std::string label = "{llm=\"" + pool.url(server) + "\"";
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_in_flight" + label + "} 1\n"));
  pool.end(server, UpstreamResult::kBroken);
  const std::string text = metrics();
  EXPECT_THAT(text, testing::HasSubstr("fovea_llm_in_flight" + label + "} 0\n"));
  EXPECT_THAT(text,
              testing::HasSubstr("fovea_llm_requests_total" + label + ",result=\"broken\"} 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("fovea_llm_first_byte_seconds_count" + label + "} 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("fovea_llm_up" + label + "} 1\n"));
}

}  // namespace
}  // namespace fovea::serve
