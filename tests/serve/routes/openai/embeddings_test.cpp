#include "serve/routes/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "serve/routes/vectors.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

using test::Answer;
using test::data_url;
using ::testing::HasSubstr;

test::Served& openai_service() {
  static test::Served served;
  static const bool kReady = [] {
    const CallLimits limits{.max_items = 3, .max_json_values = 4'000'000};
    served.routes.add(embedding_routes({served.service, served.media, limits}));
    return true;
  }();
  EXPECT_TRUE(kReady);
  return served;
}

Answer post(const std::string& path, const Json& body) {
  return openai_service().routes.post(path, body);
}

std::string bytes_of(const Embedding& item) {
  return {reinterpret_cast<const char*>(item.data.data()), item.data.size()};
}

/// A conversation of one image.
Json conversation(const std::string& url) {
  Json part;
  part["type"] = "image_url";
  part["image_url"]["url"] = url;
  Json message;
  message["role"] = "user";
  message["content"] = Json::array({part});
  return Json::array({message});
}

TEST(EmbeddingRoutes, GiveTheMeanOfTheRowsAtLengthOne) {
  Json body;
  body["model"] = "m";
  body["input"] = {data_url(test::photo()), data_url(test::shapes())};
  const Answer answer = post("/v1/embeddings", body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json json = answer.json();
  EXPECT_EQ(json["object"], "list");
  EXPECT_EQ(json["id"], "embd-r1");
  EXPECT_EQ(json["model"], "m");
  EXPECT_EQ(json["data"][1]["object"], "embedding");
  EXPECT_EQ(json["data"][1]["index"], 1);
  const std::int64_t hidden = openai_service().service.model().report.hidden;
  test::expect_vector(json["data"][0]["embedding"], test::mean_vector(test::photo(), hidden));
  test::expect_vector(json["data"][1]["embedding"], test::mean_vector(test::shapes(), hidden));
  const std::int64_t rows = test::encoded(test::photo(), RowDType::kFloat32).rows +
                            test::encoded(test::shapes(), RowDType::kFloat32).rows;
  EXPECT_EQ(json["usage"]["prompt_tokens"], rows) << "before pooling";
  EXPECT_EQ(answer.header("X-Fovea-Rows"), std::to_string(rows));
}

TEST(EmbeddingRoutes, MakeVectorsOfTheMainEmbeddingUnlessAskedForAll) {
  const ModelReport& report = openai_service().service.model().report;
  ASSERT_GT(report.width, report.hidden) << "a model with deepstack levels";
  for (const std::string path : {"/v1/embeddings", "/pooling"}) {
    SCOPED_TRACE(path);
    Json body;
    body["input"] = {data_url(test::shapes())};
    if (path == "/pooling") body["task"] = "embed";
    const auto vector = [&] {
      return post(path, body).json()["data"][0][path == "/pooling" ? "data" : "embedding"];
    };
    test::expect_vector(vector(), test::mean_vector(test::shapes(), report.hidden));
    body["deepstack"] = "main";
    test::expect_vector(vector(), test::mean_vector(test::shapes(), report.hidden));
    body["deepstack"] = "concat";
    test::expect_vector(vector(), test::mean_vector(test::shapes(), report.width));
    body["deepstack"] = "split";
    EXPECT_EQ(post(path, body).param(), "deepstack");
  }
}

TEST(EmbeddingRoutes, RefuseVectorsOfAnEmbeddingModel) {
  const test::TemporaryDirectory folder;
  for (const char* name : {"config.json", "preprocessor_config.json", "model.safetensors"}) {
    std::filesystem::create_symlink(test::kGoldenModel + "/" + name, folder / name);
  }
  test::write_text(folder / "modules.json", "[]");
  test::Served other(test::small_service(folder.path()));
  other.routes.add(embedding_routes({other.service, other.media}));
  Json body;
  body["input"] = data_url(test::shapes());
  const Answer refused = other.routes.post("/v1/embeddings", body);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.code(), "vectors_need_language_model");
  EXPECT_THAT(refused.body, HasSubstr("modules.json"));
  EXPECT_EQ(other.routes.post("/pooling", body).status, 200) << "rows of the tower";
  body["task"] = "embed";
  EXPECT_EQ(other.routes.post("/pooling", body).code(), "vectors_need_language_model");
}

