#include "serve/http/error_reply.h"

#include <optional>
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

Reply error_reply(const ApiError& error, const RequestHead& head) {
  const std::string message = printable(error.what());
  const std::string param = printable(error.param());
  JsonObject json;
  if (head.path.starts_with("/v2/") && head.path != "/v2/embed") {
    json.set("error", error.code() + ": " + message);
  } else {
    json.set("error", JsonObject{{"message", message},
                                 {"type", error_type(error.status())},
                                 {"param", param.empty() ? std::nullopt : std::optional(param)},
                                 {"code", error.code()},
                                 {"request_id", head.id}});
  }
  Reply reply = text_reply(error.status(), "application/json", to_json_text(json));
  reply.error_code = error.code();
  reply.error_detail = error.detail;
  if (error.retry_after_s) {
    reply.headers.push_back({"Retry-After", std::to_string(*error.retry_after_s)});
  }
  return reply;
}

}  // namespace fovea::serve
