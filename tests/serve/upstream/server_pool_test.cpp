#include "serve/upstream/server_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/property.h"

namespace fovea::serve {
namespace {

using Server = ServerPool::Server;
using Tried = std::vector<Server>;

/// Three servers that are up.
class ServerPoolTest : public testing::Test {
 protected:
  ServerPoolTest() {
    for (const Server& server : pool.servers()) pool.mark_up(*server);
  }
  Server begin(const std::string& key = {}, const Tried& tried = {}) {
    return pool.begin(key, tried);
  }
  void end(const Server& server) { pool.end(server, UpstreamResult::kAnswered); }
  std::string metrics() const {
    MetricsText text({});
    pool.write(text);
    return text.text();
  }

  const std::vector<std::string> urls{"http://a", "http://b", "http://c"};
  ServerPool pool{urls};
};

TEST_F(ServerPoolTest, TakesNoneThatIsNotKnownToWork) {
  ServerPool unknown(urls);
  EXPECT_FALSE(unknown.has_other({}));
  EXPECT_EQ(unknown.begin("", {}), nullptr);
}

TEST_F(ServerPoolTest, SpreadsRequestsEvenly) {
  std::multiset<Server> chosen;
  for (int i = 0; i < 9; ++i) chosen.insert(begin());
  for (const Server& server : pool.servers()) EXPECT_EQ(chosen.count(server), 3U);
  const Server second = pool.servers()[1];
  end(second);
  EXPECT_EQ(begin(), second) << "the one with the fewest";
}

TEST_F(ServerPoolTest, LetsIdleOnesTakeTurns) {
  std::set<Server> chosen;
  for (int i = 0; i < 3; ++i) {
    const Server server = begin();
    chosen.insert(server);
    end(server);
  }
  EXPECT_EQ(chosen.size(), 3U);
}

TEST_F(ServerPoolTest, SendsAnImageToTheSameServer) {
  const Server first = begin("cat");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(begin("cat"), first) << i;
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_routed_total{sent=\"there\"} 5\n"));
}

TEST_F(ServerPoolTest, SendsAnImageToTheNextOfItsOrderWhenItsServerHasMuchMoreToDo) {
  const Server first = begin("cat");
  for (std::int64_t i = 0; i < ServerPool::kMostAhead; ++i) EXPECT_EQ(begin("cat"), first);
  const Server next = begin("cat");
  EXPECT_NE(next, first);
  for (std::int64_t i = 0; i < ServerPool::kMostAhead; ++i) EXPECT_EQ(begin("cat"), next);
  const Server last = begin("cat");
  EXPECT_NE(last, first);
  EXPECT_NE(last, next);
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_routed_total{sent=\"there\"} 5\n"));
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_routed_total{sent=\"elsewhere\"} 6\n"));
  end(first);
  end(first);
  EXPECT_EQ(begin("cat"), first) << "which has few enough again";
}

TEST_F(ServerPoolTest, CountsARequestThatIsSentAgainOnce) {
  const Server first = begin("cat");
  begin("cat", {first});
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_routed_total{sent=\"there\"} 1\n"));
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_routed_total{sent=\"elsewhere\"} 0\n"));
}

/// The server that an idle pool sends an image to.
Server home(ServerPool& pool, const std::string& key) {
  Server server = pool.begin(key, {});
  pool.end(server, UpstreamResult::kAnswered);
  return server;
}