TEST(EmbeddingRoutes, GiveTheVectorOfAnEncoderForRetrieval) {
  const test::TemporaryDirectory folder;
  test::write_text(folder / "config.json", R"({"architectures": ["CLIPModel"],
      "projection_dim": 24, "vision_config": {"hidden_size": 32, "num_hidden_layers": 1,
      "num_attention_heads": 2, "intermediate_size": 48, "image_size": 32, "patch_size": 8}})");
  test::write_text(folder / "preprocessor_config.json", R"({"size": 32, "crop_size": 32})");
  test::write_text(folder / "modules.json", "[]");  // no language model makes its vectors
  ServiceOptions options = test::small_service(folder.path());
  options.engine.dummy_weights = true;
  options.engine.vectors = true;
  test::Served encoder(options);
  encoder.routes.add(embedding_routes({encoder.service, encoder.media}));
  Json body;
  body["input"] = data_url(test::shapes());
  const auto vector = [&] {
    const Answer answer = encoder.routes.post("/v1/embeddings", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    const Json reply = answer.json();
    EXPECT_EQ(reply["usage"]["prompt_tokens"], 1);
    std::vector<double> numbers;
    for (const Json& value : reply["data"][0]["embedding"]) {
      numbers.push_back(value.get<double>());
    }
    return numbers;
  };
  const auto norm = [](const std::vector<double>& numbers) {
    double sum = 0;
    for (const double value : numbers) sum += value * value;
    return std::sqrt(sum);
  };
  const std::vector<double> unit = vector();
  ASSERT_EQ(unit.size(), 24U);
  EXPECT_NEAR(norm(unit), 1, 1e-6);
  body["use_activation"] = false;
  const std::vector<double> plain = vector();
  EXPECT_GT(std::abs(norm(plain) - 1), 1e-3) << "as transformers has it";
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(plain[i] / norm(plain), unit[i], 1e-6);
  }
  body["input"] = "a photo of a cat";
  EXPECT_EQ(encoder.routes.post("/v1/embeddings", body).code(), "text_not_supported");
}

TEST(EmbeddingRoutes, GiveTheSameForAllFormsOfARequest) {
  const std::string url = data_url(test::shapes());
  Json infinity;
  infinity["input"] = url;
  infinity["modality"] = "image";
  Json chat;
  chat["messages"] = conversation(url);
  Json batch;
  batch["input"] = Json::array({conversation(url), conversation(url)});
  const Json vector = post("/embeddings", infinity).json()["data"][0]["embedding"];
  EXPECT_FALSE(vector.empty());
  EXPECT_EQ(post("/v1/embeddings", chat).json()["data"][0]["embedding"], vector);
  EXPECT_EQ(post("/v1/embeddings", batch).json()["data"][1]["embedding"], vector);
}

TEST(EmbeddingRoutes, CutVectorsBeforeTheirLengthIsOne) {
  Json body;
  body["input"] = data_url(test::shapes());
  body["dimensions"] = 5;
  const Json numbers = post("/v1/embeddings", body).json()["data"][0]["embedding"];
  ASSERT_EQ(numbers.size(), 5U);
  double square = 0;
  for (const Json& number : numbers) square += number.get<double>() * number.get<double>();
  EXPECT_NEAR(square, 1, 1e-5);
  body["dimensions"] = 1'000'000;
  EXPECT_EQ(post("/v1/embeddings", body).status, 400);
}

