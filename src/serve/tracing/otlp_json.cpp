#include "core/json_writer.h"
#include "serve/tracing/otlp.h"

namespace fovea::serve {
namespace {

/// Whole numbers of 64 bits are texts in JSON. Source: Protocol Buffers, "ProtoJSON Format".
JsonObject value_json(const AttributeValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return {{"stringValue", *text}};
  if (const auto* const number = std::get_if<double>(&value)) return {{"doubleValue", *number}};
  if (const auto* const truth = std::get_if<bool>(&value)) return {{"boolValue", *truth}};
  return {{"intValue", std::to_string(std::get<std::int64_t>(value))}};
}

JsonArray attributes_json(const Attributes& attributes) {
  JsonArray json;
  for (const auto& [name, value] : attributes) {
    json.add(JsonObject{{"key", name}, {"value", value_json(value)}});
  }
  return json;
}

JsonObject span_json(const Span& span, std::chrono::nanoseconds offset) {
  JsonObject json{{"traceId", span.context.trace_id}, {"spanId", span.context.span_id}};
  if (!span.context.state.empty()) json.set("traceState", span.context.state);
  if (!span.parent_id.empty()) json.set("parentSpanId", span.parent_id);
  json.set("name", span.name);
  json.set("kind", static_cast<int>(span.kind));
  json.set("startTimeUnixNano", std::to_string(unix_nanoseconds(span.begin, offset)));
  json.set("endTimeUnixNano", std::to_string(unix_nanoseconds(span.end, offset)));
  json.set("attributes", attributes_json(span.attributes));
  if (!span.links.empty()) {
    JsonArray links;
    for (const TraceContext& link : span.links) {
      links.add(JsonObject{{"traceId", link.trace_id}, {"spanId", link.span_id}});
    }
    json.set("links", links);
  }
  if (span.has_failed) json.set("status", JsonObject{{"code", kStatusCodeError}});
  return json;
}

}  // namespace

std::string otlp_json(const TraceResource& resource, std::span<const Span> spans,
                      std::chrono::nanoseconds offset) {
  JsonArray all;
  for (const Span& span : spans) all.add(span_json(span, offset));
  const JsonObject scope{{"name", "fovea"}, {"version", resource.version}};
  const JsonObject scoped{{"scope", scope}, {"spans", all}};
  const JsonObject whole{
      {"resource", JsonObject{{"attributes", attributes_json(resource.attributes)}}},
      {"scopeSpans", JsonArray::of(scoped)}};
  return to_json_text(JsonObject{{"resourceSpans", JsonArray::of(whole)}});
}

}  // namespace fovea::serve
