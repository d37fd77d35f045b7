// The encoder behind the routes.
#include "serve/service/service.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "core/sha256.h"
#include "fovea/option_table.h"
#include "fovea/option_text.h"
#include "serve/api_error.h"
#include "serve/service/job_count.h"
#include "serve/service/reply_room.h"
#include "serve/service/self_check.h"
#include "serve/service/workers.h"

namespace fovea::serve {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

/// Threads that parse bodies and write replies. Decoding and towers have threads of their own.
int worker_count() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 2U, 8U));
}

std::int64_t size_of(RowDType dtype) { return dtype == RowDType::kFloat32 ? 4 : 2; }

/// The dtype that most weights have, which is what the language model beside it computes in.
RowDType checkpoint_dtype(const ModelReport& report) {
  std::int64_t bf16 = 0;
  std::int64_t f16 = 0;
  std::int64_t other = 0;
  for (const TensorReport& tensor : report.tensors) {
    const std::int64_t elements = std::accumulate(tensor.shape.begin(), tensor.shape.end(),
                                                  std::int64_t{1}, std::multiplies<>());
    (tensor.dtype == "BF16" ? bf16 : tensor.dtype == "F16" ? f16 : other) += elements;
  }
  if (bf16 >= f16 && bf16 >= other) return RowDType::kBFloat16;
  return f16 >= other ? RowDType::kFloat16 : RowDType::kFloat32;
}

ApiError unavailable(const char* code, const std::string& message) {
  ApiError error(503, code, message);
  error.retry_after_s = 1;
  return error;
}

}  // namespace

const char* to_string(ServiceState state) {
  switch (state) {
    case ServiceState::kStarting: return "starting";
    case ServiceState::kReady: return "ready";
    case ServiceState::kBusy: return "busy";
    case ServiceState::kDraining: return "draining";
    case ServiceState::kUnhealthy: return "unhealthy";
  }
  return "unhealthy";
}

std::string row_fingerprint(const std::string& tower, const EngineOptions& options) {
  if (tower.empty()) return "";
  std::string text = "fovea-rows-v2;" + tower;
  for (const auto& [name, value] :
       option_texts(options, {RowEffect::kMedia, RowEffect::kAfterTower})) {
    text.append(";").append(name).append("=").append(value);
  }
  return sha256_hex(text);
}

struct Service::Impl {
  explicit Impl(ServiceOptions given)
      : options(std::move(given)),
        memory(static_cast<std::size_t>(options.max_inflight_bytes)),
        workers(worker_count()),
        self_check([this](const std::stop_token& stop) { encode_small_image(stop); }),
        loader([this](const std::stop_token& stop) {
          load(stop);
          watch(stop);
        }) {}

  void load(const std::stop_token& stop) noexcept;
  void watch(const std::stop_token& stop) noexcept;
  [[nodiscard]] bool is_loaded() const { return loaded.load(std::memory_order_acquire); }
  /// Whether there is work and nothing of it has moved for the stall timeout.
  [[nodiscard]] bool is_stalled() const { return is_older(&BatcherStats::last_movement); }
  /// Whether there is work and no batch has ended for that time.
  [[nodiscard]] bool is_busy() const { return is_older(&BatcherStats::last_progress); }
  [[nodiscard]] bool is_older(SteadyTime BatcherStats::*sign) const;
  void throw_unless_ready() const;
  void encode_small_image(const std::stop_token& stop);
  [[nodiscard]] std::shared_ptr<void> take_memory(std::size_t bytes);
  [[nodiscard]] std::shared_ptr<ReplyRoom> take_room(const Job& job);
  [[nodiscard]] ApiError no_room(const ReplyRoom& room) const;
  [[nodiscard]] ApiError batch_error(const Error& error) const;
  [[nodiscard]] JobReply reply_of(BatchReply batch, std::span<const PlannedItem> items) const;
  [[nodiscard]] int retry_after_s() const;

  const ServiceOptions options;
  Budget memory;

  // Written by the loader before `loaded`.
  std::optional<Engine> engine;
  std::optional<Batcher> batcher;
  ServedModel model;
  std::atomic<bool> loaded = false;

