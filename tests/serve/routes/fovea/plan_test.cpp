#include "serve/routes/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/routes/answer.h"
#include "serve/routes/route_caller.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

using test::Answer;
using test::data_url;
using test::encoded;
using test::photo;
using testing::HasSubstr;

class PlanRoute : public testing::Test {
 protected:
  /// What all tests share, from the first one on.
  struct Shared {
    Service service{test::small_service()};
    MediaSource media{{.policy = UrlPolicy::kNone}};
  };
  static std::unique_ptr<Shared>& shared() {
    static std::unique_ptr<Shared> shared;
    return shared;
  }
  static Service& service() { return shared()->service; }

  static void SetUpTestSuite() {
    shared() = std::make_unique<Shared>();
    service().wait_loaded();
  }
  static void TearDownTestSuite() { shared().reset(); }
  void SetUp() override {
    ASSERT_EQ(service().state(), ServiceState::kReady) << service().problem();
    caller_.add({plan_route({service(), shared()->media, {.max_items = 4}})});
  }

  [[nodiscard]] Answer post(const std::string& items) const {
    return caller_.call("POST", "/v1/plan", R"({"items":[)" + items + "]}");
  }

  test::RouteCaller caller_;
};

TEST_F(PlanRoute, TellsTheRowsThatEncodingGives) {
  const Answer answer = post(R"({"image":")" + data_url(photo()) + R"(","id":"a"},)" +
                             R"({"width":180,"height":180})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json reply = answer.json();
  const Embedding expected = encoded(photo(), RowDType::kFloat32);
  EXPECT_EQ(reply["width"], expected.width);
  const Json& image = reply["data"][0];
  EXPECT_EQ(image["id"], "a");
  EXPECT_EQ(image["num_embeds"], expected.rows);
  EXPECT_EQ(image["grid_thw"], Json(*expected.grid_thw));
  EXPECT_EQ(image["source_size"], Json({180, 180}));
  EXPECT_EQ(image["resized_size"], Json({expected.resized_width_px, expected.resized_height_px}));
  EXPECT_EQ(reply["data"][1]["num_embeds"], expected.rows);
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 2 * expected.rows);
}

TEST_F(PlanRoute, SaysHowItemsArePacked) {
  const Json packing =
      post(R"({"width":64,"height":64},{"width":32,"height":64})").json()["packing"];
  EXPECT_EQ(packing["paths"].size(), packing["token_budgets"].size());
  std::vector<std::int64_t> items;
  for (const Json& batch : packing["batches"]) {
    EXPECT_EQ(batch["tokens"].size(), packing["paths"].size());
    EXPECT_EQ(batch["budgets"].size(), packing["paths"].size());
    for (const Json& item : batch["items"]) items.push_back(item.get<std::int64_t>());
  }
  EXPECT_THAT(items, testing::UnorderedElementsAre(0, 1));
}

TEST_F(PlanRoute, PlansVideosBySize) {
  const Json item =
      post(R"({"type":"video","width":64,"height":64,"num_frames":4})").json()["data"][0];
  EXPECT_EQ(item["modality"], "video");
  EXPECT_EQ(item["num_frames"], 4);
  EXPECT_GT(item["grid_thw"][0].get<int>(), 1);
}

TEST_F(PlanRoute, TellsVideosFromImagesByTheirFrames) {
  const Answer answer = post(R"({"width":64,"height":64,"num_frames":4})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json item = answer.json()["data"][0];
  EXPECT_EQ(item["modality"], "video");
  EXPECT_EQ(item["num_frames"], 4);
}

TEST_F(PlanRoute, RefusesOptionsThatChooseFramesOfASize) {
  for (const char* kwargs : {R"({"num_frames":8})", R"({"fps":1})"}) {
    const Answer answer = post(
        R"({"type":"video","width":64,"height":64,"num_frames":4,"fps":2,"processor_kwargs":)" +
        std::string(kwargs) + "}");
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(answer.param(), "items[0]");
    EXPECT_THAT(answer.body, HasSubstr("have no meaning for it"));
  }
  EXPECT_EQ(post(R"({"width":64,"height":64,"processor_kwargs":{"num_frames":8}})").status, 200)
      << "of no concern to images";
}

TEST_F(PlanRoute, EncodesNothing) {
  const std::int64_t before = service().engine().stats().sub_batches;
  EXPECT_EQ(post(R"({"image":")" + data_url(photo()) + "\"}").status, 200);
  EXPECT_EQ(service().engine().stats().sub_batches, before);
}

