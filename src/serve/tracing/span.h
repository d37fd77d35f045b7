#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "serve/tracing/trace_context.h"

namespace fovea::serve {

using AttributeValue = std::variant<std::string, std::int64_t, double, bool>;
/// By their names. Source: OpenTelemetry, semantic conventions; ours begin with "fovea.".
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

/// Source: OpenTelemetry, trace API, "SpanKind"; the numbers are those of OTLP.
enum class SpanKind : std::uint8_t { kInternal = 1, kServer = 2, kClient = 3 };

/// A time in which one thing was done. Points in time are those of the steady clock.
struct Span {
  using Time = std::chrono::steady_clock::time_point;

  TraceContext context;   ///< of itself
  std::string parent_id;  ///< empty: it begins its trace
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  Time begin;
  Time end;
  Attributes attributes = {};
  std::vector<TraceContext> links = {};
  bool has_failed = false;
};

/// What all spans of a program come from: "service.name" and what else names it.
struct TraceResource {
  Attributes attributes;
  std::string version;  ///< of what has made the spans
};

}  // namespace fovea::serve
