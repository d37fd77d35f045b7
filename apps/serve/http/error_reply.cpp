#include "serve/http/error_reply.h"

#include <nlohmann/json.hpp>
#include <string>

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
  nlohmann::ordered_json body;
  if (head.path.starts_with("/v2/") && head.path != "/v2/embed") {
    body["error"] = error.code() + ": " + message;
  } else {
    nlohmann::ordered_json& fields = body["error"];
    fields["message"] = message;
    fields["type"] = error_type(error.status());
    fields["param"] = param.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(param);
    fields["code"] = error.code();
    fields["request_id"] = head.id;
  }
  Reply reply = text_reply(error.status(), "application/json",
                           body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  reply.error_code = error.code();
  reply.error_detail = error.detail;
  if (error.retry_after_s) {
    reply.headers.push_back({"Retry-After", std::to_string(*error.retry_after_s)});
  }
  return reply;
}

}  // namespace fovea::serve
