// Rows that are lent: what a client is told, and that they are held as long as the reply lasts.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "serve/http/reply_stream.h"
#include "serve/http/test_server.h"
#include "serve/routes/admin/routes.h"
#include "serve/routes/answer.h"
#include "serve/routes/schema_mismatch.h"
#include "serve/routes/vllm/routes.h"
#include "serve/service/workers.h"

namespace fovea::serve {
namespace {

using test::Json;

/// An engine that has the rows of some keys "on two GPUs", and counts what is pinned.
class LendRoute : public ::testing::Test {
 protected:
  LendRoute() { add({.max_at_once = 2, .most_time = std::chrono::seconds(5), .max_keys = 3}); }

  void add(const LendOptions& options) {
    router_.emplace();
    router_->add(lend_route(
        {.store = store_,
         .lend = [this](std::span<const std::string> keys) { return lend(keys); },
         .try_lend = [this](std::span<const std::string> keys) -> std::optional<LentRows> {
           if (are_copied_) return lend(keys);
           return std::nullopt;
         },
         .run_task = [this](std::function<void()> task) { tasks_.push_back(std::move(task)); }},
        options));
  }
  void store(const std::string& key, const std::string& cache_key) {
    Embedding item;
    item.cache_key = cache_key;
    (void)store_.put(key, std::make_shared<const Embedding>(std::move(item)));
  }
  [[nodiscard]] LentRows lend(std::span<const std::string> keys) {
    if (fails_) throw Error(ErrorCode::kDevice, "the GPU is on fire");
    LentRows rows;
    rows.memories = {{.gpu = "GPU-a", .handle = {0, 1, 2}, .bytes = 4096},
                     {.gpu = "GPU-b", .handle = {255}, .bytes = 8192}};
    for (const std::string& key : keys) {
      rows.items.emplace_back();
      if (!key.starts_with("cached")) continue;
      rows.items.back() = LentItem{.memory = key == "cached 2" ? 1U : 0U,
                                   .offset_bytes = 256,
                                   .rows = 3,
                                   .width = 5,
                                   .dtype = RowDType::kBFloat16};
    }
    rows.pins = pins_;
    return rows;
  }
  [[nodiscard]] Reply post(const std::string& body) const {
    return test::answer(*router_, test::request_to("POST", "/v1/cache/lend", body));
  }
  /// What has come of a reply so far.
  [[nodiscard]] static Json line_of(const Reply& reply) {
    ReplyStream::Piece piece = reply.stream->take();
    EXPECT_FALSE(piece.has_ended) << "it stays open";
    EXPECT_EQ(std::ranges::count(piece.bytes, '\n'), 1);
    EXPECT_TRUE(piece.bytes.ends_with('\n'));
    return Json::parse(piece.bytes);
  }
  void run_tasks() {
    for (const auto& task : std::exchange(tasks_, {})) task();
  }
  [[nodiscard]] long num_pinned() const { return pins_.use_count() - 1; }

