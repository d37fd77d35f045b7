#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/hf_config.h"
#include "core/spares.h"
#include "core/thread_pool.h"
#include "engine/backend.h"
#include "engine/cached_call.h"
#include "engine/call.h"
#include "engine/call_plan.h"
#include "engine/item_view.h"
#include "engine/planned_item.h"
#include "engine/prepare.h"
#include "engine/prepared_windows.h"
#include "engine/replicas/group_session.h"
#include "engine/replicas/replica_group.h"
#include "engine/replicas/replica_log.h"
#include "fovea/engine.h"
#include "fovea/tower/checkpoint/weight_source.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "rows/batch_memory.h"
#include "rows/row_cache.h"
#include "rows/row_lender.h"
#include "rows/row_mover.h"
#include "rows/shared/shared_rows.h"

namespace fovea {

/// A session for as long as a call needs it: whatever ends the call, nothing writes to its results
/// and destinations any more.
class SessionOfCall {
 public:
  /// @param streams as RowMover::attach. The spares must outlive this object.
  SessionOfCall(Spares<GroupSession>& sessions, std::span<const CallerStream> streams)
      : session_(sessions.take()) {
    session_->attach(streams);
  }
  SessionOfCall(const SessionOfCall&) = delete;
  SessionOfCall& operator=(const SessionOfCall&) = delete;
  ~SessionOfCall() { session_->abandon(); }

  [[nodiscard]] GroupSession& operator*() const noexcept { return *session_; }
  [[nodiscard]] GroupSession* operator->() const noexcept { return &*session_; }

 private:
  Spares<GroupSession>::Loan session_;
};

/// The parts of an engine, from the device up. Private to this room.
struct Engine::Impl {
  /// @param tensors of the caller, until this ends; null: those of the files.
  Impl(const std::string& model_directory, const WeightTensors* tensors,
       const EngineOptions& engine_options);

  /// The whole way of a batch: prepare, pack, run, hand over. The table of contents of the system.
  /// @param to destinations; null: rows go to the results, and have no copies.
  /// @throws as Engine::encode.
  [[nodiscard]] std::vector<Embedding> encode(ItemView media, const EncodeOptions& how,
                                              const Destinations* to = nullptr);

  /// The model that prepares items; the replicas have the same one or copies of it.
  [[nodiscard]] const EncoderGraphModel& model() const { return *models.front(); }
  [[nodiscard]] PrepareContext prepare_context() {
    const bool are_cut = options.packing == PackingPolicy::kUnits;
    return {.model = model(),
            .options = options.media,
            .budget = decode_budget,
            .processes = decode_processes.get(),
            .log = options.log,
            .most_bytes = are_cut ? window_budget_bytes(decode_pool.size()) : 0,
            .pruning = pruning_of(options),
            .processors = &processors};
  }
  /// The dtype in which a tower leaves rows.
  [[nodiscard]] RowDType tower_dtype() const;
  /// All devices are of one kind.
  [[nodiscard]] bool on_host() const { return backends.front().device->properties().host_memory; }

  /// @param eager of a call that asks for no graphs. Refers to the engine.
  [[nodiscard]] CallLimits call_limits(bool eager) const;

  /// Plans items on the decode threads. @param items not null.
  [[nodiscard]] std::vector<PlannedItem> plan(std::vector<std::shared_ptr<const MediaItem>> items);

  /// Of all GPUs since loading; absent without one, or if one has no figures.
  [[nodiscard]] std::optional<double> energy_joules() const;

  /// @throws as Engine::lend_rows, if there is none.
  [[nodiscard]] RowLender& checked_lender();

