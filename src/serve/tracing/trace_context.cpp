#include "serve/tracing/trace_context.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

#include "serve/text/url.h"

namespace fovea::serve {
namespace {

constexpr std::size_t kTraceDigits = 32;
constexpr std::size_t kSpanDigits = 16;
constexpr std::size_t kParentBytes = 2 + 1 + kTraceDigits + 1 + kSpanDigits + 1 + 2;
constexpr std::size_t kStateBytes = 512;
constexpr std::ptrdiff_t kStateMembers = 32;

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool is_hex(std::string_view text) {
  return text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

/// Later versions may have more behind what is known.
std::optional<TraceContext> parse_parent(std::string_view text) {
  if (text.size() < kParentBytes) return std::nullopt;
  const std::string_view version = text.substr(0, 2);
  const std::string_view trace = text.substr(3, kTraceDigits);
  const std::string_view span = text.substr(3 + kTraceDigits + 1, kSpanDigits);
  const std::string_view flags = text.substr(kParentBytes - 2, 2);
  const bool has_dashes =
      text[2] == '-' && text[3 + kTraceDigits] == '-' && text[kParentBytes - 3] == '-';
  const bool has_end =
      text.size() == kParentBytes || (version != "00" && text[kParentBytes] == '-');
  if (!has_dashes || !has_end || !is_hex(version) || version == "ff") return std::nullopt;
  if (!is_id(trace) || !is_id(span) || !is_hex(flags)) return std::nullopt;
  const bool is_sampled = kHexDigits.find(flags[1]) % 2 == 1;
  return TraceContext{std::string(trace), std::string(span), is_sampled, {}};
}

/// The members of all headers of that name in one.
std::string state_in(const Headers& headers) {
  std::string state;
  for (const Header& header : headers) {
    if (to_lower(header.name) != "tracestate" || header.value.empty()) continue;
    state += (state.empty() ? "" : ",") + header.value;
  }
  const bool is_too_long =
      state.size() > kStateBytes || std::ranges::count(state, ',') >= kStateMembers;
  const bool is_list = state.find('=') != std::string::npos;
  return is_too_long || !is_list ? "" : state;
}

std::string random_id(std::size_t digits) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string id;
  do {
    id.clear();
    for (std::uint64_t bits = 0; id.size() < digits; bits >>= 4U) {
      if (id.size() % kSpanDigits == 0) bits = random();
      id += kHexDigits[bits % kHexDigits.size()];
    }
  } while (!is_id(id));
  return id;
}

}  // namespace

std::optional<TraceContext> trace_context_in(const Headers& headers) {
  const Header* parent = nullptr;
  for (const Header& header : headers) {
    if (to_lower(header.name) != "traceparent") continue;
    if (parent != nullptr) return std::nullopt;
    parent = &header;
  }
  if (parent == nullptr) return std::nullopt;
  std::optional<TraceContext> context = parse_parent(parent->value);
  if (context) context->state = state_in(headers);
  return context;
}

std::string traceparent_of(const TraceContext& context) {
  return "00-" + context.trace_id + "-" + context.span_id + (context.is_sampled ? "-01" : "-00");
}

void set_trace_context(Headers& headers, const TraceContext& context) {
  std::erase_if(headers, [](const Header& header) {
    const std::string name = to_lower(header.name);
    return name == "traceparent" || name == "tracestate";
  });
  headers.push_back({"traceparent", traceparent_of(context)});
  if (!context.state.empty()) headers.push_back({"tracestate", context.state});
}

std::string make_trace_id() { return random_id(kTraceDigits); }
std::string make_span_id() { return random_id(kSpanDigits); }

}  // namespace fovea::serve
