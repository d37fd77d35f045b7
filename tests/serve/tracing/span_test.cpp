#include "serve/tracing/span.h"

#include <gtest/gtest.h>

#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;
using std::chrono::nanoseconds;

TEST(OtlpJson, IsThatOfTheProtocol) {
  Span span{.context = {std::string(32, '1'), std::string(16, '2'), true, "a=1"},
            .parent_id = std::string(16, '3'),
            .name = "POST /v1/encode",
            .kind = SpanKind::kServer,
            .begin = Span::Time(nanoseconds(5)),
            .end = Span::Time(nanoseconds(7)),
            .attributes = {{"text", "t\"\n"}, {"count", std::int64_t{3}}, {"rate", 0.5}},
            .links = {{std::string(32, '4'), std::string(16, '5'), true, {}}},
            .has_failed = true};
  span.attributes.emplace_back("truth", true);
  const TraceResource resource{.attributes = {{"service.name", "fovea"}}, .version = "1.2"};
  // 2026: more than a double holds exactly, so it is text.
  const Json json =
      Json::parse(otlp_json(resource, std::span(&span, 1), nanoseconds(1'767'261'600'000'000'001)));
  EXPECT_EQ(json, Json::parse(R"({"resourceSpans": [{
      "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "fovea"}}]},
      "scopeSpans": [{"scope": {"name": "fovea", "version": "1.2"}, "spans": [{
        "traceId": "11111111111111111111111111111111", "spanId": "2222222222222222",
        "traceState": "a=1", "parentSpanId": "3333333333333333", "name": "POST /v1/encode",
        "kind": 2, "startTimeUnixNano": "1767261600000000006",
        "endTimeUnixNano": "1767261600000000008",
        "attributes": [{"key": "text", "value": {"stringValue": "t\"\n"}},
                       {"key": "count", "value": {"intValue": "3"}},
                       {"key": "rate", "value": {"doubleValue": 0.5}},
                       {"key": "truth", "value": {"boolValue": true}}],
        "links": [{"traceId": "44444444444444444444444444444444", "spanId": "5555555555555555"}],
        "status": {"code": 2}}]}]}]})"));
}

TEST(OtlpJson, LeavesOutWhatASpanLacks) {
  const Span span{.context = {std::string(32, '1'), std::string(16, '2'), true, {}},
                  .parent_id = {},
                  .name = "n",
                  .begin = {},
                  .end = {}};
  const Json json = Json::parse(otlp_json({}, std::span(&span, 1), nanoseconds(0)));
  const Json& written = json["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
  for (const char* name : {"parentSpanId", "traceState", "links", "status"}) {
    EXPECT_FALSE(written.contains(name)) << name;
  }
  EXPECT_EQ(written["kind"], 1);
}

}  // namespace
}  // namespace fovea::serve
