#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fovea/export.h"

namespace fovea {

/// What kind of failure an Error reports; callers map it to exit codes, HTTP statuses and the like.
enum class ErrorCode {
  kInvalidArgument,  ///< the caller passed something wrong; retrying will not help
  kCorruptData,      ///< bytes from outside (file, request) break their own format
  kNotFound,         ///< a file, tensor, key or model is absent
  kUnsupported,      ///< valid, but this build or device cannot do it
  kOutOfMemory,      ///< host or device allocation failed
  kUnavailable,      ///< a limit was reached (queue, budget); retrying may help
  kDevice,           ///< a device library reported a failure
  kIo,               ///< the operating system reported a failure
  kCancelled,        ///< the caller's stop_token asked for the end of the call
  kDeadline,         ///< the time that the caller allowed has passed
  kInternal,         ///< a bug in Fovea
};

/// Returns the name of a code as text, for example "corrupt_data".
[[nodiscard]] FOVEA_API const char* to_string(ErrorCode code) noexcept;

/// Most bytes of a message: names that come from a file may have any length.
inline constexpr std::size_t kMaxMessageBytes = 4096;

/// The text, or its beginning and its end with "..." between them if it has more than `max_bytes`
/// bytes. Cuts between characters of UTF-8.
[[nodiscard]] FOVEA_API std::string shortened(std::string_view text, std::size_t max_bytes);

/// All that functions of Fovea throw (docs/cpp_api.md). Its message has at most kMaxMessageBytes.
class FOVEA_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string_view message)
      : std::runtime_error(shortened(message, kMaxMessageBytes)), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace fovea
