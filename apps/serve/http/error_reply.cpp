#include "serve/http/error_reply.h"

#include <string>

#include "core/json_writer.h"
#include "fovea/text.h"

namespace fovea::serve {

std::string_view error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404:
    case 405: return "not_found_error";
    case 408:
    case 504: return "timeout_error";
    case 422: return "unprocessable_media_error";
    case 429: return "overloaded_error";
    case 502: return "upstream_error";
    case 503: return "unavailable_error";
    default: return status < 500 ? "invalid_request_error" : "internal_error";
  }
}

/// Written by hand: the end of a JSON object of the library takes memory, and this is what a
/// request gets for which there was none.
Reply error_reply(const ApiError& error, const RequestHead& head) {
  const std::string message = printable(error.what());
  const std::string param = printable(error.param());
  std::string text = "{\"error\":";
  if (head.path.starts_with("/v2/") && head.path != "/v2/embed") {
    text += json_quote(error.code() + ": " + message);
  } else {
    text += "{\"message\":" + json_quote(message);
    text += ",\"type\":" + json_quote(error_type(error.status()));
    text += ",\"param\":" + (param.empty() ? "null" : json_quote(param));
    text += ",\"code\":" + json_quote(error.code());
    text += ",\"request_id\":" + json_quote(head.id) + "}";
  }
  Reply reply = text_reply(error.status(), "application/json", text + "}");
  reply.error_code = error.code();
  reply.error_detail = error.detail;
  if (error.retry_after_s) {
    reply.headers.push_back({"Retry-After", std::to_string(*error.retry_after_s)});
  }
  return reply;
}

}  // namespace fovea::serve