  RowStore store_{1'000'000};
  std::shared_ptr<int> pins_ = std::make_shared<int>();
  std::vector<std::function<void()>> tasks_;
  bool are_copied_ = true;  // into the cache
  bool fails_ = false;
  std::optional<Router> router_;
};

TEST_F(LendRoute, SaysWhereRowsLie) {
  store("a", "cached 1");
  store("b", "cached 2");
  const Reply reply = post(R"({"keys": ["b", "a"]})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content_type, "application/json");
  const Json json = line_of(reply);
  const Json a = {
      {"memory", 0}, {"offset", 256}, {"bytes", 30}, {"dtype", "bfloat16"}, {"shape", {3, 5}}};
  EXPECT_EQ(json["items"]["a"], a);
  EXPECT_EQ(json["items"]["b"]["memory"], 1);
  EXPECT_EQ(json["memories"][0], (Json{{"gpu", "GPU-a"}, {"handle", "AAEC"}, {"bytes", 4096}}));
  EXPECT_EQ(json["memories"][1]["gpu"], "GPU-b");
  EXPECT_EQ(json["lasts_ms"], 5000);
}

TEST_F(LendRoute, WhatIsNotOnAGpuIsNull) {
  store("a", "cached 1");
  store("evicted", "gone");
  store("other dtype", "");
  const Json json = line_of(post(R"({"keys": ["a", "evicted", "other dtype"]})"));
  EXPECT_TRUE(json["items"]["a"].is_object());
  EXPECT_TRUE(json["items"]["evicted"].is_null());
  EXPECT_TRUE(json["items"]["other dtype"].is_null());
  EXPECT_TRUE(line_of(post(R"({"keys": ["unknown"]})"))["items"]["unknown"].is_null());
}

TEST_F(LendRoute, SaysWhatTheDocumentSays) {
  store("a", "cached 1");
  router_->add(openapi_route(*router_));
  const Json document =
      test::json_of(test::answer(*router_, test::request_to("GET", "/openapi.json")));
  const Json& answers = document["paths"]["/v1/cache/lend"]["post"]["responses"];
  const Json& schema = answers["200"]["content"]["application/json"]["schema"];
  const Json reply = line_of(post(R"({"keys": ["a", "unknown"]})"));
  EXPECT_EQ(test::schema_mismatch(document, schema, reply), "");
}

TEST_F(LendRoute, NamesAKeyOnce) {
  store("a", "cached 1");
  const Reply reply = post(R"({"keys": ["a", "a"]})");
  const std::string text = reply.stream->take().bytes;
  EXPECT_EQ(text.find("\"a\""), text.rfind("\"a\"")) << text;
}

TEST_F(LendRoute, HoldsRowsUntilTheReplyGoes) {
  {
    const Reply reply = post(R"({"keys": ["a"]})");
    EXPECT_EQ(num_pinned(), 1);
  }
  EXPECT_EQ(num_pinned(), 0);
  EXPECT_TRUE(tasks_.empty()) << "no thread that computes is needed";
}

TEST_F(LendRoute, AThreadThatComputesWaitsForRows) {
  are_copied_ = false;
  store("a", "cached 1");
  std::optional<Reply> reply;
  const auto exchange =
      std::make_shared<Exchange>(test::request_to("POST", "/v1/cache/lend", R"({"keys": ["a"]})"),
                                 [&](Reply given) { reply = std::move(given); });
  router_->routes().front().handler(exchange, {});
  EXPECT_FALSE(reply) << "not on the thread of the connection";
  run_tasks();
  ASSERT_TRUE(reply);
  EXPECT_TRUE(line_of(*reply)["items"]["a"].is_object());
  EXPECT_EQ(num_pinned(), 1);
}

TEST_F(LendRoute, RowsThatNeverComeAreAnError) {
  are_copied_ = false;
  std::optional<Reply> reply;
  const auto exchange =
      std::make_shared<Exchange>(test::request_to("POST", "/v1/cache/lend", R"({"keys": ["a"]})"),
                                 [&](Reply given) { reply = std::move(given); });
  router_->routes().front().handler(exchange, {});
  fails_ = true;
  run_tasks();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 500);
}

TEST_F(LendRoute, HoldsRowsUntilTheConnectionCloses) {
  const Reply reply = post(R"({"keys": ["a"]})");
  reply.stream->close();
  EXPECT_EQ(num_pinned(), 0);
}

TEST_F(LendRoute, HasATimeWhenItEnds) {
  const Clock::time_point before = Clock::now();
  const Reply reply = post(R"({"keys": ["a"]})");
  EXPECT_GE(reply.stream_until, before + std::chrono::seconds(5));
  EXPECT_LE(reply.stream_until, Clock::now() + std::chrono::seconds(5));
}

TEST_F(LendRoute, LendsToSoManyAtATime) {
  std::optional<Reply> first = post(R"({"keys": ["a"]})");
  const Reply second = post(R"({"keys": ["a"]})");
  const Reply refused = post(R"({"keys": ["a"]})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(test::json_of(refused)["error"]["code"], "queue_full");
  EXPECT_EQ(num_pinned(), 2);
  first.reset();
  EXPECT_EQ(post(R"({"keys": ["a"]})").status, 200);
}

TEST_F(LendRoute, AFailureLeavesItsPlaceToOthers) {
  fails_ = true;
  for (int call = 0; call < 3; ++call) EXPECT_EQ(post(R"({"keys": ["a"]})").status, 500);
  fails_ = false;
  EXPECT_EQ(post(R"({"keys": ["a"]})").status, 200);
}

TEST_F(LendRoute, RefusesWhatIsNoListOfSomeKeys) {
  const auto code = [&](const std::string& body) {
    const Reply reply = post(body);
    EXPECT_EQ(reply.status, 400) << body;
    return std::string(test::json_of(reply)["error"]["code"]);
  };
  EXPECT_EQ(code(R"({})"), "missing_field");
  EXPECT_EQ(code(R"({"keys": "a"})"), "invalid_value");
  EXPECT_EQ(code(R"({"keys": [1]})"), "invalid_value");
  EXPECT_EQ(code(R"({"keys": [], "for": 3})"), "unknown_field");
  EXPECT_EQ(code(R"({"keys": ["1", "2", "3", "4"]})"), "too_many_items");
  EXPECT_EQ(num_pinned(), 0);
}

TEST_F(LendRoute, IsWorkThatNeedsAKeyOfClients) {
  EXPECT_EQ(router_->routes().front().kind, RouteKind::kWork);
}

/// The route behind a server, and what it lends: one item, once.
class LendOverTheWire : public ::testing::Test {
 protected:
  void start(std::chrono::milliseconds most_time) {
    router_.add(lend_route({.store = store_,
                            .lend = [this](auto) { return lend(); },
                            .try_lend = [this](auto) { return std::optional(lend()); },
                            .run_task = [this](auto task) { workers_.run(std::move(task)); }},
                           {.max_at_once = 1, .most_time = most_time}));
    server_.emplace(
        fovea::test::loopback(),
        Server::Parts{.router = &router_,
                      .gate = [](const auto&, const auto&) { return Permit{}; },
                      .observer = {},
                      .run_task = [this](auto task) { workers_.run(std::move(task)); }});
    server_->start();
  }
  [[nodiscard]] LentRows lend() {
    const auto give_back = [this](const void*) { given_back_.set_value(); };
    return {.memories = {}, .items = {LentItem{}}, .pins = {nullptr, give_back}};
  }
  /// A client that has been told where rows lie.
  [[nodiscard]] fovea::test::RawClient ask() const {
    auto client = fovea::test::RawClient::tcp(server_->port());
    client.send(fovea::test::post("/v1/cache/lend", R"({"keys": ["a"]})"));
    EXPECT_EQ(client.receive_reply().status, 200);
    EXPECT_NE(client.receive_until("}\n\r\n").find(R"("items":{"a":{)"), std::string::npos);
    return client;
  }
  [[nodiscard]] bool are_held() {
    return rows_.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  }
  [[nodiscard]] bool are_given_back() {
    return rows_.wait_for(std::chrono::minutes(1)) == std::future_status::ready;
  }

  RowStore store_{1'000'000};
  std::promise<void> given_back_;
  std::future<void> rows_ = given_back_.get_future();
  Router router_;
  Workers workers_{2};
  std::optional<Server> server_;
};

TEST_F(LendOverTheWire, AClientThatLeavesGivesRowsBack) {
  start(std::chrono::hours(1));
  fovea::test::RawClient client = ask();
  EXPECT_TRUE(are_held());
  client.close();
  EXPECT_TRUE(are_given_back());
}

TEST_F(LendOverTheWire, AnEmptyLineGivesRowsBackAndTheConnectionLivesOn) {
  start(std::chrono::hours(1));
  fovea::test::RawClient client = ask();
  EXPECT_TRUE(are_held());
  client.send("\r\n");
  EXPECT_TRUE(are_given_back());
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "0\r\n\r\n") << "the end of the reply";
  EXPECT_EQ(client.ask(fovea::test::get("/v1/cache/lend")).status, 405);
}

TEST_F(LendOverTheWire, TheNextRequestGivesRowsBackBeforeItIsAnswered) {
  start(std::chrono::hours(1));
  fovea::test::RawClient client = ask();
  client.send(fovea::test::get("/v1/cache/lend"));
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_EQ(client.receive_reply().status, 405);
  EXPECT_FALSE(are_held());
}

TEST_F(LendOverTheWire, TheTimeGivesRowsBack) {
  start(std::chrono::milliseconds(20));
  fovea::test::RawClient client = ask();
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "0\r\n\r\n") << "the end of the reply";
  EXPECT_TRUE(are_given_back());
}

TEST_F(LendOverTheWire, TheEndOfTheServerGivesRowsBack) {
  start(std::chrono::hours(1));
  fovea::test::RawClient client = ask();
  EXPECT_TRUE(are_held());
  server_->stop(std::chrono::milliseconds(0));
  EXPECT_TRUE(are_given_back());
  EXPECT_TRUE(client.is_closed());
}

}  // namespace
}  // namespace fovea::serve