  mutable std::mutex mutex;  // guards what follows, up to the flags
  mutable std::condition_variable loading_ended;
  std::condition_variable_any ends;  // wakes the watch for its end
  bool has_ended = false;
  std::string problem;
  std::shared_ptr<const Stats> engine_stats;

  std::atomic<bool> failed = false;
  std::atomic<bool> ending = false;    // readiness has fallen
  std::atomic<bool> draining = false;  // and no work is taken
  JobCount jobs;                       // accepted and not complete
  Workers workers;                     // callbacks of the batcher use it
  SelfCheck self_check;
  std::jthread loader;  // loads, then watches
};

void Service::Impl::load(const std::stop_token& stop) noexcept {
  std::string why;
  try {
    const SteadyTime start = std::chrono::steady_clock::now();
    EngineOptions with = options.engine;
    std::int64_t& most_patches = with.media.limits.max_patches_at_once;
    if (most_patches == 0) {
      most_patches = std::min(MediaLimits{}.max_patches_at_once,
                              largest_item_patches(options.model, with, {.stop = stop}));
    }
    model.media = with.media;
    engine.emplace(Engine::load(options.model, with, {.stop = stop}));
    if (options.lends_rows) (void)engine->lend_rows({});
    batcher.emplace(*engine, options.batcher);
    model.report = engine->report();
    model.dtype = checkpoint_dtype(model.report);
    model.device = engine->device();
    model.fingerprint = row_fingerprint(engine->fingerprint(), options.engine);
    const auto stats = std::make_shared<const Stats>(engine->stats());
    for (const PathStats& path : stats->paths) {
      model.token_budgets.emplace_back(path.name, path.token_budgets);
    }
    const std::lock_guard lock(mutex);
    engine_stats = stats;
    model.load_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    loaded.store(true, std::memory_order_release);
  } catch (const std::exception& error) {
    why = error.what();
    failed = true;
  }
  const std::lock_guard lock(mutex);
  problem = std::move(why);
  has_ended = true;
  loading_ended.notify_all();
}

/// Keeps the counters of the engine fresh for those who must not wait for them.
void Service::Impl::watch(const std::stop_token& stop) noexcept {
  constexpr std::chrono::milliseconds kInterval(500);
  std::unique_lock lock(mutex);
  while (is_loaded() && !ends.wait_for(lock, stop, kInterval, [] { return false; }) &&
         !stop.stop_requested()) {
    lock.unlock();
    std::shared_ptr<const Stats> fresh;
    try {
      fresh = std::make_shared<const Stats>(engine->stats());
    } catch (const std::exception&) {
      // No memory for a copy: the old one stays.
    }
    lock.lock();
    if (fresh) engine_stats = std::move(fresh);
  }
}

bool Service::Impl::is_older(SteadyTime BatcherStats::*sign) const {
  const std::optional<SteadyTime> busy_since = jobs.busy_since();
  if (!is_loaded() || !busy_since) return false;
  const SteadyTime last = std::max(*busy_since, batcher->stats().*sign);
  return std::chrono::steady_clock::now() - last > options.stall_timeout;
}

void Service::Impl::throw_unless_ready() const {
  if (draining) throw unavailable("draining", "the server is shutting down");
  if (is_stalled()) throw unavailable("unhealthy", "nothing has moved for a long time");
  if (is_loaded()) return;
  if (failed) throw unavailable("unhealthy", "the model could not be loaded");
  throw unavailable("starting", "the model is being loaded; /readyz says when it is");
}

/// 32 x 32 pixels of one grey: small, and for every family large enough. They go to the engine
/// itself, which puts small calls before what is left of large ones.
void Service::Impl::encode_small_image(const std::stop_token& stop) {
  constexpr std::int64_t kSide = 32;
  constexpr std::uint8_t kGrey = 128;
  const MediaItem item =
      image_rgb(std::vector<std::uint8_t>(3 * kSide * kSide, kGrey), kSide, kSide, "health");
  (void)engine->encode(std::span(&item, 1), {.use_cache = false, .bounds = {.stop = stop}});
}

std::shared_ptr<void> Service::Impl::take_memory(std::size_t bytes) {
  std::optional<Budget::Ticket> ticket = memory.try_take(bytes);
  return ticket ? std::make_shared<Budget::Ticket>(*std::move(ticket)) : nullptr;
}