  std::string directory;
  EngineOptions options;
  const std::shared_ptr<const PlanContext> plan_context =
      std::make_shared<const PlanContext>(PlanContext{pruning_of(options)});
  checkpoint::HfConfig files;
  ItemProcessors processors;
  std::vector<Backend> backends;      // one per replica
  std::vector<EnergyCounter> energy;  // of these; none on CPUs
  ThreadPool decode_pool;
  DecodeBudget decode_budget;
  std::unique_ptr<media::DecodeProcesses> decode_processes;  // null: items are decoded here
  std::vector<std::unique_ptr<EncoderGraphModel>> models;    // one per GPU; on the CPU one for all
  std::vector<std::unique_ptr<ReplicaLog>> replica_logs;     // of several replicas
  std::unique_ptr<ReplicaGroup> replicas;
  ModelReport report;
  std::unique_ptr<RowCache> row_cache;             // null: none
  std::optional<RowLender> lender;                 // of rows in memory of GPUs
  std::string fingerprint;                         // of the model, for keys; empty without a cache
  std::atomic<std::int64_t> precomputed_items{0};  // came as rows: no replica counts them
  Spares<GroupSession> sessions;                   // one per call that runs
  Spares<BatchMemory> gathers;                     // one per call of several ranks
  std::unique_ptr<SharedRows> shared_rows;  // null: nowhere; last: it reads the cache on its thread

 private:
  void load(const WeightTensors* tensors);
  /// Makes the encoder cache that the options ask for, and names the model for it.
  void make_cache(const checkpoint::WeightSource& weights);
  /// Makes the place that the options share rows in, behind the cache.
  void share_rows();
  /// The names under which callers find the rows of an item.
  void name_rows(const Item& item) const;
  /// The rows of the encoder cache for a key, as the tower leaves them.
  [[nodiscard]] std::optional<Embedding> cached_rows(const std::string& key);
  /// Has the rows that this call has encoded shared with other processes.
  void share(const Call& call);
  /// One line about what was loaded, where, and the sizes of its graphs.
  void log_initialized();
  // What encode() does, in order.
  /// @throws Error(kInvalidArgument) if another engine has planned an item, or if pixels of the
  /// caller are in memory where this engine does not read them.
  void check_items(ItemView media) const;
  /// Looks at the headers of items that nobody has looked at.
  void plan(const Selection& items);
  /// Fails the items whose rows, as far as their headers tell, exceed their destinations.
  void check_room(Call& call);
  /// Names items by what their rows depend on.
  void find_keys(Call& call);
  /// Encodes the items that `cached` says, in the order that suits them, and takes those that it
  /// has found to their targets.
  void run(Call& call, CachedCall& cached);
  /// The order in which items are worked off.
  [[nodiscard]] std::vector<PreparedWindows::Window> order(const Call& call,
                                                           const Selection& items);
  /// Fills in the results of a window, without rows, and has the replicas begin to write those.
  void submit(GroupSession& session, const PreparedWindows::Window& window, Call& call);
  /// As submit for an item of which a few units are there. @return them, if the item has not
  /// failed.
  [[nodiscard]] std::optional<TowerItem> take_units(GroupSession& session, Call& call, Item& item);
  /// Fills in the result of an item that came as rows, and notes that these are to be moved.
  void take_finished(Call& call, Item& item);
  /// Fills in the results of items from the encoder cache, and notes that their rows are to be
  /// moved. @return those that have room.
  Selection take_found(Call& call, CachedCall& cached);
  /// Completes results whose rows are there: prunes videos, if the options ask for it.
  void finish(const Selection& items);
  /// Brings rows that the host had to see to their destinations.
  static void move_seen(GroupSession& session, Call& call);
  /// Copies rows from their destinations to a further place.
  void copy_rows(const Call& call, const Destinations& copy);

  /// Rows that pruning will leave of what the tower has made of an item.
  [[nodiscard]] std::int64_t remaining_rows(const Embedding& whole) const;
  /// Where the rows of an item go from the tower: to its result, if the host has still to see them.
  [[nodiscard]] RowTarget tower_target(const Item& item) const;
};

/// Says where the values of preprocessing come from, and warns of files that are not looked at and
/// of what is assumed for want of one. Random weights, which need config.json only, have no
/// processor to agree with.
void log_preprocessing(const checkpoint::HfConfig& files, const ItemProcessor& processor,
                       const EngineOptions& options);

/// Fills in what inspect() and report() add to a family's description: weight and activation
/// memory.
void add_memory_plan(ModelReport& report, const EncoderGraphModel& planner, Device& device,
                     const EngineOptions& options);

}  // namespace fovea
