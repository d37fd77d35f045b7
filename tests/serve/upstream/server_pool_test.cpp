#include "serve/upstream/server_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/property.h"

namespace fovea::serve {
namespace {

using Tried = std::vector<std::size_t>;

/// Three servers that are up.
class ServerPoolTest : public testing::Test {
 protected:
  ServerPoolTest() {
    for (std::size_t i = 0; i < pool.size(); ++i) pool.mark_up(i);
  }
  std::size_t begin(const std::string& key = {}, const Tried& tried = {}) {
    return pool.begin(key, tried).value();
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
  EXPECT_EQ(unknown.begin("", {}), std::nullopt);
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

TEST_F(ServerPoolTest, SendsAnImageToTheSameServer) {
  const std::size_t first = begin("cat");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(begin("cat"), first) << i;
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_routed_total{sent=\"there\"} 5\n"));
}

TEST_F(ServerPoolTest, SendsAnImageToTheNextOfItsOrderWhenItsServerHasMuchMoreToDo) {
  const std::size_t first = begin("cat");
  for (std::int64_t i = 0; i < ServerPool::kMostAhead; ++i) EXPECT_EQ(begin("cat"), first);
  const std::size_t next = begin("cat");
  EXPECT_NE(next, first);
  for (std::int64_t i = 0; i < ServerPool::kMostAhead; ++i) EXPECT_EQ(begin("cat"), next);
  EXPECT_EQ(begin("cat"), 3 - first - next) << "the last";
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_routed_total{sent=\"there\"} 5\n"));
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_routed_total{sent=\"elsewhere\"} 6\n"));
  end(first);
  end(first);
  EXPECT_EQ(begin("cat"), first) << "which has few enough again";
}

TEST_F(ServerPoolTest, CountsARequestThatIsSentAgainOnce) {
  const std::size_t first = begin("cat");
  begin("cat", {first});
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_routed_total{sent=\"there\"} 1\n"));
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_routed_total{sent=\"elsewhere\"} 0\n"));
}

/// The URL that an idle pool sends each of some images to.
std::vector<std::string> homes(const std::vector<std::string>& urls,
                               const std::vector<std::string>& keys) {
  ServerPool pool(urls);
  for (std::size_t i = 0; i < pool.size(); ++i) pool.mark_up(i);
  std::vector<std::string> found;
  for (const std::string& key : keys) {
    const std::size_t server = pool.begin(key, {}).value();
    pool.end(server, UpstreamResult::kAnswered);
    found.push_back(pool.url(server));
  }
  return found;
}

/// Servers of one network, whose URLs differ in few digits.
std::vector<std::string> network(std::int64_t size) {
  std::vector<std::string> urls;
  for (std::int64_t i = 0; i < size; ++i) {
    urls.push_back("http://10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256) +
                   ":8000");
  }
  return urls;
}

std::vector<std::string> random_keys(std::mt19937_64& generator, std::int64_t count) {
  std::vector<std::string> keys;
  for (std::int64_t i = 0; i < count; ++i) {
    keys.push_back(std::to_string(test::uniform(generator, 0, std::int64_t{1} << 60)));
  }
  return keys;
}

TEST(ServerPoolProperty, AllPoolsOfTheSameServersAgree) {
  test::for_all(20, [](std::mt19937_64& generator) {
    std::vector<std::string> urls = network(test::uniform(generator, 1, 20));
    const std::vector<std::string> keys = random_keys(generator, 100);
    const std::vector<std::string> found = homes(urls, keys);
    std::ranges::shuffle(urls, generator);
    EXPECT_EQ(homes(urls, keys), found);
  });
}

TEST(ServerPoolProperty, OnlyTheShareOfAServerThatComesOrGoesMoves) {
  test::for_all(20, [](std::mt19937_64& generator) {
    const std::vector<std::string> all = network(test::uniform(generator, 2, 20));
    std::vector<std::string> rest = all;
    const auto gone = test::uniform(generator, 0, std::ssize(all) - 1);
    rest.erase(rest.begin() + gone);
    const std::vector<std::string> keys = random_keys(generator, 200);
    const std::vector<std::string> before = homes(all, keys);
    const std::vector<std::string> after = homes(rest, keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (before[i] == all[static_cast<std::size_t>(gone)]) continue;
      EXPECT_EQ(after[i], before[i]);
    }
  });
}

TEST(ServerPoolProperty, AServerThatIsDownIsAsOneThatIsGone) {
  test::for_all(10, [](std::mt19937_64& generator) {
    const std::vector<std::string> urls = network(5);
    const std::vector<std::string> keys = random_keys(generator, 50);
    ServerPool pool(urls);
    for (std::size_t i = 0; i < 4; ++i) pool.mark_up(i);
    const std::vector<std::string> found = homes(network(4), keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::size_t server = pool.begin(keys[i], {}).value();
      pool.end(server, UpstreamResult::kAnswered);
      EXPECT_EQ(pool.url(server), found[i]);
    }
  });
}

TEST(ServerPoolProperty, ImagesAreSpreadEvenly) {
  std::mt19937_64 generator(1);
  constexpr std::int64_t kServers = 10;
  constexpr std::int64_t kEach = 1'000;
  const std::vector<std::string> found =
      homes(network(kServers), random_keys(generator, kServers * kEach));
  for (const std::string& url : network(kServers)) {
    // Five standard deviations of a binomial distribution.
    EXPECT_NEAR(static_cast<double>(std::ranges::count(found, url)), double{kEach},
                5 * std::sqrt(kEach * 0.9))
        << url;
  }
}

TEST(ServerPoolProperty, NoServerHasMuchMoreToDoThanAnother) {
  test::for_all(20, [](std::mt19937_64& generator) {
    const auto size = static_cast<std::size_t>(test::uniform(generator, 2, 8));
    ServerPool pool(network(static_cast<std::int64_t>(size)));
    for (std::size_t i = 0; i < size; ++i) pool.mark_up(i);
    std::vector<std::int64_t> in_flight(size);
    const std::vector<std::string> keys = random_keys(generator, 3);  // all ask for the same few
    for (int i = 0; i < 300; ++i) {
      const std::int64_t least = std::ranges::min(in_flight);
      const auto key = static_cast<std::size_t>(test::uniform(generator, 0, 2));
      const std::size_t server = pool.begin(keys[key], {}).value();
      EXPECT_LE(in_flight[server] - least, std::max(ServerPool::kMostAhead, least / 4));
      ++in_flight[server];
    }
  });
}

TEST_F(ServerPoolTest, AllowsAQuarterMoreWhereAllHaveMuchToDo) {
  for (int i = 0; i < 3 * 40; ++i) begin();
  const std::size_t home = begin("cat");
  int ahead = 1;
  while (begin("cat") == home) ++ahead;
  EXPECT_EQ(ahead, 11) << "10 beyond 40";
}

TEST_F(ServerPoolTest, PassesOverTheTriedAndTheDown) {
  const std::size_t first = begin("cat");
  const std::size_t second = begin("cat", {first});
  EXPECT_NE(second, first);
  const Tried both{first, second};
  EXPECT_TRUE(pool.has_other(both));
  const std::size_t third = 3 - first - second;
  pool.mark_down(third, "a test");
  EXPECT_FALSE(pool.has_other(both));
  EXPECT_EQ(pool.begin("", both), std::nullopt);
  pool.mark_up(third);
  EXPECT_EQ(begin("", both), third);
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_retries_total 2\n"));
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
