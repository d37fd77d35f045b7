#include "serve/http/exchange.h"

#include <utility>

#include "serve/http/error_reply.h"

namespace fovea::serve {

Exchange::Exchange(Request request, Send send)
    : request_(std::move(request)), send_(std::move(send)) {}

Exchange::~Exchange() {
  if (!replied_) reply(error_reply(ApiError(500, "internal", "the request was dropped"), request_));
}

void Exchange::reply(Reply reply) noexcept {
  if (!replied_.exchange(true)) send_(std::move(reply));
}

void Exchange::leave() noexcept { gone_.request_stop(); }

}  // namespace fovea::serve
