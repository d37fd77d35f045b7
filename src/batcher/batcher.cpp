// The public face of the scheduler: what a request weighs, and who refuses it.
#include "fovea/batcher.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "batcher/scheduler.h"
#include "core/boundary.h"
#include "core/check.h"
#include "core/interrupt.h"

namespace fovea {

namespace {

using batching::Load;
using batching::Request;

/// With numbers in place of 0.
BatcherOptions complete(BatcherOptions options, const Engine& engine) {
  constexpr std::int64_t kRowsWithoutGraphs = 8192;
  constexpr std::int64_t kItemsWithoutGraphs = 64;
  FOVEA_CHECK(options.max_items >= 1 && options.max_bytes >= 1 && options.max_rows >= 1,
              kInvalidArgument, "a batcher has room for at least 1 item, byte and row, got ",
              options.max_items, ", ", options.max_bytes, " and ", options.max_rows);
  FOVEA_CHECK(options.max_batch_items >= 0 && options.max_batch_rows >= 0, kInvalidArgument,
              "a batch has at least 1 item and row, got ", options.max_batch_items, " and ",
              options.max_batch_rows);
  constexpr std::chrono::hours kLongest{24 * 365};
  FOVEA_CHECK(options.max_delay.count() >= 0 && options.max_delay <= kLongest, kInvalidArgument,
              "the delay of a batch must be in [0 us, a year], got ", options.max_delay.count(),
              " us");
  const PackingPlan graphs = engine.plan({});
  std::int64_t largest = 0;
  for (const std::vector<std::int64_t>& budgets : graphs.token_budgets) {
    for (const std::int64_t budget : budgets) largest = std::max(largest, budget);
  }
  const auto fill_in = [](std::int64_t& bound, std::int64_t of_graphs, std::int64_t otherwise) {
    if (bound == 0) bound = of_graphs > 0 ? of_graphs : otherwise;
  };
  fill_in(options.max_batch_rows, largest, kRowsWithoutGraphs);
  fill_in(options.max_batch_items, graphs.max_items_per_batch, kItemsWithoutGraphs);
  return options;
}

bool is_container(const MediaItem& item) noexcept {
  const bool is_encoded = std::holds_alternative<EncodedFile>(item.source) ||
                          std::holds_alternative<EncodedBytes>(item.source);
  return item.modality == Modality::kVideo && is_encoded;
}

/// What the request takes without its rows.
Load load_of(std::span<const MediaItem> items) noexcept {
  Load load{.items = std::ssize(items)};
  for (const MediaItem& item : items) load.bytes += static_cast<std::int64_t>(item.num_bytes());
  return load;
}

/// Adds rows to others, as far as 64 bits count them. @param rows as callers say: any number.
void add_rows(std::int64_t rows, std::int64_t& sum) noexcept {
  sum += std::clamp<std::int64_t>(rows, 0, std::numeric_limits<std::int64_t>::max() - sum);
}

/// The load of a request. Rows of a video in a container, which no header tells, count as more than
/// a batch has, so that no other waits for it, but keep no request out for good; those of what the
/// engine will refuse as none.
Load load_of(std::span<const PlannedItem> items, const BatcherOptions& options) {
  Load load{.items = std::ssize(items)};
  std::int64_t unknown = 0;
  for (const PlannedItem& item : items) {
    load.bytes += static_cast<std::int64_t>(item.media().num_bytes());
    if (const std::optional<std::int64_t> rows = item.rows()) {
      add_rows(*rows, load.rows);
    } else if (is_container(item.media())) {
      add_rows(options.max_batch_rows, unknown);
      add_rows(1, unknown);
    }
  }
  add_rows(std::min(unknown, options.max_rows - load.rows), load.rows);
  return load;
}

/// @throws Error(kInvalidArgument) for what Batcher::submit refuses whatever room there is.
void check_request(bool has_items, const EncodeOptions& how, const Batcher::Done& done) {
  FOVEA_CHECK(has_items, kInvalidArgument, "a request without items");
  FOVEA_CHECK(!how.progress, kInvalidArgument, "a request has no progress of its own");
  FOVEA_CHECK(how.copies.empty(), kInvalidArgument,
              "a request has no destinations, and no copies of them");
  FOVEA_CHECK(done != nullptr, kInvalidArgument, "a request without a callback");
}

/// Keeps the promise of a request.
Batcher::Done keep(std::shared_ptr<std::promise<std::vector<Embedding>>> promise) {
  return [promise = std::move(promise)](BatchReply reply) {
    if (reply.error) {
      promise->set_exception(std::make_exception_ptr(*reply.error));
    } else {
      promise->set_value(std::move(reply.items));
    }
  };
}

}  // namespace

struct Batcher::Impl {
  Impl(Engine& of, const BatcherOptions& bounds)
      : engine(of),
        options(complete(bounds, of)),
        scheduler([this](std::span<const PlannedItem> items,
                         const EncodeOptions& how) { return engine.encode(items, how); },
                  options) {}

