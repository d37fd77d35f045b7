#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "serve/routes/routes.h"
#include "serve/routes/vectors.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

using test::Answer;
using test::data_url;

test::Served& cohere_service() {
  static test::Served served;
  static const bool kReady = [] {
    served.routes.add({embed_route({served.service, served.media, {.max_items = 3}})});
    return true;
  }();
  EXPECT_TRUE(kReady);
  return served;
}

Answer post(const Json& body) { return cohere_service().routes.post("/v2/embed", body); }

Json body_with(const std::vector<std::uint8_t>& image) {
  Json body;
  body["images"] = {data_url(image)};
  return body;
}

TEST(EmbedRoute, AnswersAsCohereDoes) {
  Json body = body_with(test::shapes());
  body["model"] = "m";
  body["embedding_types"] = {"float", "base64"};
  const Answer answer = post(body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json json = answer.json();
  EXPECT_EQ(json["id"], "embd-r1");
  EXPECT_EQ(json["response_type"], "embeddings_by_type");
  test::expect_vector(
      json["embeddings"]["float"][0],
      test::mean_vector(test::shapes(), cohere_service().service.model().report.hidden));
  const auto bytes = from_base64(json["embeddings"]["base64"][0].get<std::string>());
  ASSERT_TRUE(bytes.has_value());
  float first = 0;
  std::memcpy(&first, bytes->data(), sizeof(first));
  EXPECT_EQ(first, json["embeddings"]["float"][0][0].get<float>());
  Json part;
  part["type"] = "image_url";
  part["image_url"]["url"] = data_url(test::shapes());
  Json inputs;
  inputs["inputs"][0]["content"][0] = part;
  inputs["output_dimension"] = 4;
  EXPECT_EQ(post(inputs).json()["embeddings"]["float"][0].size(), 4U);
}

TEST(EmbedRoute, MakesVectorsOfTheMainEmbeddingUnlessAskedForAll) {
  const ModelReport& report = cohere_service().service.model().report;
  ASSERT_GT(report.width, report.hidden) << "a model with deepstack levels";
  Json body = body_with(test::shapes());
  const auto vector = [&] { return post(body).json()["embeddings"]["float"][0]; };
  body["deepstack"] = "main";
  test::expect_vector(vector(), test::mean_vector(test::shapes(), report.hidden));
  body["deepstack"] = "concat";
  test::expect_vector(vector(), test::mean_vector(test::shapes(), report.width));
  body["deepstack"] = "split";
  EXPECT_EQ(post(body).param(), "deepstack");
}

TEST(EmbedRoute, BillsTheRowsBeforePooling) {
  const Json billed = post(body_with(test::shapes())).json()["meta"]["billed_units"];
  EXPECT_EQ(billed["images"], 1);
  EXPECT_EQ(billed["input_tokens"], 0);
  EXPECT_EQ(billed["image_tokens"], test::encoded(test::shapes(), RowDType::kFloat32).rows);
}

TEST(EmbedRoute, CountsEachMediaAsAPromptOfItsOwn) {
  test::RouteCaller routes;
  const CallLimits limits{.max_items = 3, .media = {.images = 1}};
  routes.add({embed_route({cohere_service().service, cohere_service().media, limits})});
  Json body;
  body["images"] = {data_url(test::shapes()), data_url(test::photo())};
  EXPECT_EQ(routes.post("/v2/embed", body).status, 200);
  body["images"].push_back(data_url(test::shapes()));
  body["images"].push_back(data_url(test::shapes()));
  EXPECT_EQ(routes.post("/v2/embed", body).code(), "too_many_items");
}

TEST(EmbedRoute, RefusesOptionsThatStandWhereNothingReadsThem) {
  for (const char* name : {"max_pixels", "fps", "processor_kwargs", "extra_body"}) {
    Json body = body_with(test::shapes());
    body[name] = 7;
    const Answer answer = post(body);
    EXPECT_EQ(answer.code(), "invalid_value") << name;
    EXPECT_EQ(answer.param(), name);
  }
  Json body = body_with(test::shapes());
  body["mm_processor_kwargs"]["max_pixels"] = 7;
  EXPECT_EQ(post(body).param(), "mm_processor_kwargs.max_pixels");
}

TEST(EmbedRoute, RefusesTextsAndOtherTypes) {
  const auto code = [](const char* body) { return post(Json::parse(body)).code(); };
  EXPECT_EQ(code(R"({"texts": ["a"]})"), "text_not_supported");
  EXPECT_EQ(code(R"({"inputs": [{"content": [{"type": "text", "text": "a"}]}]})"),
            "text_not_supported");
  EXPECT_EQ(code(R"({"inputs": [{"content": [{"image_url": "a"}, {"image_url": "b"}]}]})"),
            "multiple_media_in_conversation");
  EXPECT_EQ(code("{}"), "missing_field");
  EXPECT_EQ(code(R"({"images": [], "inputs": []})"), "invalid_value");
  EXPECT_EQ(code(R"({"images": []})"), "invalid_value");
  EXPECT_EQ(code(R"({"images": [7]})"), "invalid_value");
  EXPECT_EQ(code(R"({"images": ["data:a"], "embedding_types": ["binary"]})"), "invalid_value");
  EXPECT_EQ(code(R"({"images": ["data:a"], "output_dimension": 0})"), "invalid_value");
}

}  // namespace
}  // namespace fovea::serve
