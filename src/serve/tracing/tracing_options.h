#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "serve/text/headers.h"
#include "serve/tracing/otlp.h"

namespace fovea::serve {

/// Which traces are recorded. Source: OpenTelemetry, trace SDK, "Sampling".
struct SamplerOptions {
  bool follows_parent = true;  ///< where a request has a context, as that says
  double share = 1;            ///< of the others, from 0 to 1
};

/// Where spans go, and which.
struct TracingOptions {
  std::string url;  ///< of a collector, with /v1/traces
  Headers headers;  ///< sent along: keys of who runs it
  OtlpEncoding encoding = OtlpEncoding::kProtobuf;
  TraceResource resource;
  SamplerOptions sampler;
  std::chrono::milliseconds timeout{10'000};  ///< of a request
  std::chrono::milliseconds delay{5'000};     ///< between two of them
  std::size_t max_queue = 2048;               ///< spans that wait; others are dropped
  std::size_t max_batch = 512;                ///< spans of a request
};

/// A variable of the environment; null: it is not set.
using Environment = std::function<const char*(const char* name)>;

/// What the variables of OpenTelemetry say. Honoured are OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER
/// (otlp, none), OTEL_EXPORTER_OTLP_[TRACES_]ENDPOINT, _HEADERS, _TIMEOUT and _PROTOCOL
/// (http/protobuf, http/json), OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER
/// (always_on, always_off, traceidratio, and each with parentbased_ in front),
/// OTEL_TRACES_SAMPLER_ARG, OTEL_BSP_SCHEDULE_DELAY, OTEL_BSP_MAX_QUEUE_SIZE,
/// OTEL_BSP_MAX_EXPORT_BATCH_SIZE.
/// @param endpoint base of the URL, comes before the variables; may be empty.
/// @return nothing where tracing is off, or nobody says where spans go.
/// @throws Error(kInvalidArgument) that names the variable, for values that are none and for what
/// is not honoured: other values of these, compression, certificates, propagators without
/// tracecontext. Source: OpenTelemetry, "Environment Variable Specification"; OTLP exporter.
[[nodiscard]] std::optional<TracingOptions> tracing_options(const std::string& endpoint,
                                                            const Environment& environment);

}  // namespace fovea::serve
