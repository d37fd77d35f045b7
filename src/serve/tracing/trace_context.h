#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/text/headers.h"

namespace fovea::serve {

/// The place of a span in the trace of a request that several programs work on.
struct TraceContext {
  std::string trace_id;    ///< 32 lower-case hexadecimal digits, not all 0
  std::string span_id;     ///< 16 of them, likewise
  bool is_sampled = true;  ///< whether who began it records it
  std::string state;       ///< tracestate, passed on as it came
};

/// The context in the headers traceparent and tracestate. Nothing for none and for what the
/// standard has ignored: another form, ids of zeros, version ff, several of traceparent. A
/// tracestate that has no or more than 32 members, or more than 512 bytes, is left out.
/// Source: W3C, Trace Context, sections 3.2, 3.3 and 4.3.
[[nodiscard]] std::optional<TraceContext> trace_context_in(const Headers& headers);

/// "00-<trace id>-<span id>-01": the header traceparent for who works on below the span.
[[nodiscard]] std::string traceparent_of(const TraceContext& context);

/// Replaces both headers by those of the context.
void set_trace_context(Headers& headers, const TraceContext& context);

/// Random ids of a trace and of a span. Thread-safe.
[[nodiscard]] std::string make_trace_id();
[[nodiscard]] std::string make_span_id();

}  // namespace fovea::serve
