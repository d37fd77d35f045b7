#include "serve/routes/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fovea/row_formats.h"
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
using test::shapes;
using testing::HasSubstr;
using testing::MatchesRegex;

class EncodeRoute : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    service_ = std::make_unique<Service>(test::small_service());
    service_->wait_loaded();
    media_ = std::make_unique<MediaSource>(MediaSourceOptions{.policy = UrlPolicy::kNone});
  }
  static void TearDownTestSuite() {
    service_.reset();
    media_.reset();
  }
  void SetUp() override {
    ASSERT_EQ(service_->state(), ServiceState::kReady) << service_->problem();
    use({});
  }

  void use(const CallLimits& limits) {
    caller_ = {};
    caller_.add({encode_route({*service_, *media_, limits})});
  }

  [[nodiscard]] Answer post(const std::string& body) const {
    return caller_.call("POST", "/v1/encode", body);
  }
  /// One photo, with an `output`.
  [[nodiscard]] Answer photo_as(const std::string& output) const {
    return post(R"({"items":[{"image":")" + data_url(photo()) + R"("}],"output":)" + output + "}");
  }

  static inline std::unique_ptr<Service> service_;
  static inline std::unique_ptr<MediaSource> media_;
  test::RouteCaller caller_;
};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST_F(EncodeRoute, GivesTheRowsOfTheEngineInJson) {
  const Answer answer = photo_as("{}");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json reply = answer.json();
  const Embedding expected = encoded(photo(), RowDType::kFloat32);
  const Json& item = reply["data"][0];
  EXPECT_EQ(item["shape"], Json({expected.rows, expected.width}));
  EXPECT_EQ(item["grid_thw"], Json(*expected.grid_thw));
  ASSERT_EQ(std::cmp_equal(item["data"].size(), expected.rows), true);
  for (std::int64_t row = 0; row < expected.rows; ++row) {
    for (std::int64_t column = 0; column < expected.width; ++column) {
      const Json& number =
          item["data"][static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
      ASSERT_EQ(number.get<float>(), expected.at(row, column));
    }
  }
  EXPECT_EQ(reply["model"], "m");
  EXPECT_THAT(reply["id"].get<std::string>(), MatchesRegex("enc-.*"));
  EXPECT_EQ(reply["usage"]["prompt_tokens"], expected.rows);
  EXPECT_EQ(answer.header("X-Fovea-Rows"), std::to_string(expected.rows));
  EXPECT_EQ(answer.header("X-Fovea-Format"), "json");
}

TEST_F(EncodeRoute, GivesTheBitsOfTheEngineInSafetensors) {
  const Answer answer = photo_as(R"({"format":"safetensors"})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Embedding expected = encoded(photo(), RowDType::kBFloat16);
  const std::vector<StoredTensor> tensors = read_safetensors(bytes_of(answer.body), "reply");
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[1].type, StoredType::kBFloat16);  // that of the checkpoint
  EXPECT_TRUE(std::ranges::equal(tensors[1].data, expected.data));
}

TEST_F(EncodeRoute, KeepsTheOrderAndTheNamesOfItems) {
  const Answer answer =
      post(R"({"items":[{"image":")" + data_url(shapes()) + R"(","id":"a"},{"image":")" +
           data_url(photo()) + R"(","id":"b"}],"output":{"format":"base64","dtype":"float16"}})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json data = answer.json()["data"];
  EXPECT_EQ(data[0]["id"], "a");
  EXPECT_EQ(data[0]["data"], to_base64(encoded(shapes(), RowDType::kFloat16).data));
  EXPECT_EQ(data[1]["id"], "b");
  EXPECT_EQ(data[1]["data"], to_base64(encoded(photo(), RowDType::kFloat16).data));
}

