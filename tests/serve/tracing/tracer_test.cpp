#include "serve/tracing/tracer.h"

#include <gtest/gtest.h>

#include <map>

#include "serve/tracing/collector.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;
using test::Collector;
using test::Json;

constexpr const char* kTrace = "0af7651916cd43dd8448eb211c80319c";
constexpr const char* kSpan = "b7ad6b7169203331";
const Span::Time kBegin{std::chrono::seconds(100)};

Headers parent(const std::string& flags) {
  return {{"traceparent", std::string("00-") + kTrace + "-" + kSpan + "-" + flags},
          {"tracestate", "a=1"}};
}

/// The spans of what is done with a tracer, by their names.
template <class Work>
std::map<std::string, Json> spans_of(SamplerOptions sampler, const Work& work) {
  Collector collector;
  {
    Tracer tracer({.url = collector.url(),
                   .headers = {},
                   .encoding = OtlpEncoding::kJson,
                   .resource = {},
                   .sampler = sampler,
                   .delay = std::chrono::hours(1)});
    work(tracer);
  }
  std::map<std::string, Json> spans;
  for (const Json& span : collector.spans()) spans[span["name"]] = span;
  return spans;
}

Span request_span() {
  return {.context = {}, .parent_id = {}, .name = "POST /v1/encode", .begin = {}, .end = {}};
}

std::int64_t length_ms(const Json& span) {
  return (std::stoll(span["endTimeUnixNano"].get<std::string>()) -
          std::stoll(span["startTimeUnixNano"].get<std::string>())) /
         1'000'000;
}

TEST(RequestTrace, HasASpanForEachStageBelowThatOfTheRequest) {
  auto spans = spans_of({}, [](Tracer& tracer) {
    const auto trace = tracer.begin(parent("01"), kBegin);
    trace->end_stage("receive", kBegin + milliseconds(2));
    trace->end_stage("parse", kBegin + milliseconds(5), {{"x", std::int64_t{1}}});
    trace->end(request_span(), kBegin + milliseconds(9));
  });
  ASSERT_EQ(spans.size(), 4U);
  const Json& request = spans["POST /v1/encode"];
  EXPECT_EQ(request["traceId"], kTrace);
  EXPECT_EQ(request["parentSpanId"], kSpan);
  EXPECT_EQ(request["traceState"], "a=1");
  EXPECT_EQ(request["kind"], 2);
  EXPECT_EQ(length_ms(request), 9);
  for (const auto& [name, ms] : {std::pair("receive", 2), {"parse", 3}, {"reply", 4}}) {
    EXPECT_EQ(spans[name]["parentSpanId"], request["spanId"]) << name;
    EXPECT_EQ(spans[name]["traceId"], kTrace) << name;
    EXPECT_EQ(length_ms(spans[name]), ms) << name;
  }
  EXPECT_EQ(spans["parse"]["startTimeUnixNano"], spans["receive"]["endTimeUnixNano"]);
}

TEST(RequestTrace, LinksABatchAndItsRequests) {
  Collector collector;
  {
    Tracer tracer({.url = collector.url(),
                   .headers = {},
                   .encoding = OtlpEncoding::kJson,
                   .resource = {},
                   .sampler = {},
                   .delay = std::chrono::hours(1)});
    for (const std::uint64_t number : {1U, 1U, 2U}) {
      const auto trace = tracer.begin({}, kBegin);
      trace->end_batch(number, 3, 7, {{"fovea.items", std::int64_t{1}}});
    }
    tracer.begin({}, kBegin)->end_batch(0, 3, 0, {});  // its request ended in the queue
  }
  std::vector<Json> batches;
  std::map<std::string, Json> encodes;
  std::size_t queues = 0;
  for (const Json& span : collector.spans()) {
    if (span["name"] == "encode batch") batches.push_back(span);
    if (span["name"] == "encode") encodes[span["spanId"]] = span;
    if (span["name"] == "queue") ++queues;
  }
  EXPECT_EQ(queues, 4U);
  ASSERT_EQ(encodes.size(), 3U);
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0]["links"].size() + batches[1]["links"].size(), 3U);
  for (const Json& batch : batches) {
    EXPECT_EQ(length_ms(batch), 7);
    EXPECT_FALSE(batch.contains("parentSpanId"));
    for (const Json& link : batch["links"]) {
      const Json& encode = encodes.at(link["spanId"]);
      EXPECT_EQ(encode["traceId"], link["traceId"]);
      EXPECT_EQ(encode["links"][0]["spanId"], batch["spanId"]);
      EXPECT_EQ(length_ms(encode), 7);
    }
  }
}

