// Bodies of the error vocabulary. Only internal errors name a source line: every other message is
// written for a user, who has no use for ours.
#include "core/check.h"
#include "core/boundary.h"

#include <string_view>

#include "fovea/version.h"

namespace fovea {

const char* version() noexcept { return "0.1.0"; }

const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kCorruptData: return "corrupt_data";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kOutOfMemory: return "out_of_memory";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kDevice: return "device";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kDeadline: return "deadline";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

std::string shortened(std::string_view text, std::size_t max_bytes) try {
  constexpr std::string_view kCut = "...";
  if (text.size() <= max_bytes) return std::string(text);
  const auto splits_character = [&](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  const std::size_t kept = max_bytes > kCut.size() ? max_bytes - kCut.size() : 0;
  std::size_t head = kept - kept / 2;
  std::size_t tail = text.size() - kept / 2;
  for (int i = 0; i < 3 && head > 0 && splits_character(head); ++i) --head;
  for (int i = 0; i < 3 && splits_character(tail); ++i) ++tail;
  return std::string(text.substr(0, head)).append(kCut).append(text.substr(tail));
} catch (...) {
  rethrow_as_error();
}

namespace detail {

void fail_check(ErrorCode code, const std::string& message, const char* file, int line) {
  if (code != ErrorCode::kInternal) throw Error(code, message);
  std::string_view name = file;
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  throw Error(code, cat("internal error at ", name, ":", line, ": ", message));
}

}  // namespace detail

}  // namespace fovea