TEST_F(EncodeRoute, TakesTheBytesOfAnImage) {
  const std::vector<std::uint8_t> bytes = photo();
  const Answer answer =
      caller_.call("POST", "/v1/encode?output.format=npy", std::string(bytes.begin(), bytes.end()),
                   {{"Content-Type", "image/jpeg"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const StoredTensor tensor = read_npy(bytes_of(answer.body), "reply");
  EXPECT_EQ(tensor.type, StoredType::kFloat32);  // numpy has no bfloat16
  EXPECT_TRUE(std::ranges::equal(tensor.data, encoded(bytes, RowDType::kFloat32).data));
}

TEST_F(EncodeRoute, PoolsAndNormalises) {
  const Answer answer = photo_as(R"({"pooling":"mean","normalize":true})");
  const Json vector = answer.json()["data"][0]["data"];
  const Embedding rows = encoded(photo(), RowDType::kFloat32);
  ASSERT_EQ(
      std::cmp_equal(vector.size(), rows.width / (1 + service_->model().report.deepstack_levels)),
      true);
  double squares = 0;
  for (const Json& number : vector) squares += number.get<double>() * number.get<double>();
  EXPECT_NEAR(squares, 1, 1e-5);
}

TEST_F(EncodeRoute, SplitsTheLevelsOfTheModel) {
  const Json item = photo_as(R"({"deepstack":"split"})").json()["data"][0];
  const Embedding rows = encoded(photo(), RowDType::kFloat32);
  const auto levels = item["deepstack_levels"].get<std::int64_t>();
  EXPECT_GT(levels, 0);
  EXPECT_EQ(item["deepstack"].size(), static_cast<std::size_t>(levels));
  EXPECT_EQ(item["shape"], Json({rows.rows, rows.width / (1 + levels)}));
  EXPECT_EQ(item["deepstack"][0][1][0].get<float>(), rows.at(1, rows.width / (1 + levels)));
}

TEST_F(EncodeRoute, SaysHowLongItTook) {
  const std::string time = "[0-9]+\\.[0-9][0-9][0-9]";
  EXPECT_THAT(photo_as("{}").header("Server-Timing"),
              MatchesRegex("fetch;dur=" + time + ", decode;dur=" + time + ", prep;dur=" + time +
                           ", queue;dur=" + time + ", encode;dur=" + time + ", total;dur=" + time));
}

TEST_F(EncodeRoute, NamesTheItemThatCannotBeDecoded) {
  const Answer answer = post(R"({"items":[{"image":")" + data_url(photo()) +
                             R"("},{"image":"data:image/png;base64,AAAA"}]})");
  EXPECT_EQ(answer.status, 422) << answer.body;
  EXPECT_EQ(answer.param(), "items[1].image");
}

TEST_F(EncodeRoute, RefusesMoreNumbersThanJsonMayHoldBeforeItEncodes) {
  use({.max_items = 4, .max_json_values = 1000});
  const std::int64_t before = service_->engine().stats().sub_batches;
  const Answer answer = photo_as("{}");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.code(), "response_too_large_for_json");
  EXPECT_THAT(answer.json()["error"]["message"], HasSubstr("safetensors"));
  EXPECT_EQ(service_->engine().stats().sub_batches, before);
  EXPECT_EQ(photo_as(R"({"format":"base64"})").status, 200);
}

TEST_F(EncodeRoute, RefusesOptionsThatTheModelDoesNotTake) {
  const Answer answer = post(R"({"items":[{"image":")" + data_url(photo()) +
                             R"(","processor_kwargs":{"max_pixels":4}}]})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.code(), "invalid_value");
  EXPECT_EQ(answer.param(), "items[0].processor_kwargs.max_pixels");
}

TEST_F(EncodeRoute, RefusesRequestsThatAreNone) {
  EXPECT_EQ(post("{").code(), "invalid_json");
  EXPECT_EQ(post(R"({"items":[{"image":"data:,"}],"model":"other"})").code(), "model_not_found");
  EXPECT_EQ(photo_as(R"({"format":"npy","dtype":"bfloat16"})").code(), "unsupported_dtype");
  EXPECT_EQ(post(R"({"items":[{"image":"http://example.org/a.png"}]})").status, 403);
  use({.max_items = 1});
  EXPECT_EQ(post(R"({"items":[{"image":"a"},{"image":"b"}]})").code(), "too_many_items");
}

TEST_F(EncodeRoute, EndsAtTheTimeOfTheClient) {
  Router router;
  router.add(encode_route({*service_, *media_}));
  Request request =
      test::request_to("POST", "/v1/encode",
                       R"({"timeout_ms":1000,"items":[{"image":")" + data_url(photo()) + R"("}]})");
  request.arrival -= std::chrono::minutes(1);
  const Reply reply = test::answer(router, std::move(request));
  EXPECT_EQ(reply.status, 504);
  EXPECT_EQ(test::json_of(reply)["error"]["code"], "deadline_exceeded");
}

TEST_F(EncodeRoute, TakesTheNameOfTheRequest) {
  const Answer answer = post(R"({"items":[{"image":")" + data_url(photo()) +
                             R"("}],"request_id":"mine","cache":"bypass"})");
  EXPECT_EQ(answer.json()["id"], "enc-mine");
}

}  // namespace
}  // namespace fovea::serve