TEST(RequestTrace, HasNoSpansOnceItIsOver) {
  const auto spans = spans_of({}, [](Tracer& tracer) {
    const auto trace = tracer.begin({}, kBegin);
    trace->end(request_span(), kBegin + milliseconds(1));
    trace->end_stage("late", kBegin + milliseconds(2));  // of a client that has left
    trace->end_batch(1, 1, 1, {});
  });
  EXPECT_EQ(spans.size(), 2U);
}

TEST(RequestTrace, GivesOthersAContextBelowIt) {
  auto spans = spans_of({}, [](Tracer& tracer) {
    const auto trace = tracer.begin(parent("01"), kBegin);
    Span span{.context = trace->child(),
              .parent_id = {},
              .name = "POST",
              .kind = SpanKind::kClient,
              .begin = kBegin,
              .end = kBegin};
    EXPECT_EQ(span.context.trace_id, kTrace);
    EXPECT_NE(span.context.span_id, trace->context().span_id);
    EXPECT_EQ(span.context.state, "a=1");
    trace->add(span);
    trace->end(request_span(), kBegin);
  });
  EXPECT_EQ(spans["POST"]["parentSpanId"], spans["POST /v1/encode"]["spanId"]);
  EXPECT_EQ(spans["POST"]["kind"], 3);
}

/// Whether a request is recorded, and whether those it asks are told so.
bool is_recorded(SamplerOptions sampler, const Headers& headers) {
  bool is_told = false;
  const auto spans = spans_of(sampler, [&](Tracer& tracer) {
    const auto trace = tracer.begin(headers, kBegin);
    is_told = trace->child().is_sampled;
    trace->end_stage("receive", kBegin);
    trace->end_batch(1, 1, 1, {});
    trace->end(request_span(), kBegin);
  });
  EXPECT_EQ(is_told, !spans.empty());
  return is_told;
}

TEST(Tracer, SamplesAsItsOptionsSay) {
  EXPECT_TRUE(is_recorded({}, {}));
  EXPECT_TRUE(is_recorded({}, parent("01")));
  EXPECT_FALSE(is_recorded({}, parent("00"))) << "the client does not record it";
  EXPECT_TRUE(is_recorded({.follows_parent = false}, parent("00")));
  EXPECT_FALSE(is_recorded({.follows_parent = false, .share = 0}, parent("01")));
  EXPECT_TRUE(is_recorded({.share = 0}, parent("01")));
  EXPECT_FALSE(is_recorded({.share = 0}, {}));
}

TEST(Tracer, SamplesAShareOfTraces) {
  Collector collector;
  Tracer tracer({.url = collector.url(),
                 .headers = {},
                 .encoding = OtlpEncoding::kJson,
                 .resource = {},
                 .sampler = {.share = 0.25},
                 .delay = std::chrono::hours(1)});
  int sampled = 0;
  constexpr int kTraces = 4000;
  for (int i = 0; i < kTraces; ++i) {
    sampled += tracer.begin({}, kBegin)->context().is_sampled ? 1 : 0;
  }
  // 1000 are expected, with a deviation of 27.
  EXPECT_NEAR(sampled, 0.25 * kTraces, 200);
}

TEST(Tracer, SamplesEqualTracesEverywhere) {
  const Headers high{{"traceparent", "00-000000000000000000ffffffffffffff-b7ad6b7169203331-00"}};
  const Headers low{{"traceparent", "00-00000000000000010000000000000001-b7ad6b7169203331-01"}};
  EXPECT_TRUE(is_recorded({.follows_parent = false, .share = 0.01}, high));
  EXPECT_FALSE(is_recorded({.follows_parent = false, .share = 0.99}, low));
}

}  // namespace
}  // namespace fovea::serve
