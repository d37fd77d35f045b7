#include "serve/routes/admin/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "core/json_writer.h"
#include "fovea/option_table.h"
#include "fovea/option_text.h"
#include "serve/routes/answer.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

using testing::HasSubstr;
using testing::Not;

ServiceOptions small() {
  ServiceOptions options;
  options.model = FOVEA_TEST_GOLDEN_DIR "/qwen3_vl";
  options.served_name = "m";
  options.engine.device = "cpu";
  options.engine.num_threads = 1;
  return options;
}

Router routes_of(Service& service) {
  Router router;
  for (Route& route : health_routes(service, "abc")) router.add(std::move(route));
  return router;
}

class HealthTest : public testing::Test {
 protected:
  HealthTest() : service_(small()), router_(routes_of(service_)) { service_.wait_loaded(); }
  int status(const std::string& path) {
    return test::answer(router_, test::request_to("GET", path)).status;
  }

  Service service_;
  Router router_;
};

TEST_F(HealthTest, IsGoodWhenTheModelIsLoaded) {
  for (const char* path : {"/health", "/readyz", "/health/ready", "/ping", "/livez", "/health/live",
                           "/health_generate", "/version", "/info"}) {
    EXPECT_EQ(status(path), 200) << path;
  }
}

TEST_F(HealthTest, AnswersProbesWithoutAThreadThatComputes) {
  for (const Route& route : router_.routes()) {
    const bool computes = route.pattern == "/health_generate" || route.pattern == "/version" ||
                          route.pattern == "/info";
    EXPECT_EQ(route.is_instant, !computes) << route.pattern;
  }
}

TEST_F(HealthTest, LosesReadinessBeforeLifeAtTheEnd) {
  service_.announce_end();
  EXPECT_EQ(status("/readyz"), 503);
  EXPECT_EQ(status("/health"), 503);
  EXPECT_EQ(status("/livez"), 200);
  EXPECT_EQ(test::json_of(test::answer(router_, test::request_to("GET", "/health")))["status"],
            "draining");
}

TEST(Health, SaysThatAServerWithoutAModelDoesNotLive) {
  ServiceOptions options = small();
  options.model += "/nowhere";
  Service service(options);
  service.wait_loaded();
  const Router router = routes_of(service);
  EXPECT_EQ(test::answer(router, test::request_to("GET", "/livez")).status, 503);
  EXPECT_EQ(test::answer(router, test::request_to("GET", "/readyz")).status, 503);
  EXPECT_EQ(test::answer(router, test::request_to("GET", "/info")).status, 503);
  EXPECT_EQ(test::answer(router, test::request_to("GET", "/version")).status, 200);
}

TEST_F(HealthTest, DescribesTheModelWithoutPathsOfTheServer) {
  const Reply reply = test::answer(router_, test::request_to("GET", "/info"));
  const Json info = test::json_of(reply);
  EXPECT_EQ(info["model"], "m");
  EXPECT_EQ(info["family"], "qwen3_vl");
  EXPECT_EQ(info["dtype"], "bfloat16");
  EXPECT_EQ(info["width"].get<int>(),
            info["hidden"].get<int>() * (1 + info["deepstack_levels"].get<int>()));
  EXPECT_EQ(info["git"], "abc");
  EXPECT_GT(info["limits"]["max_queue_items"].get<int>(), 0);
  EXPECT_FALSE(info["token_budgets"]["default"].empty());
  EXPECT_THAT(test::text_of(reply), Not(HasSubstr(FOVEA_TEST_GOLDEN_DIR)));
}

TEST_F(HealthTest, ShowsEveryOption) {
  const Json info = test::json_of(test::answer(router_, test::request_to("GET", "/info")));
  JsonObject expected;
  add_options(expected, small().engine);
  EXPECT_EQ(info["options"], Json::parse(to_json_text(expected)));
  EXPECT_EQ(info["options"]["media_profile"], "vllm");
  EXPECT_EQ(info["options"]["threads"], 1);
  EXPECT_TRUE(info["options"]["min_pixels"].is_null());
  EXPECT_EQ(info["limits"]["max_item_bytes"], MediaLimits{}.max_item_bytes);
}

TEST(Health, ShowsNoPathsAmongTheOptions) {
  ServiceOptions options = small();
  options.engine.cache_dir = "/some/where";
  Service service(options);
  service.wait_loaded();
  const Router router = routes_of(service);
  const Reply reply = test::answer(router, test::request_to("GET", "/info"));
  EXPECT_EQ(test::json_of(reply)["options"]["cache_dir"], "***");
}

TEST_F(HealthTest, CountsInMetricsWhatWasEncoded) {
  RequestMetrics requests;
  Admission admission({}, service_);
  Router router;
  router.add(metrics_route({.service = &service_,
                            .admission = &admission,
                            .requests = &requests,
                            .http = [] { return HttpStats{.connections = 7}; },
                            .build_id = "a\"b"}));
  std::promise<void> encoded;
  Job job;
  job.items = service_.plan({image_rgb(std::vector<std::uint8_t>(3 * 64 * 64), 64, 64, "x")});
  service_.encode(std::move(job), [&](const JobReply&) { encoded.set_value(); });
  encoded.get_future().wait();
  EXPECT_EQ(status("/health_generate"), 200);  // counts as no job
  const Reply reply = test::answer(router, test::request_to("GET", "/metrics"));
  EXPECT_EQ(reply.content_type, "text/plain; version=0.0.4; charset=utf-8");
  const std::string text = test::text_of(reply);
  EXPECT_THAT(text, HasSubstr("fovea_connections{model=\"m\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("fovea_jobs_total{model=\"m\",result=\"completed\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("fovea_ready{model=\"m\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("git=\"a\\\"b\""));
  EXPECT_THAT(text, HasSubstr("\nprocess_open_fds "));
}

}  // namespace
}  // namespace fovea::serve