/// The URL that an idle pool sends each of some images to.
std::vector<std::string> homes(const std::vector<std::string>& urls,
                               const std::vector<std::string>& keys) {
  ServerPool pool(urls);
  for (const Server& server : pool.servers()) pool.mark_up(*server);
  std::vector<std::string> found;
  for (const std::string& key : keys) found.push_back(home(pool, key)->url());
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
    for (std::size_t i = 0; i < 4; ++i) pool.mark_up(*pool.servers()[i]);
    const std::vector<std::string> found = homes(network(4), keys);
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(home(pool, keys[i])->url(), found[i]);
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
    ServerPool pool(network(test::uniform(generator, 2, 8)));
    std::map<Server, std::int64_t> in_flight;
    for (const Server& server : pool.servers()) {
      pool.mark_up(*server);
      in_flight[server] = 0;
    }
    const auto load_of = [](const auto& entry) { return entry.second; };
    const std::vector<std::string> keys = random_keys(generator, 3);  // all ask for the same few
    for (int i = 0; i < 300; ++i) {
      const std::int64_t least = std::ranges::min_element(in_flight, {}, load_of)->second;
      const auto key = static_cast<std::size_t>(test::uniform(generator, 0, 2));
      const Server server = pool.begin(keys[key], {});
      EXPECT_LE(in_flight[server] - least, std::max(ServerPool::kMostAhead, least / 4));
      ++in_flight[server];
    }
  });
}

TEST_F(ServerPoolTest, AllowsAQuarterMoreWhereAllHaveMuchToDo) {
  for (int i = 0; i < 3 * 40; ++i) begin();
  const Server home = begin("cat");
  int ahead = 1;
  while (begin("cat") == home) ++ahead;
  EXPECT_EQ(ahead, 11) << "10 beyond 40";
}

TEST_F(ServerPoolTest, PassesOverTheTriedAndTheDown) {
  const Server first = begin("cat");
  const Server second = begin("cat", {first});
  EXPECT_NE(second, first);
  const Tried both{first, second};
  EXPECT_TRUE(pool.has_other(both));
  const Server third = begin("cat", both);
  end(third);
  pool.mark_down(*third, "a test");
  EXPECT_FALSE(pool.has_other(both));
  EXPECT_EQ(pool.begin("", both), nullptr);
  pool.mark_up(*third);
  EXPECT_EQ(begin("", both), third);
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_retries_total 3\n"));
}

TEST_F(ServerPoolTest, CountsWhatBecomesOfRequests) {
  const Server server = begin();
  ServerPool::observe_first_byte(*server, 0.2);
  const std::string label = "{llm=\"" + server->url() + "\"";
  EXPECT_THAT(metrics(), testing::HasSubstr("fovea_llm_in_flight" + label + "} 1\n"));
  pool.end(server, UpstreamResult::kBroken);
  const std::string text = metrics();
  EXPECT_THAT(text, testing::HasSubstr("fovea_llm_in_flight" + label + "} 0\n"));
  EXPECT_THAT(text,
              testing::HasSubstr("fovea_llm_requests_total" + label + ",result=\"broken\"} 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("fovea_llm_first_byte_seconds_count" + label + "} 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("fovea_llm_up" + label + "} 1\n"));
}

/// Servers behind a name.
class FoundServersTest : public testing::Test {
 protected:
  using Addresses = std::vector<std::string>;
  bool set(const Addresses& addresses) { return pool.set_addresses("http://m:8000", addresses); }
  void mark_all_up() {
    for (const Server& server : pool.servers()) pool.mark_up(*server);
  }
  Addresses addresses() const {
    Addresses found;
    for (const Server& server : pool.servers()) found.push_back(server->address());
    return found;
  }
  std::string metrics() const {
    MetricsText text({});
    pool.write(text);
    return text.text();
  }
  static std::string sample(const std::string& name, const std::string& address,
                            const std::string& value) {
    return name + "{llm=\"http://m:8000\",address=\"" + address + "\"} " + value + "\n";
  }

  ServerPool pool{{}};
};

TEST_F(FoundServersTest, AreThereOnceTheyWork) {
  EXPECT_TRUE(set({"10.0.0.1", "10.0.0.2"}));
  EXPECT_EQ(pool.begin("cat", {}), nullptr);
  mark_all_up();
  const Server server = pool.begin("cat", {});
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(server->url(), "http://m:8000");
  EXPECT_THAT(addresses(), testing::Contains(server->address()));
  EXPECT_FALSE(set({"10.0.0.2", "10.0.0.1"})) << "the same ones";
  EXPECT_EQ(pool.begin("cat", {}), server);
}

