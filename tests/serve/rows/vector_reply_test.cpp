#include "serve/rows/vector_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rows_fixture.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

using test::item_of;
using test::refusal;
using test::text_of;
using testing::HasSubstr;
using testing::IsNull;

struct Body : BodyObject, VectorFormMembers {};
constexpr auto kMembers = joined<Body>(kVectorFormMembers);
constexpr ObjectTable<Body> kBody{"Body", kMembers};

VectorForm form_of(const std::string& body) {
  const SharedJson json = parse_json_object(body);
  return vector_form(read_object(kBody, json->root()));
}

/// Pooled vectors in the type and order of a form.
std::vector<RowTensor> vectors_in(const VectorForm& form,
                                  const std::vector<std::vector<float>>& numbers) {
  std::vector<RowTensor> vectors;
  const RowOptions options{.pooling = Pooling::kLast, .type = form.type, .order = form.order};
  for (const std::vector<float>& vector : numbers) {
    const auto item = item_of(1, vector, engine_dtype(options));
    vectors.push_back(make_tensors(item, item->width, options).front());
  }
  return vectors;
}

VectorReplyHead head() {
  VectorReplyHead head;
  head.id = "embd-1";
  head.created = 1700000000;
  head.model = "m\xc3\xa9";
  head.prompt_tokens = 7;
  return head;
}

TEST(ReadVectorForm, TakesFloat32InOurOrderByDefault) {
  const VectorForm form = form_of("{}");
  EXPECT_EQ(form.encoding, VectorEncoding::kFloat);
  EXPECT_EQ(form.type, ElementType::kFloat32);
  EXPECT_EQ(form.endianness, "native");
}

TEST(ReadVectorForm, ReadsAllThree) {
  const VectorForm form =
      form_of(R"({"encoding_format":"bytes","embed_dtype":"fp8_e5m2","endianness":"big"})");
  EXPECT_EQ(form.encoding, VectorEncoding::kBytes);
  EXPECT_EQ(form.type, ElementType::kFp8E5M2);
  EXPECT_EQ(form.order, ByteOrder::kBig);
}

TEST(ReadVectorForm, GivesJsonNumbersFromFloat32WhateverTheTypeIs) {
  const VectorForm form = form_of(R"({"embed_dtype":"bfloat16","endianness":"big"})");
  EXPECT_EQ(form.type, ElementType::kFloat32);
  EXPECT_EQ(form.order, ByteOrder::kLittle);
}

TEST(ReadVectorForm, RefusesOtherNames) {
  EXPECT_EQ(refusal([] { (void)form_of(R"({"encoding_format":"hex"})"); }).param(),
            "encoding_format");
  EXPECT_EQ(refusal([] { (void)form_of(R"({"endianness":"middle"})"); }).param(), "endianness");
  EXPECT_EQ(refusal([] { (void)form_of(R"({"embed_dtype":"int8"})"); }).code(),
            "unsupported_dtype");
}

TEST(VectorReply, HasNumbersInJson) {
  const VectorForm form = form_of("{}");
  const Reply reply = vector_reply(form, head(), vectors_in(form, {{1, -2.5F}, {0.1F}}));
  EXPECT_EQ(reply.content_type, "application/json");
  EXPECT_EQ(text_of(reply.body),
            "{\"id\":\"embd-1\",\"object\":\"list\",\"created\":1700000000,\"model\":\"m\xc3\xa9\","
            R"("data":[{"index":0,"object":"embedding","embedding":[1,-2.5]},)"
            R"({"index":1,"object":"embedding","embedding":[0.1]}],)"
            R"("usage":{"prompt_tokens":7,"total_tokens":7}})");
}

TEST(VectorReply, CallsTheNumbersOfPoolingData) {
  const VectorForm form = form_of(R"({"encoding_format":"base64","embed_dtype":"bfloat16"})");
  VectorReplyHead pooling = head();
  pooling.object = "pooling";
  const Json json =
      Json::parse(text_of(vector_reply(form, pooling, vectors_in(form, {{1, -2.5F}})).body));
  EXPECT_EQ(json["data"][0], Json::parse(R"({"index":0,"object":"pooling","data":"gD8gwA=="})"));
}

