#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/budget.h"
#include "fovea/batcher.h"
#include "fovea/engine.h"
#include "fovea/log.h"

namespace fovea::serve {

struct JobReply;

/// What a server encodes with.
struct ServiceOptions {
  std::string model;        ///< directory of the checkpoint
  std::string served_name;  ///< what clients call it
  /// With 0 for media.limits.max_patches_at_once: what largest_item_patches() says of the model,
  /// at most the library's own default.
  EngineOptions engine;
  BatcherOptions batcher;
  bool lends_rows = false;                                  ///< loading fails if the engine cannot
  std::int64_t max_inflight_bytes = std::int64_t{8} << 30;  ///< bodies, items and replies
  std::chrono::milliseconds stall_timeout{30'000};
  /// Told of every job that is complete, for metrics. Must not wait or throw.
  std::function<void(const JobReply& reply, std::span<const PlannedItem> items)> on_complete = {};
  LogSink* log = nullptr;  ///< must outlive the service
};

enum class ServiceState : std::uint8_t {
  kStarting,  ///< loads the model
  kReady,
  kBusy,  ///< works, but no batch has ended for stall_timeout: others are served sooner elsewhere
  kDraining,   ///< is about to end: after announce_end() and drain()
  kUnhealthy,  ///< loading failed, or there is work and nothing of it has moved for stall_timeout
};
[[nodiscard]] const char* to_string(ServiceState state);

/// Names all that rows of an engine depend on but the media and the call: a SHA-256 of the tower's
/// fingerprint and of the options that the tower does not see, 64 hexadecimal digits.
/// @param tower Engine::fingerprint(). @return empty if that is.
[[nodiscard]] std::string row_fingerprint(const std::string& tower, const EngineOptions& options);

/// What is known of the model once it is loaded.
struct ServedModel {
  ModelReport report;
  RowDType dtype = RowDType::kBFloat16;  ///< of the checkpoint: what "auto" means
  std::string device;
  std::string fingerprint;  ///< row_fingerprint(): equal ones give equal rows
  double load_seconds = 0;
  /// Of the engine, with the limit on patches that is in force.
  MediaOptions media;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> token_budgets;  ///< by path
};

/// What to encode for one request.
struct Job {
  std::vector<PlannedItem> items;  ///< of Service::plan()
  RowDType dtype = RowDType::kFloat32;
  /// Bytes of a reply per byte of rows, beyond the rows themselves: base64 is 4/3.
  double reply_factor = 1;
  bool use_cache = true;
  CallBounds bounds;
};

/// What became of it.
struct JobReply {
  std::vector<std::shared_ptr<const Embedding>> items;  ///< without errors, in order
  double queue_ms = 0;
  double run_ms = 0;
  std::int64_t batch_items = 0;
  std::uint64_t batch = 0;  ///< as BatchReply has it
  /// Room for the reply; goes when the last of its parts has been sent.
  std::shared_ptr<void> room;
  /// An ApiError if there are no items. One bad item fails its request, and is its param:
  /// the name of the item.
  std::exception_ptr error;
};

/// The encoder behind the routes: loads in the background, batches, counts, watches itself. All
/// functions may be called from any thread.
class Service {
 public:
  /// Starts loading, and returns. @throws Error(kIo) if there are no threads to be had.
  explicit Service(ServiceOptions options);
  /// Ends all work.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] ServiceState state() const noexcept;
  /// Why it is unhealthy, for people; empty otherwise.
  [[nodiscard]] std::string problem() const;
  /// Waits until loading has ended, well or not.
  void wait_loaded() const;
  [[nodiscard]] const ServiceOptions& options() const noexcept;

  /// The model. @throws ApiError(503, "starting") before it is loaded, ApiError(503, "unhealthy").
  [[nodiscard]] const ServedModel& model() const;
  /// The engine, for what needs no rows: plan(), stats(). @throws as model().
  [[nodiscard]] const Engine& engine() const;
  /// @throws ApiError(404, "model_not_found") unless the name is empty, the served one or the
  /// directory it was started with.
  void check_model_name(const std::string& name) const;

  /// Plans the items of a job.
  /// @throws ApiError: 503 as check_takes_work(), 499 and 504 as `bounds` say.
  [[nodiscard]] std::vector<PlannedItem> plan(std::vector<MediaItem> items,
                                              const CallBounds& bounds = {}) const;

  /// Encodes; `done` is called once, on a worker thread, where it may compute. Must not throw.
  /// @throws ApiError: 503 "starting" or "draining", 429 "queue_full", 400 for a request that is
  /// too large for ever. `done` is not called then.
  void encode(Job job, std::function<void(JobReply)> done);

  /// Encodes a small image, whatever the queue holds: at most one at a time, beside it. `done` is
  /// called once with whether that worked; who asks while it runs shares what comes of it. Must not
  /// throw. @throws ApiError(503) as check_takes_work().
  void check_encodes(std::function<void(bool works)> done);

  /// Engine::lend_rows(). What it lends must go before this ends.
  /// @throws as that, and as model().
  [[nodiscard]] LentRows lend_rows(std::span<const std::string> cache_keys);
  /// Engine::try_lend_rows(); likewise.
  [[nodiscard]] std::optional<LentRows> try_lend_rows(std::span<const std::string> cache_keys);

  /// Runs a task on a worker thread.
  void run(std::function<void()> task);

  /// Room for what requests hold in memory.
  [[nodiscard]] Budget& memory() noexcept;
  [[nodiscard]] const Budget& memory() const noexcept;
  /// Some of it, given back when the last copy of the pointer goes; null if there is not enough.
  [[nodiscard]] std::shared_ptr<void> take_memory(std::size_t bytes);
  [[nodiscard]] BatcherStats batcher_stats() const noexcept;
  /// Counters of the engine, as they were a moment ago: asking the engine itself could wait for a
  /// sub-batch or a capture. Null before the model is loaded.
  [[nodiscard]] std::shared_ptr<const Stats> engine_stats() const;
  /// Whole seconds after which a client that was refused should come again.
  [[nodiscard]] int retry_after_s() const noexcept;

  /// @throws ApiError(503) "starting", "draining" or "unhealthy" unless it takes work.
  void check_takes_work() const;

  /// Lets state() say that the end is near, for those who send requests elsewhere then. Work is
  /// still taken.
  void announce_end() noexcept;
  /// Takes no more work. Returns at once.
  void drain() noexcept;
  /// drain(), waits until all work is done or the time is over; what is left then ends as
  /// cancelled. Tasks that run() was given have run when it returns. Not from a task.
  void stop(std::chrono::milliseconds patience) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fovea::serve
