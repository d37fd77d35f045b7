#include "serve/http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

Router routes() {
  Router router;
  for (const auto& [method, pattern] : {std::pair{"GET", "/health"},
                                        {"POST", "/v1/encode"},
                                        {"GET", "/v1/cache/stats"},
                                        {"GET", "/v1/cache/{key}"},
                                        {"DELETE", "/v1/cache/{key}"},
                                        {"GET", "/"},
                                        {"POST", "/v2/models/{m}/versions/{v}/infer"}}) {
    router.add({.method = method, .pattern = pattern, .kind = RouteKind::kService, .handler = {}});
  }
  return router;
}

/// "pattern arguments...", "no path" or "allows ...".
std::string answer(std::string_view method, std::string_view path) {
  static const Router kRouter = routes();
  const auto found = kRouter.find(method, path);
  if (std::holds_alternative<Router::NoPath>(found)) return "no path";
  if (const auto* wrong = std::get_if<Router::NoMethod>(&found)) return "allows " + wrong->allowed;
  std::string text = std::get<Router::Found>(found).route->pattern;
  for (const std::string& argument : std::get<Router::Found>(found).arguments)
    text += " " + argument;
  return text;
}

TEST(Router, FindsTheFirstRouteThatFits) {
  EXPECT_EQ(answer("GET", "/health"), "/health");
  EXPECT_EQ(answer("GET", "/"), "/");
  EXPECT_EQ(answer("GET", "/v1/cache/stats"), "/v1/cache/stats");
  EXPECT_EQ(answer("GET", "/v1/cache/a%b"), "/v1/cache/{key} a%b");
  EXPECT_EQ(answer("POST", "/v2/models/m/versions/1/infer"),
            "/v2/models/{m}/versions/{v}/infer m 1");
}

TEST(Router, AnswersHeadWhereThereIsGet) { EXPECT_EQ(answer("HEAD", "/health"), "/health"); }

TEST(Router, TakesOtherPathsForNone) {
  for (const char* path : {"", "health", "/health/", "//health", "/v1", "/v1/cache/",
                           "/v1/cache/a/b", "/healthz", "/v2/models//versions/1/infer"}) {
    EXPECT_EQ(answer("GET", path), "no path") << path;
  }
}

TEST(Router, NamesTheMethodsOfAPath) {
  EXPECT_EQ(answer("GET", "/v1/encode"), "allows POST");
  EXPECT_EQ(answer("PUT", "/v1/cache/x"), "allows GET, HEAD, DELETE");
  EXPECT_EQ(answer("get", "/health"), "allows GET, HEAD");
}

TEST(BelowRoot, CutsWholeSegments) {
  EXPECT_EQ(below_root("/a/b", ""), "/a/b");
  EXPECT_EQ(below_root("/a/b", "/a"), "/b");
  EXPECT_EQ(below_root("/a/", "/a"), "/");
  EXPECT_EQ(below_root("/a", "/a"), "/");
  EXPECT_EQ(below_root("/ab", "/a"), std::nullopt);
  EXPECT_EQ(below_root("/b", "/a"), std::nullopt);
  EXPECT_EQ(below_root("/", "/a"), std::nullopt);
}

}  // namespace
}  // namespace fovea::serve
