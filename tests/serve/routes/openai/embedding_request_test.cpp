#include "serve/routes/openai/embedding_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

using ::testing::HasSubstr;

EmbeddingRequest parse_embeddings(const std::string& body,
                                  EmbeddingRoute route = EmbeddingRoute::kEmbeddings) {
  return parse_embedding_request(parse_json_object(body), route);
}

ApiError embedding_refusal(const std::string& body,
                           EmbeddingRoute route = EmbeddingRoute::kEmbeddings) {
  try {
    (void)parse_embeddings(body, route);
  } catch (const ApiError& error) {
    return error;
  }
  return {0, "nothing was refused", ""};
}

const std::string kConversation = R"([{"role": "user", "content": [{"image_url": "data:a"}]}])";

TEST(EmbeddingRequest, TakesUrlsAsItems) {
  const EmbeddingRequest one =
      parse_embeddings(R"({"input": "data:image/png;base64,AA", "model": "m"})");
  ASSERT_EQ(one.media.size(), 1U);
  EXPECT_EQ(one.media[0].param, "input");
  EXPECT_EQ(one.model, "m");
  const EmbeddingRequest many = parse_embeddings(
      R"({"input": ["https://a/b.jpg", "data:video/mp4;base64,AA", "file:///c"]})");
  ASSERT_EQ(many.media.size(), 3U);
  EXPECT_EQ(many.media[1].modality, Modality::kVideo);
  EXPECT_EQ(many.media[1].param, "input[1]");
  EXPECT_EQ(many.media[2].modality, Modality::kImage);
}

TEST(EmbeddingRequest, TakesAnythingAsMediaThatIsCalledSo) {
  const EmbeddingRequest image =
      parse_embeddings(R"({"input": "iVBORw0KGgo=", "modality": "image"})");
  EXPECT_EQ(image.media[0].url, "iVBORw0KGgo=");
  EXPECT_EQ(parse_embeddings(R"({"input": ["http://a"], "modality": "video"})").media[0].modality,
            Modality::kVideo);
}

TEST(EmbeddingRequest, RefusesText) {
  for (const char* body : {R"({"input": "some text"})", R"({"input": ["data:image/x", "text"]})",
                           R"({"input": [1, 2]})", R"({"input": [[1, 2], [3]]})",
                           R"({"input": "http://a", "modality": "text"})",
                           R"({"messages": [{"role": "user", "content": "text"}]})"}) {
    EXPECT_EQ(embedding_refusal(body).code(), "text_not_supported") << body;
  }
  EXPECT_EQ(embedding_refusal(R"({"input": ["data:image/x", "text"]})").param(), "input[1]");
}

TEST(EmbeddingRequest, NamesTheFormOfInputsThatAreObjects) {
  for (const char* body :
       {R"({"input": [{"image": "data:a"}]})",
        R"({"input": [{"type": "image_url", "image_url": {"url": "data:a"}}]})"}) {
    EXPECT_EQ(embedding_refusal(body).code(), "invalid_value") << body;
    EXPECT_EQ(embedding_refusal(body).param(), "input[0]");
    EXPECT_THAT(embedding_refusal(body).what(), HasSubstr("expected a URL as text, or a message"));
  }
  EXPECT_EQ(embedding_refusal(R"({"input": [{"text": "a"}]})").code(), "text_not_supported");
}

TEST(EmbeddingRequest, RefusesTextBesideMediaExceptForPooling) {
  const std::string body = R"({"messages": [{"role": "user", "content": [
      {"image_url": "data:a"}, {"type": "text", "text": "Represent this."}]}]})";
  EXPECT_EQ(embedding_refusal(body).code(), "text_not_supported");
  EXPECT_EQ(embedding_refusal(body).param(), "messages[0].content[1].text");
  EXPECT_EQ(parse_embeddings(body, EmbeddingRoute::kPooling).media.size(), 1U);
}

TEST(EmbeddingRequest, MakesOneVectorOfAConversation) {
  EXPECT_EQ(parse_embeddings(R"({"messages": )" + kConversation + "}").media.size(), 1U);
  EXPECT_EQ(parse_embeddings(R"({"input": )" + kConversation + "}").media.size(), 1U);
  const std::string two = "[" + kConversation + "," + kConversation + "]";
  EXPECT_EQ(parse_embeddings(R"({"messages": )" + two + "}").media.size(), 2U);
  const EmbeddingRequest in_input = parse_embeddings(R"({"input": )" + two + "}");
  ASSERT_EQ(in_input.media.size(), 2U);
  EXPECT_EQ(in_input.media[1].param, "input[1][0].content[0].image_url");
}

TEST(EmbeddingRequest, MakesOneVectorOfEachPartOnlyIfAsked) {
  const std::string two = R"({"messages": [{"content": [{"image_url": "a"}, {"image_url": "b"}]}])";
  const ApiError error = embedding_refusal(two + "}");
  EXPECT_EQ(error.code(), "multiple_media_in_conversation");
  EXPECT_EQ(error.param(), "messages[0].content[1].image_url");
  EXPECT_THAT(error.what(), HasSubstr("per_item"));
  EXPECT_EQ(parse_embeddings(two + R"(, "per_item": true})").media.size(), 2U);
}

