#include "serve/routes/kserve/infer_reply.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "serve/rows/rows_fixture.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;
using test::item_of;

using Items = std::vector<std::shared_ptr<const Embedding>>;

const ReplyHead kHead{.model = "m", .hidden = 2};

/// Two items of 2 + 1 rows.
Items two_items() { return {item_of(2, {1, 2, 3, 4}), item_of(1, {5, 6})}; }

Reply reply_to(const InferRequest& request, const Items& items, const ReplyHead& head = kHead) {
  return infer_reply(request, infer_rows(request, ElementType::kFloat32), head, items);
}
Json json_of(const Reply& reply) { return Json::parse(test::text_of(reply.body)); }

TEST(InferReply, HoldsAllRowsAndHowManyEachItemHas) {
  const Json json = json_of(reply_to({.id = "i-\"1"}, two_items()));
  EXPECT_EQ(json["model_name"], "m");
  EXPECT_EQ(json["model_version"], "1");
  EXPECT_EQ(json["id"], "i-\"1");
  ASSERT_EQ(json["outputs"].size(), 2U) << "these items have no grids";
  const Json& rows = json["outputs"][0];
  EXPECT_EQ(rows["name"], "embeddings");
  EXPECT_EQ(rows["datatype"], "FP32");
  EXPECT_EQ(rows["shape"], (Json{3, 2}));
  EXPECT_EQ(rows["data"], (Json{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}));
  const Json& counts = json["outputs"][1];
  EXPECT_EQ(counts["name"], "num_embeds");
  EXPECT_EQ(counts["datatype"], "INT64");
  EXPECT_EQ(counts["data"], (Json{2, 1}));
}

TEST(InferReply, HoldsTheGridsOfFamiliesThatHaveThem) {
  const auto item = item_of(1, {1, 2});
  item->grid_thw = {1, 2, 4};
  const Json json = json_of(reply_to({}, {item}));
  ASSERT_EQ(json["outputs"].size(), 3U);
  EXPECT_EQ(json["outputs"][2]["name"], "grid_thw");
  EXPECT_EQ(json["outputs"][2]["shape"], (Json{1, 3}));
  EXPECT_EQ(json["outputs"][2]["data"], (Json{1, 2, 4}));
  InferRequest grids;
  grids.outputs = {{"grid_thw", false}};
  EXPECT_EQ(json_of(reply_to(grids, {item}))["outputs"].size(), 1U);
  EXPECT_EQ(test::refusal([&] { (void)reply_to(grids, two_items()); }).param(), "outputs");
}

TEST(InferReply, SendsBinaryTensorsBehindTheJson) {
  InferRequest request;
  request.outputs = {{"num_embeds", true}, {"embeddings", true}};
  const Items items = two_items();
  const Reply reply = reply_to(request, items);
  const std::size_t length =
      std::stoul(*find_header(reply.headers, "Inference-Header-Content-Length"));
  const std::string text = test::text_of(reply.body);
  const Json json = Json::parse(text.substr(0, length));
  EXPECT_EQ(json["outputs"][0]["parameters"]["binary_data_size"], 2 * sizeof(std::int64_t));
  EXPECT_EQ(json["outputs"][1]["parameters"]["binary_data_size"], 6 * sizeof(float));
  ASSERT_EQ(text.size(), length + 2 * sizeof(std::int64_t) + 6 * sizeof(float));
  float last = 0;
  std::memcpy(&last, text.data() + text.size() - sizeof(last), sizeof(last));
  EXPECT_EQ(last, 6);
  const bool is_copied = std::ranges::none_of(
      reply.body, [&](const BodyPart& part) { return part.bytes.data() == items[0]->data.data(); });
  EXPECT_FALSE(is_copied) << "rows that are sent as they are";
}

TEST(InferReply, MakesOneRowOfAPooledItem) {
  InferRequest request;
  request.pooling = Pooling::kMax;
  const Json json = json_of(reply_to(request, two_items()));
  EXPECT_EQ(json["outputs"][0]["data"], (Json{3.0, 4.0, 5.0, 6.0}));
  EXPECT_EQ(json["outputs"][1]["data"], (Json{1, 1}));
}

TEST(InferReply, CountsTheNumbersOfAllItsTensors) {
  ReplyHead head = kHead;
  head.max_json_values = 6;
  InferRequest request;
  request.outputs = {{"embeddings", false}, {"embeddings", true}};
  EXPECT_EQ(rows_as_json(request), 1);
  EXPECT_EQ(reply_to(request, two_items(), head).status, 200);
  request.outputs[1].binary = false;
  EXPECT_EQ(rows_as_json(request), 2) << "for which there has to be room";
  EXPECT_EQ(test::refusal([&] { (void)reply_to(request, two_items(), head); }).code(),
            "response_too_large_for_json");
}

TEST(InferReply, SendsNoJsonThatCannotHoldTheRows) {
  ReplyHead short_head = kHead;
  short_head.max_json_values = 5;
  EXPECT_EQ(test::refusal([&] { (void)reply_to({}, two_items(), short_head); }).code(),
            "response_too_large_for_json");
  InferRequest request;
  request.type = ElementType::kBFloat16;
  const Items items{item_of(3, {1, 2, 3, 4, 5, 6}, RowDType::kBFloat16)};
  EXPECT_EQ(test::refusal([&] { (void)reply_to(request, items); }).code(), "unsupported_dtype");
  request.binary = true;
  EXPECT_EQ(reply_to(request, items, short_head).status, 200) << "binary data has no such limit";
}

TEST(InferRows, AreOfTheCheckpointUnlessAskedForOthers) {
  InferRequest request;
  EXPECT_EQ(infer_rows(request, ElementType::kFloat16).type, ElementType::kFloat16);
  request.type = ElementType::kFloat32;
  request.deepstack = Deepstack::kMain;
  EXPECT_EQ(infer_rows(request, ElementType::kFloat16).type, ElementType::kFloat32);
  EXPECT_EQ(infer_rows(request, ElementType::kFloat16).deepstack, Deepstack::kMain);
}

TEST(KserveDatatype, NamesTheTypesOfRows) {
  EXPECT_STREQ(kserve_datatype(ElementType::kFloat32), "FP32");
  EXPECT_STREQ(kserve_datatype(ElementType::kFloat16), "FP16");
  EXPECT_STREQ(kserve_datatype(ElementType::kBFloat16), "BF16");
}

}  // namespace
}  // namespace fovea::serve
