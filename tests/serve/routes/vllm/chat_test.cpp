#include "serve/routes/vllm/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>
#include <optional>

#include "fovea/row_formats.h"
#include "serve/routes/route_caller.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

using test::Answer;
using test::data_url;
using ::testing::HasSubstr;

/// Counts lines with a part.
class CountingLog : public LogSink {
 public:
  void write(LogLevel, std::string_view line) override {
    const std::lock_guard lock(mutex_);
    if (line.find("serve.no_metadata") != line.npos) ++count_;
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  int count_ = 0;
};

test::Served& vllm_service() {
  static test::Served served;
  return served;
}

Json part(const std::string& url, const std::optional<std::string>& uuid) {
  Json json;
  json["type"] = "image_url";
  json["image_url"]["url"] = url;
  if (uuid) json["uuid"] = *uuid;
  return json;
}

Json body_of(const Json& parts) {
  Json message;
  message["role"] = "user";
  message["content"] = parts;
  Json body;
  body["model"] = "m";
  body["messages"] = Json::array({message});
  body["max_tokens"] = 1;
  body["stream"] = false;
  return body;
}

/// A chat route with places of its own.
class ChatTest : public ::testing::Test {
 protected:
  void serve(const ChatOptions& options = {}, bool publishes = true,
             test::Served& with = vllm_service()) {
    if (publishes) publisher_.emplace(PublisherOptions{.directory = folder_.path()});
    Publisher* publisher = publisher_ ? &*publisher_ : nullptr;
    routes_.add({chat_route({with.service, with.media}, {store_, publisher}, options)});
    routes_.add(cache_routes(with.service, store_, publisher));
  }
  Answer post(const Json& body) const { return routes_.post("/v1/chat/completions", body); }
  /// The file that vLLM reads for a key.
  std::string file_of(const std::string& key) const {
    return test::read_text(folder_ / (key + "/encoder_cache.safetensors"));
  }
  std::size_t folders() const { return folder_.entries(); }

  test::TemporaryDirectory folder_;
  RowStore store_{std::int64_t{1} << 30};
  std::optional<Publisher> publisher_;
  test::RouteCaller routes_;
};

void expect_rows(const std::string& file, const Embedding& expected) {
  const auto tensors = read_safetensors(std::as_bytes(std::span(file)), "file");
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(tensors[0].name, "ec_cache");
  EXPECT_EQ(tensors[0].type, StoredType::kBFloat16);
  EXPECT_EQ(tensors[0].shape, (std::vector<std::int64_t>{expected.rows, expected.width}));
  EXPECT_TRUE(std::ranges::equal(tensors[0].data, expected.data));
}

TEST_F(ChatTest, PublishesRowsAndSaysUnderWhichNames) {
  serve();
  const std::string photo = data_url(test::photo());
  const Answer answer = post(body_of(Json::array(
      {part(photo, "abc"), part(data_url(test::shapes()), "b c"), part(photo, "abc")})));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("Warning"), "");
  const Json json = answer.json();
  const Embedding expected = test::encoded(test::photo(), RowDType::kBFloat16);
  const Json& params = json["ec_transfer_params"];
  ASSERT_EQ(params.size(), 2U);
  EXPECT_EQ(params["abc"]["modality"], "image");
  EXPECT_EQ(params["abc"]["item_indices"], (Json{0, 2}));
  EXPECT_EQ(params["abc"]["metadata"]["image_grid_thw"], Json(*expected.grid_thw));
  EXPECT_EQ(params["abc"]["fovea"]["path"], "/v1/cache/abc");
  EXPECT_EQ(params["b c"]["fovea"]["path"], "/v1/cache/b%20c");
  EXPECT_EQ(params["abc"]["fovea"]["rows"], expected.rows);
  EXPECT_EQ(params["abc"]["fovea"]["width"], expected.width);
  EXPECT_EQ(params["abc"]["fovea"]["dtype"], "bfloat16");
  expect_rows(file_of("abc"), expected);
  expect_rows(file_of("b c"), test::encoded(test::shapes(), RowDType::kBFloat16));
}

TEST_F(ChatTest, AnswersInTheShapeOfAChat) {
  serve();
  const Json json = post(body_of(Json::array({part(data_url(test::photo()), "abc")}))).json();
  const std::int64_t rows = test::encoded(test::photo(), RowDType::kBFloat16).rows;
  EXPECT_EQ(json["id"], "chatcmpl-r1");
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["model"], "m");
  EXPECT_EQ(json["choices"][0]["message"]["content"], "");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(json["usage"]["prompt_tokens"], rows);
  EXPECT_EQ(json["usage"]["total_tokens"], rows);
}

