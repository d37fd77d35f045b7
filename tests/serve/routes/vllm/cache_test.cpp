#include "serve/routes/vllm/routes.h"

#include <gtest/gtest.h>

#include "serve/routes/route_caller.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

using test::Answer;

std::shared_ptr<const Embedding> rows_of(std::int64_t rows) {
  auto item = std::make_shared<Embedding>();
  item->rows = rows;
  item->width = 3;
  item->dtype = RowDType::kBFloat16;
  item->data.resize(static_cast<std::size_t>(rows) * 6);
  std::ranges::fill(item->data, std::byte{0});
  return item;
}

class CacheRoutesTest : public ::testing::Test {
 protected:
  CacheRoutesTest() { routes_.add(cache_routes(served_.service, store_, &publisher_)); }

  test::TemporaryDirectory folder_;
  RowStore store_{1'000'000};
  Publisher publisher_{PublisherOptions{.directory = folder_.path(), .max_bytes = 1000}};
  test::Served served_;
  test::RouteCaller routes_;
};

TEST_F(CacheRoutesTest, SendsRowsWithoutACopy) {
  const std::shared_ptr<const Embedding> item = rows_of(2);
  store_.put("a", item);
  const Router router = [&] {
    Router made;
    for (Route& route : cache_routes(served_.service, store_, nullptr)) made.add(std::move(route));
    return made;
  }();
  Request request;
  request.method = "GET";
  bool refers = false;
  const auto exchange = std::make_shared<Exchange>(std::move(request), [&](const Reply& reply) {
    refers = std::ranges::any_of(
        reply.body, [&](const BodyPart& part) { return part.bytes.data() == item->data.data(); });
    EXPECT_EQ(reply.size(), 116U) << "the golden file of bfloat16 zeros [2, 3]";
    EXPECT_GT(served_.service.memory().used(), 0) << "counted while it is sent";
  });
  const auto found = router.find("GET", "/v1/cache/a");
  const auto& route = std::get<Router::Found>(found);
  route.route->handler(exchange, route.arguments);
  EXPECT_TRUE(refers);
  EXPECT_EQ(served_.service.memory().used(), 0);
}

TEST_F(CacheRoutesTest, RefusesToSendWhatThereIsNoMemoryFor) {
  store_.put("a", rows_of(2));
  const std::shared_ptr<void> all =
      served_.service.take_memory(served_.service.memory().capacity());
  const Answer answer = routes_.get("/v1/cache/a");
  EXPECT_EQ(answer.status, 429);
  EXPECT_NE(answer.header("Retry-After"), "");
  EXPECT_EQ(routes_.call("HEAD", "/v1/cache/a").status, 200) << "sends nothing";
}

TEST_F(CacheRoutesTest, ForgetsRows) {
  store_.put("a", rows_of(2));
  store_.put("b", rows_of(2));
  EXPECT_EQ(routes_.call("DELETE", "/v1/cache/a").status, 200);
  EXPECT_EQ(routes_.call("DELETE", "/v1/cache/a").code(), "key_not_found");
  EXPECT_EQ(routes_.get("/v1/cache/b").status, 200);
  EXPECT_EQ(routes_.call("POST", "/v1/cache/reset").status, 200);
  EXPECT_EQ(routes_.get("/v1/cache/b").status, 404);
}

TEST_F(CacheRoutesTest, TellsItsCounters) {
  store_.put("a", rows_of(2));
  publisher_.publish("a", *rows_of(2));
  const Json json = routes_.get("/v1/cache").json();
  EXPECT_EQ(json["row_store"]["entries"], 1);
  EXPECT_EQ(json["row_store"]["capacity_bytes"], 1'000'000);
  EXPECT_EQ(json["ec_dir"]["published"], 1);
  EXPECT_EQ(json["ec_dir"]["bytes"], 116);
  EXPECT_EQ(json["encoder_cache"]["capacity_bytes"], 0);
}

TEST_F(CacheRoutesTest, HasRowsOfAnyNameUnderTheirPath) {
  for (const char* key : {"stats", "reset", "cache", "v1"}) {
    const std::string path = cache_path(key);
    EXPECT_EQ(routes_.get(path).code(), "key_not_found") << path;
    store_.put(key, rows_of(2));
    EXPECT_EQ(routes_.get(path).header("X-Fovea-Format"), "safetensors") << path;
    EXPECT_EQ(routes_.call("DELETE", path).status, 200) << path;
    EXPECT_EQ(routes_.get(path).status, 404) << path;
  }
}

TEST_F(CacheRoutesTest, NeedsTheAdminToForget) {
  for (const Route& route : cache_routes(served_.service, store_, nullptr)) {
    const bool changes = route.method != "GET";
    EXPECT_EQ(route.kind == RouteKind::kAdmin, changes) << route.pattern;
  }
}

TEST(CachePath, EncodesWhatIsNoPlainLetter) {
  EXPECT_EQ(cache_path("aZ9-._~"), "/v1/cache/aZ9-._~");
  EXPECT_EQ(cache_path("lora:a b\xc3\xa9%\""), "/v1/cache/lora%3Aa%20b%C3%A9%25%22");
}

}  // namespace
}  // namespace fovea::serve
