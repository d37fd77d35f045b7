#pragma once

#include <string_view>

#include "serve/api_error.h"
#include "serve/http/message.h"

namespace fovea::serve {

/// The `type` of errors with this status, for example "invalid_request_error".
[[nodiscard]] std::string_view error_type(int status);

/// The reply with this error: {"error": {message, type, param, code, request_id}}, for paths of
/// KServe v2 {"error": "code: message"}. What it quotes of a client is printable().
[[nodiscard]] Reply error_reply(const ApiError& error, const RequestHead& head);

}  // namespace fovea::serve