TEST_F(ChatTest, SaysNothingOfConversationsWithoutMedia) {
  serve();
  const Answer answer = post(body_of("hello"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.json()["ec_transfer_params"].is_null());
  EXPECT_EQ(folders(), 0U);
}

TEST_F(ChatTest, NamesRowsByContentWithoutMetadataIfThereIsNoUuid) {
  serve();
  const Json parts = Json::array({part(data_url(test::photo()), std::nullopt),
                                  part(data_url(test::shapes()), "abc"),
                                  part(data_url(test::photo()), std::nullopt)});
  const Json params = post(body_of(parts)).json()["ec_transfer_params"];
  ASSERT_EQ(params.size(), 2U) << "equal content, equal key";
  EXPECT_EQ(params.names().front().size(), 64U);
  EXPECT_EQ((*params.begin())["item_indices"], (Json{0, 2}));
  EXPECT_EQ((*params.begin())["metadata"], Json::object());
  EXPECT_EQ(params["abc"]["metadata"], Json::object()) << "for all items or for none";
}

TEST_F(ChatTest, RefusesNamesThatAreNoFolders) {
  serve();
  for (const std::string& uuid :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"),
        std::string("a\0b", 3), std::string(256, 'a')}) {
    const Answer answer = post(body_of(Json::array({part(data_url(test::photo()), uuid)})));
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.code(), "invalid_uuid");
    EXPECT_EQ(answer.param(), "messages[0].content[0].uuid");
  }
  EXPECT_EQ(folders(), 0U);
  EXPECT_EQ(post(body_of(Json::array({part(data_url(test::photo()), "lora:abc")}))).status, 200);
}

TEST_F(ChatTest, RefusesOneNameForDifferentImages) {
  serve();
  const auto answer_to = [&](const std::string& second) {
    return post(body_of(Json::array({part(data_url(test::photo()), "abc"), part(second, "abc")})));
  };
  const Answer refused = answer_to(data_url(test::shapes()));
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_EQ(refused.code(), "invalid_uuid");
  EXPECT_EQ(refused.param(), "messages[0].content[1].uuid");
  EXPECT_THAT(refused.body, HasSubstr("messages[0].content[0]"));
  EXPECT_EQ(folders(), 0U);
  EXPECT_FALSE(store_.find("abc"));
  EXPECT_EQ(answer_to(data_url(test::photo())).status, 200);
}

TEST_F(ChatTest, RefusesOneNameForDifferentImagesWhereTheEngineNamesRows) {
  ServiceOptions options = test::small_service();
  options.engine.encoder_cache_bytes = std::int64_t{64} << 20;  // names rows
  test::Served with_cache(options);
  serve({}, true, with_cache);
  const Json photo = part(data_url(test::photo()), "abc");
  const Answer refused = post(body_of(Json::array({photo, part(data_url(test::shapes()), "abc")})));
  EXPECT_EQ(refused.code(), "invalid_uuid") << refused.body;
  EXPECT_EQ(post(body_of(Json::array({photo, photo}))).status, 200);
}

TEST_F(ChatTest, RefusesOptionsThatChangeTheKey) {
  serve();
  Json body = body_of(Json::array({part(data_url(test::photo()), "abc")}));
  body["media_io_kwargs"] = Json::parse(R"({"image": {"image_mode": "RGB"}})");
  const Answer answer = post(body);
  EXPECT_EQ(answer.code(), "options_change_the_key");
  EXPECT_EQ(answer.param(), "media_io_kwargs");
  EXPECT_THAT(answer.body, HasSubstr("--ec-model-id"));
  body["media_io_kwargs"] = Json::parse(R"({"video": {"fps": 1}})");
  EXPECT_EQ(post(body).status, 200) << "of no concern to images";
}

TEST_F(ChatTest, PublishesUnderTheNameThatVllmComputesFromOptions) {
  serve({.dtype = std::nullopt, .ec_model_id = "org/model", .ec_hash = DigestKind::kSha512});
  Json body = body_of(Json::array({part(data_url(test::photo()), "abc")}));
  body["media_io_kwargs"] = Json::parse(R"({"image": {"image_mode": "RGB"}})");
  const Answer answer = post(body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const JsonDocument io = JsonDocument::parse(R"({"image_mode": "RGB"})", "options");
  const std::string digest =
      vllm_digest(DigestKind::kSha512, {"org/model", "image", "abc", io.root(), std::nullopt});
  EXPECT_EQ(answer.json()["ec_transfer_params"]["abc"]["fovea"]["identifier"], digest);
  const Embedding expected = test::encoded(test::photo(), RowDType::kBFloat16);
  expect_rows(file_of("abc"), expected);
  expect_rows(file_of(digest), expected);
}

TEST_F(ChatTest, RefusesStreamsAndBodiesWithoutMessages) {
  serve();
  Json body = body_of("hello");
  body["stream"] = true;
  EXPECT_EQ(post(body).param(), "stream");
  EXPECT_EQ(post(Json::object()).code(), "missing_field");
  body["model"] = "another";
  EXPECT_EQ(post(body).code(), "model_not_found");
}

TEST_F(ChatTest, LimitsTheMediaOfAConversation) {
  CallLimits limits;
  limits.media.images = 1;
  routes_.add(
      {chat_route({vllm_service().service, vllm_service().media, limits}, {store_, nullptr}, {})});
  const Json image = part(data_url(test::shapes()), "abc");
  EXPECT_EQ(post(body_of(Json::array({image}))).status, 200);
  const Answer two = post(body_of(Json::array({image, image})));
  EXPECT_EQ(two.status, 400);
  EXPECT_EQ(two.code(), "too_many_images");
  EXPECT_EQ(two.param(), "messages[0].content[1].image_url");
}

TEST_F(ChatTest, FailsIfRowsCannotBePublished) {
  serve();
  test::write_text(folder_ / "abc", "no folder");
  const Answer answer = post(body_of(Json::array({part(data_url(test::photo()), "abc")})));
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.code(), "ec_publish_failed");
}