TEST(EmbeddingRequest, LimitsTheMediaOfAPrompt) {
  const auto error = [](const std::string& body, const PromptLimits& limits) {
    try {
      (void)parse_embedding_request(parse_json_object(body), EmbeddingRoute::kEmbeddings,
                                    {.media = limits});
    } catch (const ApiError& refused) {
      return refused;
    }
    return ApiError(0, "nothing was refused", "");
  };
  const std::string three = R"({"messages": [{"content": [{"image_url": "a"}, {"video_url": "b"},
                               {"image_url": "c"}]}], "per_item": true})";
  EXPECT_EQ(error(three, {.images = 2, .videos = 1}).status(), 0);
  const ApiError images = error(three, {.images = 1});
  EXPECT_EQ(images.status(), 400);
  EXPECT_EQ(images.code(), "too_many_images");
  EXPECT_EQ(images.param(), "messages[0].content[2].image_url");
  EXPECT_THAT(images.what(), HasSubstr("at most 1 image(s) may be provided in one prompt"));
  EXPECT_EQ(error(three, {.videos = 0}).code(), "too_many_videos");
  EXPECT_EQ(error(three, {.videos = 0}).param(), "messages[0].content[1].video_url");
  const std::string inputs = R"({"input": ["http://a", "http://b"]})";
  EXPECT_EQ(error(inputs, {.images = 1}).status(), 0) << "each is a prompt of its own";
  EXPECT_EQ(error(inputs, {.images = 0}).param(), "input[0]");
  EXPECT_EQ(error(R"({"input": "http://a"})", {.images = 0}).param(), "input");
}

TEST(EmbeddingRequest, NeedsEitherInputOrMessages) {
  EXPECT_EQ(embedding_refusal("{}").code(), "missing_field");
  EXPECT_EQ(embedding_refusal(R"({"input": "http://a", "messages": []})").code(), "invalid_value");
  EXPECT_EQ(embedding_refusal(R"({"input": []})").code(), "invalid_value");
  EXPECT_EQ(embedding_refusal(R"({"input": 7})").code(), "invalid_value");
}

TEST(EmbeddingRequest, PoolsAndNormalizesUnlessToldOtherwise) {
  const std::string input = R"({"input": "http://a", )";
  EXPECT_EQ(parse_embeddings(input + R"("user": "u"})").rows.pooling, Pooling::kMean);
  EXPECT_TRUE(parse_embeddings(input + R"("user": "u"})").rows.normalize);
  EXPECT_FALSE(parse_embeddings(input + R"("use_activation": false})").rows.normalize);
  EXPECT_FALSE(parse_embeddings(input + R"("normalize": false})").rows.normalize);
  EXPECT_TRUE(
      parse_embeddings(input + R"("normalize": false, "use_activation": true})").rows.normalize);
  const RowOptions none = parse_embeddings(input + R"("pooling": "none"})").rows;
  EXPECT_EQ(none.pooling, Pooling::kNone);
  EXPECT_FALSE(none.normalize);
  EXPECT_EQ(parse_embeddings(input + R"("pooling": "max"})").rows.pooling, Pooling::kMax);
  EXPECT_EQ(parse_embeddings(input + R"("pooling": "first"})").rows.pooling, Pooling::kFirst);
  EXPECT_EQ(parse_embeddings(input + R"("pooling": "last"})").rows.pooling, Pooling::kLast);
  EXPECT_EQ(embedding_refusal(input + R"("pooling": "sum"})").param(), "pooling");
}

TEST(EmbeddingRequest, CutsVectorsOfOneRouteOnly) {
  const std::string input = R"({"input": "http://a", )";
  EXPECT_EQ(parse_embeddings(input + R"("dimensions": 7})").rows.dimensions, 7);
  EXPECT_EQ(embedding_refusal(input + R"("dimensions": 0})").param(), "dimensions");
  EXPECT_EQ(embedding_refusal(input + R"("dimensions": 7})", EmbeddingRoute::kPooling).param(),
            "dimensions");
}

TEST(EmbeddingRequest, PoolsAsTheTaskSays) {
  const std::string input = R"({"input": "http://a", )";
  const auto pooling = [&](const std::string& rest) {
    return parse_embeddings(input + rest, EmbeddingRoute::kPooling).rows.pooling;
  };
  EXPECT_EQ(pooling(R"("user": "u"})"), Pooling::kNone);
  EXPECT_EQ(pooling(R"("task": "token_embed"})"), Pooling::kNone);
  EXPECT_EQ(pooling(R"("task": "embed"})"), Pooling::kMean);
  EXPECT_EQ(pooling(R"("task": "embed", "pooling": "last"})"), Pooling::kLast);
  EXPECT_THAT(embedding_refusal(input + R"("task": "encode"})", EmbeddingRoute::kPooling).what(),
              HasSubstr("removed"));
  EXPECT_THAT(embedding_refusal(input + R"("task": "classify"})", EmbeddingRoute::kPooling).what(),
              HasSubstr("expected token_embed or embed"));
}

TEST(EmbeddingRequest, HasTheFormOfItsVectors) {
  const EmbeddingRequest request = parse_embeddings(
      R"({"input": "http://a", "encoding_format": "bytes", "embed_dtype": "float16",
                "endianness": "big"})");
  EXPECT_EQ(request.form.encoding, VectorEncoding::kBytes);
  EXPECT_EQ(request.rows.type, ElementType::kFloat16);
  EXPECT_EQ(request.rows.order, ByteOrder::kBig);
}

}  // namespace
}  // namespace fovea::serve
