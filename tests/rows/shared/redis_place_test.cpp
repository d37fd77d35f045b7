// Against a real server, which these tests start; skipped where there is none.
#include <gtest/gtest.h>

#include <optional>

#include "core/check.h"
#include "fovea/version.h"
#include "rows/shared/shared_rows.h"
#include "support/expect_error.h"
#include "support/redis_server.h"

namespace fovea {
namespace {

using std::chrono::milliseconds;
using test::expect_error;
using test::RedisServer;

bool speaks_redis() {
  try {
    (void)make_redis_place("redis://localhost", 1);
    return true;
  } catch (const Error& error) {
    return error.code() != ErrorCode::kUnsupported;
  }
}

class RedisPlaceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!speaks_redis()) GTEST_SKIP() << "this build has no libhiredis";
    if (RedisServer::program().empty()) GTEST_SKIP() << "there is no redis-server or valkey-server";
  }
  static RowBytes bytes(std::size_t size, int value) {
    RowBytes bytes(size);
    std::fill(bytes.begin(), bytes.end(), std::byte(value));
    return bytes;
  }
  static void put(RowPlace& place, const std::string& name, const RowBytes& value) {
    place.put(name, {value.data(), value.size()});
  }
  static std::optional<RowBytes> get(RowPlace& place, const std::string& name) {
    return place.get(std::vector{name}).at(0);
  }
  /// Rows of one item, whatever the key.
  static SharedRows::Source source() {
    return [](const std::string&) {
      Embedding item;
      item.rows = item.width = 1000;
      item.data = bytes(4'000'000, 7);
      return std::optional(std::move(item));
    };
  }
  static std::unique_ptr<SharedRows> shared(const RedisServer& server, milliseconds time) {
    return std::make_unique<SharedRows>(make_redis_place(server.url(), 60),
                                        SharedRowsOptions{.width = 1000,
                                                          .find_time = time,
                                                          .keep_time = time,
                                                          .shortest_pause = milliseconds(1),
                                                          .longest_pause = milliseconds(1)},
                                        source());
  }
};

TEST_F(RedisPlaceTest, KeepsBytesByName) {
  const RedisServer server;
  const auto place = make_redis_place(server.url(), 60);
  put(*place, "a", bytes(5'000'000, 1));
  put(*place, "b", bytes(1, 0));  // a byte that is no text
  const auto found = place->get(std::vector<std::string>{"b", "none", "a"});
  EXPECT_EQ(found.at(0), bytes(1, 0));
  EXPECT_EQ(found.at(1), std::nullopt);
  EXPECT_EQ(found.at(2), bytes(5'000'000, 1));
}

TEST_F(RedisPlaceTest, LetsThemGoAfterSomeTime) {
  const RedisServer server;
  const auto place = make_redis_place(server.url(), 3600);
  put(*place, "a", bytes(1, 1));
  const std::string key = std::string("fovea:rows:") + version() + ":a";
  const int seconds = std::stoi(server.says("TTL " + key).substr(1));
  EXPECT_GT(seconds, 3000);
  EXPECT_LE(seconds, 3600);
}

TEST_F(RedisPlaceTest, LogsInAndSelects) {
  const RedisServer server({"--requirepass", "secret"});
  const auto place = make_redis_place(server.url(":secret@", 3), 60);
  put(*place, "a", bytes(1, 1));
  EXPECT_EQ(get(*place, "a"), bytes(1, 1));
  EXPECT_EQ(get(*make_redis_place(server.url("default:secret@", 4), 60), "a"), std::nullopt);
  expect_error(ErrorCode::kIo, "AUTH",
               [&] { (void)get(*make_redis_place(server.url(":wrong@"), 60), "a"); });
  expect_error(ErrorCode::kIo, "NOAUTH",
               [&] { (void)get(*make_redis_place(server.url(), 60), "a"); });
  expect_error(ErrorCode::kIo, "SELECT",
               [&] { (void)get(*make_redis_place(server.url(":secret@", 99), 60), "a"); });
}

