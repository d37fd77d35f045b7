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
#include "serve/rows/item_json.h"
#include "serve/tracing/tracer.h"

namespace fovea::serve {
namespace {

/// A call with what takes its rows.
struct SharedCall {
  EncodeCall call;
  TakeRows take;
};

void hand_on(const TakeRows& take, double fetch_ms, Clock::time_point arrival, JobReply reply) {
  if (reply.error) std::rethrow_exception(reply.error);
  Headers headers = encoding_headers(reply, fetch_ms, arrival);
  take(std::move(reply), std::move(headers));
}

/// What the span of a batch says of this request.
Attributes batch_attributes(const JobReply& reply) {
  Attributes attributes{{"fovea.items", static_cast<std::int64_t>(reply.items.size())},
                        {"fovea.rows", count_rows(reply.items)},
                        {"fovea.batch.items", reply.batch_items}};
  const StageTimes times = total(reply.items);
  for (const Stage& stage : kStages) {
    attributes.emplace_back("fovea.stage." + std::string(stage.name) + "_ms", times.*stage.ms);
  }
  return attributes;
}

/// Ends a stage of a request that is traced.
void end_stage(const Exchange& exchange, const char* name, Attributes attributes = {}) {
  const std::shared_ptr<RequestTrace>& trace = exchange.request().trace;
  if (trace) trace->end_stage(name, Clock::now(), std::move(attributes));
}

void trace_batch(const Exchange& exchange, const JobReply& reply) {
  const std::shared_ptr<RequestTrace>& trace = exchange.request().trace;
  if (!trace) return;
  trace->end_batch(reply.batch, reply.queue_ms, reply.run_ms, batch_attributes(reply));
}

void encode(Service& service, const std::shared_ptr<Exchange>& exchange,
            const std::shared_ptr<SharedCall>& shared, const CallBounds& bounds,
            ResolvedMedia media) {
  const EncodeCall* const call = &shared->call;
  Job job;
  job.items = service.plan(std::move(media.items), bounds);
  if (call->look) call->look(job.items);
  job.use_cache = call->use_cache;
  job.dtype = call->dtype;
  job.reply_factor = call->reply_factor;
  job.bounds = bounds;
  const double fetch_ms = media.counts.fetch_ms;
  end_stage(*exchange, "plan");
  service.encode(std::move(job), [exchange, shared, fetch_ms](JobReply reply) {
    try {
      trace_batch(*exchange, reply);
      hand_on(shared->take, fetch_ms, exchange->request().arrival, std::move(reply));
    } catch (...) {
      exchange->fail();
    }
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
  auto make_reply = std::move(call.make_reply);
  encode_and_hand_on(encoder, exchange, std::move(call),
                     [exchange, make_reply = std::move(make_reply)](JobReply reply, Headers about) {
                       Reply made = make_reply(std::move(reply));
                       std::ranges::move(about, std::back_inserter(made.headers));
                       exchange->reply(std::move(made));
                     });
}

void encode_and_hand_on(const Encoder& encoder, const std::shared_ptr<Exchange>& exchange,
                        EncodeCall call, TakeRows take) {
  check_item_count(call.media.size(), encoder.limits.max_items);
  const CallBounds bounds{.stop = exchange->gone(),
                          .deadline = std::min(exchange->request().deadline, call.deadline)};
  const auto shared =
      std::make_shared<SharedCall>(SharedCall{.call = std::move(call), .take = std::move(take)});
  end_stage(*exchange, "parse");
  const SharedJson json = std::move(shared->call.json);  // until the media have been read out of it
  encoder.media.resolve(
      std::move(shared->call.media), bounds, client_name(exchange->request()),
      [&service = encoder.service, exchange, shared, bounds](ResolvedMedia media,
                                                             const std::exception_ptr& error) {
        try {
          if (media.counts.fetch_ms > 0) {
            end_stage(*exchange, "fetch", {{"fovea.media.bytes", media.counts.http_bytes}});
          }
          if (error) std::rethrow_exception(error);
          encode(service, exchange, shared, bounds, std::move(media));
        } catch (...) {
          exchange->fail();
        }
      });
}

Route work_route(const Encoder& encoder, std::string pattern, RouteText text, ReadCall read) {
  return {.method = "POST",
          .pattern = std::move(pattern),
          .kind = RouteKind::kWork,
          .handler =
              [encoder, read = std::move(read)](const std::shared_ptr<Exchange>& exchange,
                                                const PathArguments& names) {
                encode_and_reply(encoder, exchange, read(encoder, exchange->request(), names));
              },
          .text = std::move(text)};
}

std::int64_t unix_seconds() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch())
      .count();
}

}  // namespace fovea::serve