std::shared_ptr<ReplyRoom> Service::Impl::take_room(const Job& job) {
  const std::int64_t row_bytes = model.report.width * size_of(job.dtype);
  auto room = std::make_shared<ReplyRoom>(
      memory, static_cast<double>(row_bytes) * (1 + job.reply_factor), job.items);
  if (room->is_refused()) throw no_room(*room);
  return room;
}

ApiError Service::Impl::no_room(const ReplyRoom& room) const {
  if (room.wanted() > memory.capacity()) {
    return {400, "response_too_large",
            "the rows of this request need " + std::to_string(room.wanted()) + " bytes, and " +
                std::to_string(memory.capacity()) + " are allowed in all (--max-inflight-bytes)"};
  }
  ApiError full(429, "queue_full", "there is no room for the reply now (--max-inflight-bytes)");
  full.retry_after_s = retry_after_s();
  return full;
}

/// What cancels a batch while the server drains is the server, not its client.
ApiError Service::Impl::batch_error(const Error& error) const {
  if (draining && error.code() == ErrorCode::kCancelled) {
    return unavailable("draining", "the server has shut down before the request was done");
  }
  return to_api_error(error);
}

/// The first item that failed fails them all.
JobReply Service::Impl::reply_of(BatchReply batch, std::span<const PlannedItem> items) const {
  JobReply reply{.items = {},
                 .queue_ms = batch.queue_ms,
                 .run_ms = batch.run_ms,
                 .batch_items = batch.batch_items,
                 .batch = batch.batch,
                 .room = nullptr,
                 .error = nullptr};
  if (batch.error) {
    reply.error = std::make_exception_ptr(batch_error(*batch.error));
    return reply;
  }
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    Embedding& item = batch.items[i];
    if (item.error) {
      const ApiError error = item_error(*item.error, items[i].media(), model.media);
      reply.error = std::make_exception_ptr(error);
      reply.items.clear();
      return reply;
    }
    reply.items.push_back(std::make_shared<const Embedding>(std::move(item)));
  }
  return reply;
}

int Service::Impl::retry_after_s() const {
  constexpr int kMostSeconds = 60;
  if (!is_loaded()) return 1;
  const BatcherStats stats = batcher->stats();
  if (stats.batch_rows == 0) return 1;
  const double rows_per_second =
      static_cast<double>(stats.batch_rows) / std::max(stats.run_seconds, 1e-3);
  const double seconds = static_cast<double>(stats.rows) / rows_per_second;
  return static_cast<int>(std::clamp(seconds + 1, 1.0, static_cast<double>(kMostSeconds)));
}

Service::Service(ServiceOptions options) try : impl_(std::make_unique<Impl>(std::move(options))) {
} catch (const std::system_error& error) {
  throw Error(ErrorCode::kIo, std::string("cannot start a thread: ") + error.what());
}

Service::~Service() { stop(std::chrono::milliseconds(0)); }

ServiceState Service::state() const noexcept {
  if (impl_->ending) return ServiceState::kDraining;
  if (impl_->failed || impl_->is_stalled()) return ServiceState::kUnhealthy;
  if (!impl_->is_loaded()) return ServiceState::kStarting;
  return impl_->is_busy() ? ServiceState::kBusy : ServiceState::kReady;
}

std::string Service::problem() const {
  if (impl_->is_stalled()) return "nothing has moved for the stall timeout";
  const std::lock_guard lock(impl_->mutex);
  return impl_->problem;
}

void Service::wait_loaded() const {
  std::unique_lock lock(impl_->mutex);
  impl_->loading_ended.wait(lock, [&] { return impl_->has_ended; });
}

const ServiceOptions& Service::options() const noexcept { return impl_->options; }

const ServedModel& Service::model() const {
  if (!impl_->is_loaded()) impl_->throw_unless_ready();
  return impl_->model;
}

const Engine& Service::engine() const {
  if (!impl_->is_loaded()) impl_->throw_unless_ready();
  return *impl_->engine;
}

void Service::check_model_name(const std::string& name) const {
  const ServiceOptions& options = impl_->options;
  if (name.empty() || name == options.served_name || name == options.model) return;
  throw ApiError(404, "model_not_found",
                 "no model \"" + shortened(name, 100) + "\" here; this server has \"" +
                     options.served_name + "\"",
                 "model");
}

