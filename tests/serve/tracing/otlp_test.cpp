#include "serve/tracing/otlp.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;
using std::chrono::nanoseconds;

constexpr nanoseconds kOffset{1'767'261'600'000'000'001};

/// A span that has everything.
Span full_span() {
  Span span{.context = {std::string(32, '1'), std::string(16, '2'), true, "a=1"},
            .parent_id = "3333333333333a3f",
            .name = "POST /v1/encode",
            .kind = SpanKind::kServer,
            .begin = Span::Time(nanoseconds(5)),
            .end = Span::Time(nanoseconds(7)),
            .attributes = {{"text", "t\"\n"},
                           {"count", std::int64_t{-3}},
                           {"large", std::int64_t{300}},
                           {"rate", 0.5}},
            .links = {{std::string(32, '4'), std::string(16, '5'), true, {}}},
            .has_failed = true};
  span.attributes.emplace_back("truth", true);
  return span;
}

TraceResource resource() { return {.attributes = {{"service.name", "fovea"}}, .version = "1.2"}; }

TEST(OtlpJson, IsThatOfTheProtocol) {
  const Span span = full_span();
  // 2026: more than a double holds exactly, so it is text.
  const Json json = Json::parse(otlp_json(resource(), std::span(&span, 1), kOffset));
  EXPECT_EQ(json, Json::parse(R"({"resourceSpans": [{
      "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "fovea"}}]},
      "scopeSpans": [{"scope": {"name": "fovea", "version": "1.2"}, "spans": [{
        "traceId": "11111111111111111111111111111111", "spanId": "2222222222222222",
        "traceState": "a=1", "parentSpanId": "3333333333333a3f", "name": "POST /v1/encode",
        "kind": 2, "startTimeUnixNano": "1767261600000000006",
        "endTimeUnixNano": "1767261600000000008",
        "attributes": [{"key": "text", "value": {"stringValue": "t\"\n"}},
                       {"key": "count", "value": {"intValue": "-3"}},
                       {"key": "large", "value": {"intValue": "300"}},
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

std::string hex(const std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += {kDigits[value / 16], kDigits[value % 16]};
  }
  return text;
}

// The bytes are those of opentelemetry-proto 1.45.2 and protobuf 7.36.2 in Python.
TEST(OtlpProtobuf, HasTheBytesOfTheProtocolsOwnLibrary) {
  const Span span = full_span();
  EXPECT_EQ(hex(otlp_protobuf(resource(), std::span(&span, 1), kOffset)),
            "0af4010a190a170a0c736572766963652e6e616d6512070a05666f76656112d6010a0c0a05666f76"
            "65611203312e3212c5010a1011111111111111111111111111111111120822222222222222221a03"
            "613d3122083333333333333a3f2a0f504f5354202f76312f656e636f6465300239064030d50f9386"
            "1841084030d50f9386184a0d0a047465787412050a0374220a4a140a05636f756e74120b18fdffff"
            "ffffffffffff014a0c0a056c61726765120318ac024a110a0472617465120921000000000000e03f"
            "4a0b0a057472757468120210016a1c0a104444444444444444444444444444444412085555555555"
            "5555557a021802");
}

TEST(OtlpProtobuf, LeavesOutWhatASpanLacks) {
  const Span span{.context = {std::string(32, '1'), std::string(16, '2'), true, {}},
                  .parent_id = {},
                  .name = "n",
                  .begin = {},
                  .end = {}};
  EXPECT_EQ(hex(otlp_protobuf({}, std::span(&span, 1), nanoseconds(0))),
            "0a440a001240"
            "0a090a05666f7665611200"
            "1233"
            "0a1011111111111111111111111111111111"
            "12082222222222222222"
            "2a016e"
            "3001"
            "390000000000000000"
            "410000000000000000");
}

TEST(Otlp, SaysHowARequestIsWritten) {
  EXPECT_STREQ(content_type(OtlpEncoding::kProtobuf), "application/x-protobuf");
  EXPECT_STREQ(content_type(OtlpEncoding::kJson), "application/json");
  EXPECT_EQ(otlp_request(OtlpEncoding::kJson, resource(), {}, kOffset),
            otlp_json(resource(), {}, kOffset));
  EXPECT_EQ(otlp_request(OtlpEncoding::kProtobuf, resource(), {}, kOffset),
            otlp_protobuf(resource(), {}, kOffset));
}

}  // namespace
}  // namespace fovea::serve
