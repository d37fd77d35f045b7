#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "serve/tracing/span.h"

// Requests of OTLP over HTTP. Source: OTLP 1.5; opentelemetry/proto/collector/trace/v1/
// trace_service.proto and trace/v1/trace.proto, whose numbers of fields they have.
namespace fovea::serve {

/// How a request is written. All collectors take protobuf.
enum class OtlpEncoding : std::uint8_t { kProtobuf, kJson };

/// The value of Content-Type.
[[nodiscard]] const char* content_type(OtlpEncoding encoding) noexcept;

/// The body of a request with these spans.
/// @param offset from the steady clock to that of the system, which counts from 1970.
[[nodiscard]] std::string otlp_request(OtlpEncoding encoding, const TraceResource& resource,
                                       std::span<const Span> spans,
                                       std::chrono::nanoseconds offset);

/// The same in one encoding.
/// Source: Protocol Buffers, "Encoding".
[[nodiscard]] std::string otlp_protobuf(const TraceResource& resource, std::span<const Span> spans,
                                        std::chrono::nanoseconds offset);
/// Source: OTLP 1.5, "JSON Protobuf Encoding".
[[nodiscard]] std::string otlp_json(const TraceResource& resource, std::span<const Span> spans,
                                    std::chrono::nanoseconds offset);

/// Nanoseconds since 1970.
[[nodiscard]] std::int64_t unix_nanoseconds(Span::Time time, std::chrono::nanoseconds offset);
/// The number that OTLP has for "this failed".
inline constexpr int kStatusCodeError = 2;

}  // namespace fovea::serve
