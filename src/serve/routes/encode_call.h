#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "serve/http/exchange.h"
#include "serve/http/router.h"
#include "serve/media/media_source.h"
#include "serve/routes/call_limits.h"
#include "serve/service/service.h"
#include "serve/text/json.h"

namespace fovea::serve {

/// The parts of a server that routes encode with, which outlive all requests, and their bounds.
struct Encoder {
  Service& service;
  MediaSource& media;
  CallLimits limits = {};
};

/// The media to encode for a request, and how to answer it.
struct EncodeCall {
  std::vector<MediaReference> media;
  SharedJson json;  ///< what the media refer to; may be null
  RowDType dtype = RowDType::kFloat32;
  double reply_factor = 1;  ///< as Job has it
  bool use_cache = true;
  /// The deadline of the client, if that is earlier than that of the request.
  Clock::time_point deadline = Clock::time_point::max();
  /// Sees the items before they are encoded; may be empty.
  std::function<void(std::span<const PlannedItem> items)> look;
  /// Makes the reply, on a worker thread; what it throws is the reply.
  std::function<Reply(JobReply reply)> make_reply = {};
};

/// Takes rows and the headers that say how they were encoded, on a worker thread; what it throws is
/// the reply.
using TakeRows = std::function<void(JobReply reply, Headers headers)>;

/// Runs `make_reply` and sends what it returns or throws.
void send_reply(Exchange& exchange, const std::function<Reply()>& make_reply) noexcept;

/// Gets the media, encodes them and answers the request; returns at once if they have to be
/// fetched. The work ends when the client leaves, and at the deadline of the request. Replies get
/// the headers X-Fovea-Rows, X-Fovea-Cache, X-Fovea-Graph and Server-Timing.
/// @throws ApiError(400, "too_many_items"), and what MediaSource::resolve() throws.
void encode_and_reply(const Encoder& encoder, const std::shared_ptr<Exchange>& exchange,
                      EncodeCall call);

/// The same, but for the reply: `take` gets the rows, and sees to it. `call.make_reply` is not
/// asked.
void encode_and_hand_on(const Encoder& encoder, const std::shared_ptr<Exchange>& exchange,
                        EncodeCall call, TakeRows take);

/// Reads a request to encode; what it throws is the reply.
using ReadCall = std::function<EncodeCall(const Encoder& encoder, const Request& request,
                                          const PathArguments& names)>;
/// A POST route that encodes what `read` says.
[[nodiscard]] Route work_route(const Encoder& encoder, std::string pattern, RouteText text,
                               ReadCall read);

/// Seconds since 1970, for the member `created` of replies.
[[nodiscard]] std::int64_t unix_seconds();

}  // namespace fovea::serve
