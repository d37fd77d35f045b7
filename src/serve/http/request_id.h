#pragma once

#include <random>
#include <string>
#include <string_view>

namespace fovea::serve {

/// Whether a client's X-Request-Id is taken: 1 to 128 visible ASCII characters.
[[nodiscard]] bool is_request_id(std::string_view text);

/// Makes ids for requests without one: "fov-" and 32 hexadecimal digits. They are not secret. Not
/// thread-safe.
class RequestIds {
 public:
  RequestIds();
  [[nodiscard]] std::string next();

 private:
  std::mt19937_64 random_;
};

}  // namespace fovea::serve
