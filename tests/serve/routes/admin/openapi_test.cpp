#include "serve/routes/admin/routes.h"

#include <gtest/gtest.h>

#include "serve/routes/answer.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

TEST(OpenApi, DescribesEveryRouteAndItself) {
  Router router;
  router.add({.method = "POST", .pattern = "/v1/encode", .kind = RouteKind::kWork, .handler = {}});
  router.add({.method = "GET", .pattern = "/v1/cache/{key}", .kind = {}, .handler = {}});
  router.add({.method = "DELETE", .pattern = "/v1/cache/{key}", .kind = {}, .handler = {}});
  router.add(openapi_route(router));
  const Json json = test::json_of(test::answer(router, test::request_to("GET", "/openapi.json")));
  EXPECT_EQ(json["openapi"], "3.1.0");
  EXPECT_EQ(json["paths"].size(), 3U);
  EXPECT_EQ(json["paths"]["/v1/encode"]["post"]["tags"][0], "work");
  EXPECT_EQ(json["paths"]["/v1/cache/{key}"].size(), 2U);
  const Json& parameter = json["paths"]["/v1/cache/{key}"]["delete"]["parameters"][0];
  EXPECT_EQ(parameter["name"], "key");
  EXPECT_EQ(parameter["required"], true);
  EXPECT_TRUE(json["paths"].contains("/openapi.json"));
}

}  // namespace
}  // namespace fovea::serve
