#include "serve/api_error.h"

#include <new>
#include <utility>

namespace fovea::serve {

ApiError malformed(const std::string& message) { return {400, "invalid_request", message}; }

void refuse(const std::string& param, const std::string& why) {
  throw ApiError(400, "invalid_value", param + ": " + why, param);
}

namespace {

/// A failure of the server itself, whose reason names its files.
ApiError internal_error(const std::string& reason, std::string param = {}) {
  ApiError error(500, "internal", "the server has failed; its log says why, under the request id",
                 std::move(param));
  error.detail = reason;
  return error;
}

}  // namespace

ApiError to_api_error(const Error& error, std::string param) {
  const std::string message = error.what();
  const auto made = [&](int status, const char* code) {
    return ApiError(status, code, message, std::move(param));
  };
  switch (error.code()) {
    case ErrorCode::kInvalidArgument: return made(400, "invalid_value");
    case ErrorCode::kCorruptData: return made(422, "decode_failed");
    case ErrorCode::kNotFound: return made(404, "not_found");
    case ErrorCode::kUnsupported: return made(422, "unsupported_media");
    case ErrorCode::kOutOfMemory: return made(500, "out_of_memory");
    case ErrorCode::kUnavailable: {
      ApiError busy = made(429, "queue_full");
      busy.retry_after_s = 1;
      return busy;
    }
    case ErrorCode::kDevice: return made(500, "device_error");
    case ErrorCode::kCancelled: return made(499, "client_closed_request");
    case ErrorCode::kDeadline: return made(504, "deadline_exceeded");
    case ErrorCode::kIo:
    case ErrorCode::kInternal: break;
  }
  return internal_error(message, std::move(param));
}

ApiError current_api_error() {
  try {
    throw;
  } catch (const ApiError& error) {
    return error;
  } catch (const Error& error) {
    return to_api_error(error);
  } catch (const std::bad_alloc&) {
    ApiError error(503, "out_of_memory", "the server is out of memory");
    error.retry_after_s = 1;
    return error;
  } catch (const std::exception& error) {
    return internal_error(error.what());
  }
}

}  // namespace fovea::serve
