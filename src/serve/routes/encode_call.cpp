#include "serve/routes/encode_call.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <string>
#include <utility>

#include "serve/api_error.h"
#include "serve/http/connections.h"
#include "serve/routes/reply_headers.h"

namespace fovea::serve {
namespace {

Reply reply_of(const EncodeCall& call, double fetch_ms, Clock::time_point arrival, JobReply reply) {
  if (reply.error) std::rethrow_exception(reply.error);
  Headers headers = encoding_headers(reply, fetch_ms, arrival);
  Reply made = call.make_reply(std::move(reply));
  std::ranges::move(headers, std::back_inserter(made.headers));
  return made;
}

void encode(Service& service, const std::shared_ptr<Exchange>& exchange,
            const std::shared_ptr<EncodeCall>& call, const CallBounds& bounds,
            ResolvedMedia media) {
  Job job;
  job.items = service.plan(std::move(media.items), bounds);
  if (call->look) call->look(job.items);
  job.use_cache = call->use_cache;
  job.dtype = call->dtype;
  job.reply_factor = call->reply_factor;
  job.bounds = bounds;
  const double fetch_ms = media.counts.fetch_ms;
  service.encode(std::move(job), [exchange, call, fetch_ms](JobReply reply) {
    send_reply(*exchange, [&] {
      return reply_of(*call, fetch_ms, exchange->request().arrival, std::move(reply));
    });
  });
}

}  // namespace

void send_reply(Exchange& exchange, const std::function<Reply()>& make_reply) noexcept {
  try {
    exchange.reply(make_reply());
  } catch (...) {
    exchange.fail();
  }
}

void encode_and_reply(const Encoder& encoder, const std::shared_ptr<Exchange>& exchange,
                      EncodeCall call) {
  check_item_count(call.media.size(), encoder.limits.max_items);
  const CallBounds bounds{.stop = exchange->gone(),
                          .deadline = std::min(exchange->request().deadline, call.deadline)};
  const auto shared = std::make_shared<EncodeCall>(std::move(call));
  const SharedJson json = std::move(shared->json);  // until the media have been read out of it
  encoder.media.resolve(std::move(shared->media), bounds, client_name(exchange->request()),
                        [&service = encoder.service, exchange, shared, bounds](
                            ResolvedMedia media, const std::exception_ptr& error) {
                          try {
                            if (error) std::rethrow_exception(error);
                            encode(service, exchange, shared, bounds, std::move(media));
                          } catch (...) {
                            exchange->fail();
                          }
                        });
}

Route work_route(const Encoder& encoder, std::string pattern, ReadCall read) {
  return {.method = "POST",
          .pattern = std::move(pattern),
          .kind = RouteKind::kWork,
          .handler = [encoder, read = std::move(read)](const std::shared_ptr<Exchange>& exchange,
                                                       const PathArguments& names) {
            encode_and_reply(encoder, exchange, read(encoder, exchange->request(), names));
          }};
}

std::int64_t unix_seconds() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch())
      .count();
}

}  // namespace fovea::serve
