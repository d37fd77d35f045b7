#pragma once

#include <stdexcept>
#include <string>

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

/// The only exception type Fovea throws.
class FOVEA_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace fovea
