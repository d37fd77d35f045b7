#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fovea/error.h"

namespace fovea {
struct MediaItem;
struct MediaOptions;
}  // namespace fovea

namespace fovea::serve {

/// A failure as a client sees it: a status, a code that programs compare, a message for people. It
/// names neither paths of the server nor addresses inside its network.
class ApiError : public std::runtime_error {
 public:
  /// @param param what of the request is wrong, for example "items[2].image"; empty: all of it.
  ApiError(int status, std::string code, const std::string& message, std::string param = {})
      : std::runtime_error(message),
        status_(status),
        code_(std::move(code)),
        param_(std::move(param)) {}

  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] const std::string& code() const noexcept { return code_; }
  [[nodiscard]] const std::string& param() const noexcept { return param_; }
  /// Whole seconds after which to try again, for Retry-After; set with 429 and 503.
  std::optional<int> retry_after_s;
  /// More for the log: the reason with its paths; never sent.
  std::string detail;

 private:
  int status_;
  std::string code_;
  std::string param_;
};

/// A request that is no HTTP as this server reads it.
[[nodiscard]] ApiError malformed(const std::string& message);

/// @throws ApiError(400, code) with both in the message.
[[noreturn]] void refuse(const std::string& param, const std::string& why,
                         const char* code = "invalid_value");

/// An error of the library as clients see it. @param param as in ApiError: the item, if it is
/// one's. Source: docs/serving.md, "Errors".
[[nodiscard]] ApiError to_api_error(const Error& error, std::string param = {});

/// The error of an item of a request, as clients see it: with the code of the limit that an image
/// breaks, as far as its header shows. @param options those of the engine.
/// Source: docs/serving.md, "Errors".
[[nodiscard]] ApiError item_error(const Error& error, const MediaItem& item,
                                  const MediaOptions& options);

/// The current exception as an ApiError, whatever it is. Call from a catch block.
[[nodiscard]] ApiError current_api_error();

}  // namespace fovea::serve
