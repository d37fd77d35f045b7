// Replies for which there is no memory: nothing of them allocates where it must not fail.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "rows_fixture.h"
#include "serve/log.h"
#include "serve/metrics/request_metrics.h"
#include "serve/routes/admin/routes.h"
#include "serve/routes/answer.h"
#include "serve/routes/encode_call.h"
#include "serve/routes/kserve/infer_reply.h"
#include "serve/routes/vllm/part_metadata.h"
#include "serve/rows/reply_formats.h"
#include "serve/rows/vector_reply.h"
#include "support/allocations.h"

namespace fovea::serve {
namespace {

using fovea::test::fail_each_allocation;

constexpr int kSome = 5;  ///< allocations, at least, of whatever makes a reply

std::vector<EncodedItem> two_items() {
  const auto photo = test::item_of(2, {1, 2, 3, 4});
  photo->grid_thw = {1, 2, 2};
  photo->key = "a key that no small string holds";
  const auto video = test::item_of(1, {5, 6});
  video->modality = Modality::kVideo;
  video->grid_thw = {2, 1, 1};
  video->timestamps = {0.25, 1.5};
  return {{.embedding = photo, .id = "first", .uuid = "u\n"}, {.embedding = video}};
}

EncodeReplyHead head_of_rows() {
  EncodeReplyHead head;
  head.id = "a request with a long name";
  head.model = "a model with a long name too";
  head.hidden = 2;
  head.max_json_values = 100;
  return head;
}

TEST(ReplyWithoutMemory, OfRowsIsOneFailedRequest) {
  const std::vector<EncodedItem> items = two_items();
  const EncodeReplyHead head = head_of_rows();
  for (const ReplyFormat format : {ReplyFormat::kJson, ReplyFormat::kBase64, ReplyFormat::kTorch,
                                   ReplyFormat::kSafetensors, ReplyFormat::kRaw}) {
    SCOPED_TRACE(to_string(format));
    OutputOptions options{.format = format};
    options.part = format == ReplyFormat::kTorch;
    options.timings = true;
    EXPECT_GT(fail_each_allocation([&] { (void)encode_reply(options, head, items); }), kSome);
  }
}

TEST(ReplyWithoutMemory, OfVectorsIsOneFailedRequest) {
  VectorReplyHead head;
  head.id = "a request with a long name";
  head.model = "a model with a long name too";
  head.max_json_values = 100;
  const auto item = test::item_of(1, {5, 6});
  const std::vector<RowTensor> vectors = make_tensors(item, 2, {});
  for (const VectorEncoding encoding : {VectorEncoding::kFloat, VectorEncoding::kBytes}) {
    const VectorForm form{.encoding = encoding};
    EXPECT_GT(fail_each_allocation([&] { (void)vector_reply(form, head, vectors); }), kSome);
  }
}

TEST(ReplyWithoutMemory, OfKserveIsOneFailedRequest) {
  const std::vector<std::shared_ptr<const Embedding>> items{two_items()[0].embedding};
  ReplyHead head;
  head.model = "a model with a long name";
  head.hidden = 2;
  head.max_json_values = 100;
  for (const bool binary : {false, true}) {
    InferRequest request;
    request.binary = binary;
    const RowOptions rows = infer_rows(request, ElementType::kFloat32);
    EXPECT_GT(fail_each_allocation([&] { (void)infer_reply(request, rows, head, items); }), kSome);
  }
}

TEST(ReplyWithoutMemory, OfWhatTheServerSaysOfItselfIsOneFailedRequest) {
  Router router;
  router.add({.method = "GET", .pattern = "/v1/cache/{key}", .kind = {}, .handler = {}});
  router.add(openapi_route(router));
  const Request request = test::request_to("GET", "/openapi.json");
  EXPECT_GT(fail_each_allocation([&] { (void)test::answer(router, request); }), kSome);
  const RequestMetrics metrics;
  EXPECT_GT(fail_each_allocation([&] {
              MetricsText text({});
              metrics.write(text);
            }),
            kSome);
}

TEST(ReplyWithoutMemory, IsStillAReply) {
  const Request request = test::request_to("POST", "/v1/encode");
  int exchanges = 0;
  int sent = 0;
  const auto exchange_with = [&](const std::function<void(Exchange&)>& handler) {
    Exchange exchange(request, [&sent](const Reply&) { ++sent; });
    ++exchanges;
    handler(exchange);
  };
  const auto fail = [](Exchange& exchange) {
    send_reply(exchange, []() -> Reply {
      throw ApiError(422, "decode_failed", "a message that no small string holds");
    });
  };
  const auto drop = [](Exchange&) {};
  EXPECT_GT(fail_each_allocation([&] { exchange_with(fail); }), kSome);
  EXPECT_GT(fail_each_allocation([&] { exchange_with(drop); }), kSome);
  EXPECT_GT(exchanges, 2 * kSome);
  EXPECT_EQ(sent, exchanges);
}

TEST(ReplyWithoutMemory, IsALineLessOfTheLog) {
  const std::string line = "request id=1234567890123456 path=/a/long/path/of/a/request status=200";
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    EXPECT_GT(fail_each_allocation([&] { (void)log_line(format, 0, LogLevel::kInfo, line); }), 2);
  }
}

}  // namespace
}  // namespace fovea::serve