TEST_F(FoundServersTest, StayForTheirRequestsWhenTheyAreGone) {
  set({"10.0.0.1"});
  mark_all_up();
  const Server gone = pool.begin("cat", {});
  EXPECT_TRUE(set({"10.0.0.2"}));
  EXPECT_EQ(addresses(), Addresses{"10.0.0.2"});
  mark_all_up();
  pool.mark_up(*gone);  // an answer to /health that was on its way
  EXPECT_EQ(pool.begin("cat", {})->address(), "10.0.0.2");
  EXPECT_EQ(pool.begin("cat", Tried{pool.servers()[0]}), nullptr);
  EXPECT_THAT(metrics(), testing::HasSubstr(sample("fovea_llm_in_flight", "10.0.0.1", "1")));
  EXPECT_THAT(metrics(), testing::HasSubstr(sample("fovea_llm_up", "10.0.0.1", "0")));
  pool.end(gone, UpstreamResult::kAnswered);
  EXPECT_THAT(metrics(), testing::Not(testing::HasSubstr("10.0.0.1")));
}

TEST_F(FoundServersTest, ThatComeBackInTimeAreTheSame) {
  set({"10.0.0.1"});
  mark_all_up();
  const Server server = pool.begin("cat", {});
  set({});
  EXPECT_FALSE(pool.has_other({}));
  set({"10.0.0.1"});
  EXPECT_FALSE(pool.has_other({})) << "it has to be healthy first";
  mark_all_up();
  EXPECT_EQ(pool.begin("cat", {}), server);
}

TEST_F(FoundServersTest, AreThoseOfTheirNameAlone) {
  const std::vector<std::string> urls{"http://m:8000", "http://fixed:8000"};
  ServerPool mixed(urls);
  const Addresses one{"10.0.0.1"};
  mixed.set_addresses("http://m:8000", one);
  mixed.set_addresses("http://n:8000", one);
  EXPECT_EQ(mixed.servers().size(), 4U) << "two names may lead to one address";
  mixed.set_addresses("http://n:8000", {});
  EXPECT_EQ(mixed.servers().size(), 3U);
  mixed.set_addresses("http://m:8000", {});
  EXPECT_EQ(mixed.servers().size(), 2U);
}

TEST(FoundServersProperty, OnlyTheShareOfThoseThatComeAndGoMoves) {
  test::for_all(20, [](std::mt19937_64& generator) {
    const auto random_set = [&generator] {
      std::vector<std::string> addresses;
      for (int i = 0; i < 12; ++i) {
        if (test::uniform(generator, 0, 2) > 0) addresses.push_back("10.0.0." + std::to_string(i));
      }
      addresses.emplace_back("10.0.1.0");  // so that there is one
      std::ranges::shuffle(addresses, generator);
      return addresses;
    };
    ServerPool pool({});
    const std::vector<std::string> keys = random_keys(generator, 50);
    const auto homes_in = [&](const std::vector<std::string>& addresses) {
      pool.set_addresses("http://m", addresses);
      for (const Server& server : pool.servers()) pool.mark_up(*server);
      std::vector<std::string> found;
      for (const std::string& key : keys) found.push_back(home(pool, key)->address());
      return found;
    };
    const std::vector<std::string> old_set = random_set();
    const std::vector<std::string> before = homes_in(old_set);
    const std::vector<std::string> new_set = random_set();
    const std::vector<std::string> after = homes_in(new_set);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool went = std::ranges::find(new_set, before[i]) == new_set.end();
      const bool came = std::ranges::find(old_set, after[i]) == old_set.end();
      EXPECT_TRUE(before[i] == after[i] || went || came) << before[i] << " to " << after[i];
    }
  });
}

}  // namespace
}  // namespace fovea::serve