TEST(EmbeddingRoutes, SendTheRowsOfTheEngineBitByBit) {
  Json body;
  body["input"] = {data_url(test::photo()), data_url(test::shapes())};
  body["encoding_format"] = "bytes";
  body["embed_dtype"] = "bfloat16";
  const Answer answer = post("/pooling", body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Embedding first = test::encoded(test::photo(), RowDType::kBFloat16);
  const Embedding second = test::encoded(test::shapes(), RowDType::kBFloat16);
  EXPECT_TRUE(answer.body == bytes_of(first) + bytes_of(second));
  const Json metadata = Json::parse(answer.header("metadata"));
  EXPECT_EQ(metadata["id"], "pooling-r1");
  EXPECT_EQ(metadata["data"][1]["start"], first.data.size());
  EXPECT_EQ(metadata["data"][1]["end"], first.data.size() + second.data.size());
  EXPECT_EQ(metadata["data"][1]["shape"], (Json{second.rows, second.width}));
  body["encoding_format"] = "bytes_only";
  const Answer bare = post("/pooling", body);
  EXPECT_TRUE(bare.body == answer.body);
  EXPECT_EQ(bare.header("metadata"), "");
}

TEST(EmbeddingRoutes, GiveRowsAsNumbersOrBase64) {
  Json body;
  body["input"] = data_url(test::shapes());
  const Json numbers = post("/pooling", body).json()["data"][0];
  const Embedding item = test::encoded(test::shapes(), RowDType::kFloat32);
  EXPECT_EQ(numbers["object"], "pooling");
  ASSERT_EQ(numbers["data"].size(), static_cast<std::size_t>(item.rows));
  ASSERT_EQ(numbers["data"][0].size(), static_cast<std::size_t>(item.width));
  EXPECT_EQ(numbers["data"][2][3].get<float>(), item.at(2, 3));
  body["encoding_format"] = "base64";
  EXPECT_EQ(post("/pooling", body).json()["data"][0]["data"],
            to_base64(std::span<const std::byte>(item.data.data(), item.data.size())));
}

TEST(EmbeddingRoutes, NameTheItemThatCannotBeDecoded) {
  Json body;
  body["input"] = {data_url(test::shapes()), "data:image/png;base64,AAAA"};
  const Answer answer = post("/v1/embeddings", body);
  EXPECT_EQ(answer.status, 422);
  EXPECT_EQ(answer.code(), "decode_failed");
  EXPECT_EQ(answer.param(), "input[1]");
}

TEST(EmbeddingRoutes, RefuseWhatTheyCannotDo) {
  Json body;
  body["input"] = "some text";
  EXPECT_EQ(post("/v1/embeddings", body).code(), "text_not_supported");
  body["input"] = data_url(test::shapes());
  body["model"] = "another";
  EXPECT_EQ(post("/v1/embeddings", body).code(), "model_not_found");
  body["model"] = "m";
  body["input"] = Json(std::vector<std::string>(4, data_url(test::shapes())));
  const Answer many = post("/v1/embeddings", body);
  EXPECT_EQ(many.code(), "too_many_items");
  EXPECT_THAT(many.body, HasSubstr("--max-items-per-request"));
  EXPECT_EQ(openai_service().routes.call("POST", "/v1/embeddings", "[").code(), "invalid_json");
}

TEST(EmbeddingRoutes, EncodeWithTheOptionsOfTheRequest) {
  Json body;
  body["input"] = data_url(test::shapes());
  const auto answer = [&](const char* name, const char* kwargs) {
    Json with = body;
    with[name] = Json::parse(kwargs);
    return post("/v1/embeddings", with);
  };
  const auto rows = [&](const char* kwargs) {
    const Answer reply = answer("mm_processor_kwargs", kwargs);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json()["usage"]["prompt_tokens"].get<int>();
  };
  const int own = rows("{}");
  EXPECT_LT(rows(R"({"min_pixels": 1024, "max_pixels": 4096})"), own);
  EXPECT_GT(rows(R"({"images_kwargs": {"min_pixels": 400000}})"), own);
  EXPECT_EQ(rows(R"({"videos_kwargs": {"fps": 1}})"), own);
  const Answer other = answer("mm_processor_kwargs", R"({"max_pixels": 7})");
  EXPECT_EQ(other.code(), "invalid_value");
  EXPECT_EQ(other.param(), "mm_processor_kwargs.max_pixels");
  EXPECT_EQ(answer("mm_processor_kwargs", R"({"size": {"height": 7}})").param(),
            "mm_processor_kwargs.size");
  EXPECT_EQ(answer("mm_processor_kwargs", R"({"crop": true})").param(), "mm_processor_kwargs.crop");
}

TEST(EmbeddingRoutes, TakeOptionsOfDecodingThatAreThoseOfTheEngineOnly) {
  Json body;
  body["input"] = data_url(test::shapes());
  const auto answer = [&](const char* kwargs) {
    Json with = body;
    with["media_io_kwargs"] = Json::parse(kwargs);
    return post("/v1/embeddings", with);
  };
  EXPECT_EQ(answer(R"({"image": {"rgba_background_color": [255, 255, 255], "image_mode": "RGB"}})")
                .status,
            200);
  EXPECT_EQ(answer(R"({"image": {"rgba_background_color": [0, 0, 0]}})").param(),
            "media_io_kwargs.image.rgba_background_color");
  EXPECT_EQ(answer(R"({"image": {"image_mode": "L"}})").status, 400);
  EXPECT_EQ(answer(R"({"video": {"fps": 1, "num_frames": -1}})").status, 200);
  EXPECT_EQ(answer(R"({"video": {"fps": 0}})").status, 400);
  EXPECT_EQ(answer(R"({"video": {"num_frames": 8}})").param(), "media_io_kwargs.video.num_frames");
}

TEST(EmbeddingRoutes, RefuseOptionsThatStandWhereNobodyReadsThem) {
  for (const char* path : {"/v1/embeddings", "/pooling"}) {
    Json body;
    body["input"] = {data_url(test::shapes())};
    for (const char* name : {"max_pixels", "fps", "processor_kwargs", "extra_body"}) {
      Json with = body;
      with[name] = 7;
      const Answer answer = post(path, with);
      EXPECT_EQ(answer.status, 400) << path << " " << name;
      EXPECT_EQ(answer.code(), "invalid_value");
      EXPECT_EQ(answer.param(), name);
    }
    body["mm_processor_kwargs"]["max_pixels"] = 7;
    EXPECT_EQ(post(path, body).param(), "mm_processor_kwargs.max_pixels") << path;
  }
}

}  // namespace
}  // namespace fovea::serve