TEST_F(ChatTest, FailsIfRowsAreNowhereToBeFound) {
  RowStore none(100);
  routes_.add({chat_route({vllm_service().service, vllm_service().media}, {none, nullptr}, {})});
  const Answer answer = post(body_of(Json::array({part(data_url(test::photo()), "abc")})));
  EXPECT_EQ(answer.status, 507);
  EXPECT_EQ(answer.code(), "ec_storage_full");
}

TEST_F(ChatTest, NamesNoPathForRowsThatAreOnlyInTheFolder) {
  RowStore none(100);
  Publisher publisher(PublisherOptions{.directory = folder_.path()});
  routes_.add({chat_route({vllm_service().service, vllm_service().media}, {none, &publisher}, {})});
  const Answer answer = post(body_of(Json::array({part(data_url(test::photo()), "abc")})));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_FALSE(answer.json()["ec_transfer_params"]["abc"]["fovea"].contains("path"));
  expect_rows(file_of("abc"), test::encoded(test::photo(), RowDType::kBFloat16));
}

TEST_F(ChatTest, MakesRowsOfTheTypeThatTheServerIsToldTo) {
  serve({.dtype = RowDType::kFloat32, .ec_model_id = {}, .ec_hash = DigestKind::kSha256});
  const Json params = post(body_of(Json::array({part(data_url(test::photo()), "abc")})))
                          .json()["ec_transfer_params"];
  EXPECT_EQ(params["abc"]["fovea"]["dtype"], "float32");
  EXPECT_EQ(store_.find("abc")->data, test::encoded(test::photo(), RowDType::kFloat32).data);
}

TEST_F(ChatTest, WarnsOfFamiliesThatVllmEncodesItself) {
  CountingLog log;
  ServiceOptions options = test::small_service(FOVEA_TEST_GOLDEN_DIR "/internvl");
  options.log = &log;
  test::Served internvl(options);
  serve({}, true, internvl);
  const Json body = body_of(Json::array({part(data_url(test::photo()), "abc")}));
  for (int i = 0; i < 2; ++i) {
    const Answer answer = post(body);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.header("Warning"),
              "199 - \"vLLM encodes this family itself when pixels are forwarded\"");
    EXPECT_EQ(answer.json()["ec_transfer_params"]["abc"]["metadata"], Json::object());
  }
  EXPECT_EQ(log.count(), 1) << "once per start";
}

TEST_F(ChatTest, RowsAreFetchedByTheirNames) {
  serve({}, false);
  post(body_of(Json::array({part(data_url(test::photo()), "b c")})));
  const Answer answer = routes_.get("/v1/cache/b c");
  ASSERT_EQ(answer.status, 200);
  const Embedding expected = test::encoded(test::photo(), RowDType::kBFloat16);
  expect_rows(answer.body, expected);
  EXPECT_EQ(answer.content_type, "application/octet-stream");
  EXPECT_EQ(answer.header("X-Fovea-Shape"),
            std::to_string(expected.rows) + "," + std::to_string(expected.width));
  EXPECT_EQ(routes_.call("HEAD", "/v1/cache/b c").status, 200);
  EXPECT_EQ(routes_.get("/v1/cache/unknown").code(), "key_not_found");
}

TEST_F(ChatTest, RowsOfAKeyHaveANameOfTheirOwn) {
  ServiceOptions options = test::small_service();
  options.engine.encoder_cache_bytes = std::int64_t{64} << 20;  // names rows
  test::Served with_cache(options);
  serve({}, false, with_cache);
  const auto tag_of = [this](const std::vector<std::uint8_t>& image) {
    post(body_of(Json::array({part(data_url(image), "abc")})));
    return routes_.get("/v1/cache/abc").header("ETag");
  };
  const std::string tag = tag_of(test::photo());
  EXPECT_EQ(tag.size(), 66U) << tag;
  EXPECT_NE(tag_of(test::shapes()), tag);
  EXPECT_EQ(tag_of(test::photo()), tag);

  const test::Answer known = routes_.call("GET", "/v1/cache/abc", "", {{"If-None-Match", tag}});
  EXPECT_EQ(known.status, 304);
  EXPECT_EQ(known.body, "");
  EXPECT_EQ(known.header("ETag"), tag);
  EXPECT_EQ(routes_.call("GET", "/v1/cache/abc", "", {{"If-None-Match", "\"x\""}}).status, 200);
}

}  // namespace
}  // namespace fovea::serve