TEST_F(RedisPlaceTest, SaysThatAServerIsFull) {
  const RedisServer server({"--maxmemory", "3mb", "--maxmemory-policy", "noeviction"});
  const auto place = make_redis_place(server.url(), 60);
  put(*place, "a", bytes(10, 1));
  expect_error(ErrorCode::kUnavailable, "maxmemory", [&] {
    for (int i = 0; i < 10; ++i) put(*place, std::to_string(i), bytes(1'000'000, 1));
  });
  EXPECT_EQ(get(*place, "a"), bytes(10, 1));
}

TEST_F(RedisPlaceTest, SaysThatNobodyAnswers) {
  std::optional<RedisServer> server(std::in_place);
  const auto place = make_redis_place(server->url(), 60);
  server.reset();
  expect_error(ErrorCode::kIo, "redis://127.0.0.1:", [&] { (void)get(*place, "a"); });
}

TEST_F(RedisPlaceTest, ConnectsAnewWhereAnIdleConnectionWasEnded) {
  const RedisServer server;
  const auto place = make_redis_place(server.url(), 60);
  put(*place, "a", bytes(1, 1));
  EXPECT_EQ(server.says("CLIENT KILL TYPE normal SKIPME yes"), ":1");  // as its `timeout` does
  EXPECT_EQ(get(*place, "a"), bytes(1, 1));
}

TEST_F(RedisPlaceTest, IsPassedOverWhileItsServerStandsStill) {
  const RedisServer server;
  const auto rows = shared(server, milliseconds(200));
  const std::vector<std::string> keys{"a"};
  while (rows->stats().stored == 0) {
    rows->keep("a");
    rows->wait_idle();
  }
  server.signal(SIGSTOP);
  while (rows->stats().is_asked) (void)rows->find(keys);
  EXPECT_FALSE(rows->find(keys).at(0));
  server.signal(SIGCONT);
  while (!rows->find(keys).at(0)) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(rows->stats().is_asked);
}

TEST_F(RedisPlaceTest, OutlivesTheEndOfItsServer) {
  std::optional<RedisServer> server(std::in_place);
  const auto rows = shared(*server, std::chrono::minutes(1));
  rows->keep("a");
  rows->wait_idle();
  EXPECT_EQ(rows->stats().stored, 1);
  server.reset();
  rows->keep("a");
  rows->wait_idle();
  EXPECT_FALSE(rows->find(std::vector<std::string>{"a"}).at(0));
  EXPECT_FALSE(rows->stats().is_asked);
}

TEST_F(RedisPlaceTest, OutlivesAServerThatHangsUp) {
  const RedisServer server;
  const auto other = make_redis_place(server.url(), 60);
  put(*other, "a", bytes(1, 1));  // and keeps its connection
  ASSERT_EQ(server.says("CONFIG SET maxclients 1"), "+OK");
  const auto rows = shared(server, std::chrono::minutes(1));
  rows->keep("a");  // 4 MB into a socket that the server has closed: SIGPIPE
  rows->wait_idle();
  EXPECT_EQ(rows->stats().stored, 0);
  EXPECT_FALSE(rows->stats().is_asked);
}

TEST(RedisUrl, IsRefusedIfItIsNone) {
  if (!speaks_redis()) GTEST_SKIP() << "this build has no libhiredis";
  const auto refusal = [](const std::string& part, const std::string& url) {
    expect_error(ErrorCode::kInvalidArgument, part, [&] { (void)make_redis_place(url, 1); });
  };
  refusal("expected redis://HOST:PORT/DB, with numbers", "redis://");
  refusal("with numbers", "redis://host:port");
  refusal("with numbers", "redis://host:0");
  refusal("with numbers", "redis://host:70000");
  refusal("with numbers", "redis://host/db");
  refusal("(TLS) is not spoken", "rediss://host");
  refusal(":PASSWORD in front of the @", "redis://secret@host");
  refusal(":PASSWORD in front of the @", "redis://user:@host");
  expect_error(ErrorCode::kInvalidArgument, "at least 1 second",
               [] { (void)make_redis_place("redis://host", 0); });
  for (const char* const url :
       {"redis://h", "redis://h:1", "redis://[::1]:6379/15", "redis://h/"}) {
    EXPECT_NE(make_redis_place(url, 1), nullptr) << url;
  }
}

}  // namespace
}  // namespace fovea
