#pragma once

#include <chrono>
#include <string>

#include "serve/http/rate_floor.h"
#include "serve/http/stream.h"
#include "serve/http/turn.h"

namespace fovea::serve {

/// How slowly a client may take a reply.
struct ReplyPace {
  std::chrono::milliseconds idle_timeout{0};
  RateFloor floor;
};

/// Sends `head` and then the body of turn.reply, if it is to have one. Copies nothing, and lets go
/// of each part once it has been sent. Counts turn.bytes_out. All must outlive the coroutine.
/// @throws ApiError(408, "slow_reader") if the client takes the reply too slowly, ClientLeft.
[[nodiscard]] Awaitable<void> write_reply(Stream& stream, ReplyPace pace, std::string head,
                                          Turn& turn);

}  // namespace fovea::serve