TEST_F(PlanRoute, NamesTheItemItCannotPlan) {
  const std::string good = R"({"width":64,"height":64},)";
  const Answer narrow = post(good + R"({"width":100000,"height":1})");
  EXPECT_EQ(narrow.status / 100, 4) << narrow.body;
  EXPECT_EQ(narrow.param(), "items[1]");
  const Answer broken = post(good + R"({"image":"data:image/png;base64,AAAA"})");
  EXPECT_EQ(broken.status, 422) << broken.body;
  EXPECT_EQ(broken.param(), "items[1].image");
  const Answer video = post(good + R"({"video":"data:video/mp4;base64,AAAAGGZ0eXBpc29t"})");
  EXPECT_EQ(video.status, 422) << video.body;
  EXPECT_EQ(video.code(), "unsupported_media");
  EXPECT_EQ(video.param(), "items[1].video");
  EXPECT_THAT(video.json()["error"]["message"], HasSubstr("width, height and num_frames"));
}

TEST_F(PlanRoute, RefusesRequestsThatAreNone) {
  EXPECT_EQ(post("").param(), "items");
  EXPECT_EQ(post(R"({"width":64,"height":0})").param(), "items[0].height");
  EXPECT_EQ(post(R"({"image":"http://example.org/a.png"})").status, 403);
  EXPECT_EQ(post(R"({"width":1,"height":1},{"width":1,"height":1},{"width":1,"height":1},
                     {"width":1,"height":1},{"width":1,"height":1})")
                .code(),
            "too_many_items");
  EXPECT_EQ(
      caller_.call("POST", "/v1/plan", R"({"model":"x","items":[{"width":9,"height":9}]})").code(),
      "model_not_found");
  EXPECT_EQ(caller_
                .call("POST", "/v1/plan",
                      R"({"processor_kwargs":{"min_pixels":-1},"items":[{"width":9,"height":9}]})")
                .param(),
            "processor_kwargs.min_pixels");
}

TEST_F(PlanRoute, PlansWithTheOptionsOfAnItem) {
  const auto data = post(R"({"width":640,"height":480},
              {"width":640,"height":480,"processor_kwargs":{"min_pixels":1024,"max_pixels":20000}})")
                        .json()["data"];
  EXPECT_EQ(data[0]["num_embeds"], 300);
  EXPECT_EQ(data[1]["num_embeds"], 15);
}

TEST_F(PlanRoute, PlansMediaWithTheirOptions) {
  const std::string image = R"({"image":")" + data_url(photo()) + '"';
  const auto data =
      post(image + "}," + image + R"(,"processor_kwargs":{"min_pixels":1024,"max_pixels":8000}})")
          .json()["data"];
  EXPECT_EQ(data[0]["num_embeds"], 36);
  EXPECT_EQ(data[1]["num_embeds"], 4);
}

TEST_F(PlanRoute, EndsAtTheTimeOfTheClient) {
  Router router;
  router.add(plan_route({service(), shared()->media}));
  Request request = test::request_to("POST", "/v1/plan",
                                     R"({"timeout_ms":1000,"items":[{"width":64,"height":64}]})");
  request.arrival -= std::chrono::minutes(1);
  EXPECT_EQ(test::answer(router, std::move(request)).status, 504);
}

}  // namespace
}  // namespace fovea::serve
