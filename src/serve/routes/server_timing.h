#pragma once

#include <string>

#include "serve/http/message.h"
#include "serve/service/service.h"

namespace fovea::serve {

/// The value of the header Server-Timing: milliseconds of `fetch`, `decode`, `prep` (resizing and
/// packing), `queue`, `encode` and `total`. Those of stages are sums over the items, which overlap.
/// Source: W3C, Server Timing.
[[nodiscard]] std::string server_timing(double fetch_ms, const JobReply& reply,
                                        Clock::time_point arrival);

}  // namespace fovea::serve