TEST(VectorReply, HasBytesAndSaysWhatIsWhere) {
  const VectorForm form =
      form_of(R"({"encoding_format":"bytes","embed_dtype":"float16","endianness":"little"})");
  const std::vector<RowTensor> vectors = vectors_in(form, {{1, -2.5F}, {1}});
  const Reply reply = vector_reply(form, head(), vectors);
  EXPECT_EQ(reply.content_type, "application/octet-stream");
  EXPECT_EQ(text_of(reply.body), std::string("\x00\x3c\x00\xc1\x00\x3c", 6));
  EXPECT_EQ(reply.body[0].bytes.data(), vectors[0].bytes.bytes.data());  // not copied
  const std::string* metadata = find_header(reply.headers, "metadata");
  ASSERT_NE(metadata, nullptr);
  EXPECT_EQ(
      *metadata,
      R"({"id":"embd-1","created":1700000000,"model":"m\u00e9","data":[)"
      R"({"index":0,"embed_dtype":"float16","endianness":"little","start":0,"end":4,"shape":[2]},)"
      R"({"index":1,"embed_dtype":"float16","endianness":"little","start":4,"end":6,"shape":[1]}],)"
      R"("usage":{"prompt_tokens":7,"total_tokens":7}})");
}

TEST(VectorReply, LeavesTheHeaderOut) {
  const VectorForm form = form_of(R"({"encoding_format":"bytes_only"})");
  const Reply reply = vector_reply(form, head(), vectors_in(form, {{1}}));
  EXPECT_THAT(find_header(reply.headers, "metadata"), IsNull());
  EXPECT_EQ(reply.size(), 4U);
}

TEST(VectorReply, RefusesAHeaderBeyondWhatClientsTake) {
  VectorForm form = form_of(R"({"encoding_format":"bytes"})");
  const std::vector<RowTensor> vectors = vectors_in(form, std::vector(100, std::vector{1.0F}));
  const ApiError error = refusal([&] { (void)vector_reply(form, head(), vectors); });
  EXPECT_EQ(error.status(), 400);
  EXPECT_EQ(error.code(), "metadata_header_too_large");
  EXPECT_THAT(error.what(), HasSubstr("at most 7168 are sent; ask for encoding_format bytes_only"));
  form.encoding = VectorEncoding::kBytesOnly;
  EXPECT_EQ(vector_reply(form, head(), vectors).size(), 400U);
}

TEST(VectorReply, RefusesMoreNumbersThanJsonMayHold) {
  const VectorForm form = form_of("{}");
  VectorReplyHead small = head();
  small.max_json_values = 3;
  EXPECT_NO_THROW((void)vector_reply(form, small, vectors_in(form, {{1, 2}, {3}})));
  const ApiError error = refusal([&] {
    (void)vector_reply(form, small, vectors_in(form, {{1, 2}, {3, 4}}));
  });
  EXPECT_EQ(error.code(), "response_too_large_for_json");
  EXPECT_THAT(error.what(), HasSubstr("would hold 4 numbers, JSON at most 3"));
}

TEST(VectorReply, HoldsItsRoomUntilThePartsAreGone) {
  for (const char* encoding : {"float", "bytes"}) {
    const auto room = std::make_shared<int>();
    VectorReplyHead with_room = head();
    with_room.room = room;
    const VectorForm form = form_of(R"({"encoding_format":")" + std::string(encoding) + "\"}");
    Reply reply = vector_reply(form, with_room, vectors_in(form, {{1}}));
    with_room.room.reset();
    EXPECT_EQ(room.use_count(), 2) << encoding;
    reply = {};
    EXPECT_EQ(room.use_count(), 1) << encoding;
  }
}

}  // namespace
}  // namespace fovea::serve
