#include "serve/routes/routes.h"

#include <gtest/gtest.h>

#include "serve/routes/route_caller.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

TEST(ModelRoutes, ListTheModel) {
  ServiceOptions options = test::small_service();
  options.served_name = "org/m";
  const Service service(options);  // whether it is loaded or not
  test::RouteCaller routes;
  routes.add(model_routes(service));
  for (const char* path : {"/v1/models", "/models"}) {
    const Json json = routes.get(path).json();
    EXPECT_EQ(json["object"], "list");
    ASSERT_EQ(json["data"].size(), 1U);
    EXPECT_EQ(json["data"][0]["id"], "org/m");
    EXPECT_EQ(json["data"][0]["owned_by"], "fovea");
  }
  EXPECT_EQ(routes.get("/v1/models/org/m").json()["id"], "org/m");
  EXPECT_EQ(routes.get("/v1/models/another").code(), "model_not_found");
  EXPECT_EQ(routes.get("/v1/models/another/m").status, 404);
}

}  // namespace
}  // namespace fovea::serve