  /// Plans the items, if there is room for them.
  Ticket submit(std::vector<MediaItem> items, const EncodeOptions& how, Done done);
  Ticket submit(std::vector<PlannedItem> items, const EncodeOptions& how, Done done);

  Engine& engine;
  const BatcherOptions options;
  batching::Scheduler scheduler;
};

Ticket Batcher::Impl::submit(std::vector<MediaItem> items, const EncodeOptions& how, Done done) {
  check_request(!items.empty(), how, done);
  scheduler.check_room(load_of(items));  // before files are read
  return submit(engine.plan_items(std::move(items)), how, std::move(done));
}

Ticket Batcher::Impl::submit(std::vector<PlannedItem> items, const EncodeOptions& how, Done done) {
  check_request(!items.empty(), how, done);
  auto request = std::make_shared<Request>();
  request->load = load_of(items, options);
  request->items = std::move(items);
  request->how = how;
  request->done = std::move(done);
  const Ticket ticket = scheduler.submit(request);
  request->on_stop.emplace(how.bounds.stop, [this, ticket] { (void)scheduler.cancel(ticket); });
  return ticket;
}

Batcher::Batcher(Engine& engine, const BatcherOptions& options) try
    : impl_(std::make_unique<Impl>(engine, options)) {
} catch (...) {
  rethrow_as_error();
}

Batcher::Batcher(Batcher&&) noexcept = default;
Batcher& Batcher::operator=(Batcher&&) noexcept = default;
Batcher::~Batcher() = default;

Ticket Batcher::submit(std::vector<MediaItem> items, const EncodeOptions& options, Done done) try {
  return impl_->submit(std::move(items), options, std::move(done));
} catch (...) {
  impl_->scheduler.count_refused();
  rethrow_as_error();
}

Ticket Batcher::submit(std::vector<PlannedItem> items, const EncodeOptions& options,
                       Done done) try {
  return impl_->submit(std::move(items), options, std::move(done));
} catch (...) {
  impl_->scheduler.count_refused();
  rethrow_as_error();
}

Batcher::Pending Batcher::submit(std::vector<MediaItem> items, const EncodeOptions& options) try {
  auto promise = std::make_shared<std::promise<std::vector<Embedding>>>();
  std::future<std::vector<Embedding>> rows = promise->get_future();
  return {submit(std::move(items), options, keep(std::move(promise))), std::move(rows)};
} catch (...) {
  rethrow_as_error();
}

Batcher::Pending Batcher::submit(std::vector<PlannedItem> items, const EncodeOptions& options) try {
  auto promise = std::make_shared<std::promise<std::vector<Embedding>>>();
  std::future<std::vector<Embedding>> rows = promise->get_future();
  return {submit(std::move(items), options, keep(std::move(promise))), std::move(rows)};
} catch (...) {
  rethrow_as_error();
}

bool Batcher::cancel(Ticket ticket) { return impl_->scheduler.cancel(ticket); }

void Batcher::drain(const CallBounds& bounds) try {
  const Interrupt interrupt(bounds.stop, bounds.deadline, "drain", current_interrupt());
  const InterruptScope scope(&interrupt);
  impl_->scheduler.drain();
} catch (...) {
  rethrow_as_error();
}

void Batcher::stop() noexcept { impl_->scheduler.stop(); }

BatcherStats Batcher::stats() const noexcept { return impl_->scheduler.stats(); }

const BatcherOptions& Batcher::options() const noexcept { return impl_->options; }

}  // namespace fovea
