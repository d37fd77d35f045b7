#include "serve/http/exchange.h"

#include <exception>
#include <utility>

#include "serve/http/message.h"

namespace fovea::serve {

Exchange::Exchange(Request request, Send send)
    : request_(std::move(request)), send_(std::move(send)) {}

Exchange::~Exchange() {
  if (replied_) return;
  try {
    throw ApiError(500, "internal", "the request was dropped");
  } catch (...) {
    fail();
  }
}

void Exchange::reply(Reply reply) noexcept {
  if (!replied_.exchange(true)) send_(std::move(reply));
}

void Exchange::fail() noexcept {
  constexpr int kUnavailable = 503;
  try {
    reply(error_reply(current_api_error(), request_));
  } catch (const std::exception&) {  // std::bad_alloc, or what the library makes of it
    reply({.status = kUnavailable});
  }
}

void Exchange::leave() noexcept { gone_.request_stop(); }

}  // namespace fovea::serve
