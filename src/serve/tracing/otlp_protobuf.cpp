#include <bit>
#include <string_view>

#include "serve/tracing/otlp.h"

namespace fovea::serve {
namespace {

/// A message of Protocol Buffers, field by field.
class Message {
 public:
  void add_number(int field, std::uint64_t value) {
    add_key(field, kVarint);
    add_varint(value);
  }
  void add_fixed64(int field, std::uint64_t value) {
    constexpr int kBytes = 8;
    add_key(field, kFixed64);
    for (int i = 0; i < kBytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  /// Text, or bytes.
  void add(int field, std::string_view bytes) {
    add_key(field, kLengthDelimited);
    add_varint(bytes.size());
    bytes_ += bytes;
  }
  void add(int field, const Message& message) { add(field, message.bytes_); }

  [[nodiscard]] std::string take() && { return std::move(bytes_); }

 private:
  enum WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };

  void add_key(int field, WireType type) {
    add_varint(static_cast<std::uint64_t>(field) << 3 | type);
  }
  void add_varint(std::uint64_t value) {
    constexpr std::uint64_t kMore = 0x80;
    for (; value >= kMore; value >>= 7) bytes_ += static_cast<char>(value % kMore | kMore);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

/// The bytes of an id, which is text of hexadecimal digits in lower case.
std::string bytes_of(std::string_view id) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < id.size(); i += 2)
    bytes += static_cast<char>(digit(id[i]) << 4 | digit(id[i + 1]));
  return bytes;
}

Message value_message(const AttributeValue& value) {
  Message message;
  if (const auto* const text = std::get_if<std::string>(&value)) {
    message.add(1, *text);
  } else if (const auto* const truth = std::get_if<bool>(&value)) {
    message.add_number(2, *truth ? 1 : 0);
  } else if (const auto* const number = std::get_if<double>(&value)) {
    message.add_fixed64(4, std::bit_cast<std::uint64_t>(*number));
  } else {
    message.add_number(3, static_cast<std::uint64_t>(std::get<std::int64_t>(value)));
  }
  return message;
}

void add_attributes(Message& message, int field, const Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    Message pair;
    pair.add(1, name);
    pair.add(2, value_message(value));
    message.add(field, pair);
  }
}

Message span_message(const Span& span, std::chrono::nanoseconds offset) {
  Message message;
  message.add(1, bytes_of(span.context.trace_id));
  message.add(2, bytes_of(span.context.span_id));
  if (!span.context.state.empty()) message.add(3, span.context.state);
  if (!span.parent_id.empty()) message.add(4, bytes_of(span.parent_id));
  message.add(5, span.name);
  message.add_number(6, static_cast<std::uint64_t>(span.kind));
  message.add_fixed64(7, static_cast<std::uint64_t>(unix_nanoseconds(span.begin, offset)));
  message.add_fixed64(8, static_cast<std::uint64_t>(unix_nanoseconds(span.end, offset)));
  add_attributes(message, 9, span.attributes);
  for (const TraceContext& to : span.links) {
    Message link;
    link.add(1, bytes_of(to.trace_id));
    link.add(2, bytes_of(to.span_id));
    message.add(13, link);
  }
  if (span.has_failed) {
    Message status;
    status.add_number(3, kStatusCodeError);
    message.add(15, status);
  }
  return message;
}

}  // namespace

std::string otlp_protobuf(const TraceResource& resource, std::span<const Span> spans,
                          std::chrono::nanoseconds offset) {
  Message scope;
  scope.add(1, "fovea");
  scope.add(2, resource.version);
  Message scoped;
  scoped.add(1, scope);
  for (const Span& span : spans) scoped.add(2, span_message(span, offset));
  Message described;
  add_attributes(described, 1, resource.attributes);
  Message whole;
  whole.add(1, described);
  whole.add(2, scoped);
  Message request;
  request.add(1, whole);
  return std::move(request).take();
}

}  // namespace fovea::serve
