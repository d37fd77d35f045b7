#include "serve/tracing/otlp.h"

namespace fovea::serve {

const char* content_type(OtlpEncoding encoding) noexcept {
  return encoding == OtlpEncoding::kJson ? "application/json" : "application/x-protobuf";
}

std::string otlp_request(OtlpEncoding encoding, const TraceResource& resource,
                         std::span<const Span> spans, std::chrono::nanoseconds offset) {
  return encoding == OtlpEncoding::kJson ? otlp_json(resource, spans, offset)
                                         : otlp_protobuf(resource, spans, offset);
}

std::int64_t unix_nanoseconds(Span::Time time, std::chrono::nanoseconds offset) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch() + offset)
      .count();
}

}  // namespace fovea::serve