std::vector<PlannedItem> Service::plan(std::vector<MediaItem> items, const CallBounds& bounds) const
    try {
  impl_->throw_unless_ready();
  return impl_->engine->plan_items(std::move(items), bounds);
} catch (const Error& error) {
  throw to_api_error(error);
}

void Service::encode(Job job, std::function<void(JobReply)> done) try {
  impl_->throw_unless_ready();
  std::shared_ptr<ReplyRoom> room = impl_->take_room(job);
  EncodeOptions how{.dtype = job.dtype,
                    .on_error = OnError::kSkip,
                    .use_cache = job.use_cache,
                    .bounds = job.bounds};
  if (room->is_estimate()) {
    how.has_room = [weak = std::weak_ptr(room)](const MediaItem& item, std::int64_t rows) {
      const std::shared_ptr<ReplyRoom> room_of_reply = weak.lock();  // null: it is complete
      return room_of_reply && room_of_reply->take(item, rows);
    };
  }
  auto complete = [impl = impl_.get(), items = job.items, room = std::move(room),
                   done = std::move(done)](BatchReply batch) mutable {
    // What a function holds is moved on, so that it is held where it is needed and nowhere else.
    auto task = [impl, items = std::move(items), room = std::move(room), done = std::move(done),
                 batch = std::make_shared<BatchReply>(std::move(batch))]() mutable {
      JobReply reply = impl->reply_of(std::move(*batch), items);
      if (room->is_refused()) reply.error = std::make_exception_ptr(impl->no_room(*room));
      reply.room = std::move(room);
      if (impl->options.on_complete) impl->options.on_complete(reply, items);
      done(std::move(reply));
    };
    impl->jobs.remove();
    impl->workers.run(std::move(task));
  };
  impl_->jobs.add();
  try {
    (void)impl_->batcher->submit(std::move(job.items), how, std::move(complete));
  } catch (...) {
    impl_->jobs.remove();
    throw;
  }
} catch (const Error& error) {
  ApiError refused = to_api_error(error);
  if (refused.status() == 429) refused.retry_after_s = retry_after_s();
  throw refused;
}

void Service::check_encodes(std::function<void(bool works)> done) {
  impl_->throw_unless_ready();
  impl_->self_check.ask(std::move(done));
}

LentRows Service::lend_rows(std::span<const std::string> cache_keys) {
  if (!impl_->is_loaded()) impl_->throw_unless_ready();
  return impl_->engine->lend_rows(cache_keys);
}

std::optional<LentRows> Service::try_lend_rows(std::span<const std::string> cache_keys) {
  if (!impl_->is_loaded()) impl_->throw_unless_ready();
  return impl_->engine->try_lend_rows(cache_keys);
}

void Service::run(std::function<void()> task) { impl_->workers.run(std::move(task)); }

Budget& Service::memory() noexcept { return impl_->memory; }

const Budget& Service::memory() const noexcept { return impl_->memory; }

std::shared_ptr<void> Service::take_memory(std::size_t bytes) { return impl_->take_memory(bytes); }

BatcherStats Service::batcher_stats() const noexcept {
  return impl_->is_loaded() ? impl_->batcher->stats() : BatcherStats{};
}

std::shared_ptr<const Stats> Service::engine_stats() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->engine_stats;
}

int Service::retry_after_s() const noexcept { return impl_->retry_after_s(); }

void Service::check_takes_work() const { impl_->throw_unless_ready(); }

void Service::announce_end() noexcept { impl_->ending = true; }

void Service::drain() noexcept {
  impl_->ending = true;
  impl_->draining = true;
}

void Service::stop(std::chrono::milliseconds patience) noexcept {
  drain();
  if (!impl_->is_loaded()) impl_->loader.request_stop();
  wait_loaded();
  if (impl_->is_loaded()) {
    try {
      impl_->batcher->drain({.deadline = std::chrono::steady_clock::now() + patience});
    } catch (const Error&) {
      // What is left ends as cancelled.
    }
    impl_->batcher->stop();
  }
  impl_->workers.wait_idle();
}

}  // namespace fovea::serve
