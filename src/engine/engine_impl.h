#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/hf_config.h"
#include "core/spares.h"
#include "core/thread_pool.h"
#include "device/device.h"
#include "engine/backend.h"
#include "engine/call_plan.h"
#include "engine/prepare.h"
#include "engine/prepared_windows.h"
#include "engine/replicas/group_session.h"
#include "engine/replicas/replica_group.h"
#include "fovea/engine.h"
#include "models/encoder_graph_model.h"

namespace fovea {

/// The parts of an engine, from the device up. Private to this room.
struct Engine::Impl {
  Impl(const std::string& model_directory, const EngineOptions& engine_options);

  /// The whole way of a batch: prepare, pack, run, hand over. The table of contents of the system.
  [[nodiscard]] std::vector<Embedding> encode(std::span<const MediaItem> media,
                                              const EncodeOptions& how);

  /// The model that prepares items; the replicas have the same one or copies of it.
  [[nodiscard]] const EncoderGraphModel& model() const { return *models.front(); }
  [[nodiscard]] PrepareContext prepare_context() {
    return {model(), options.media, decode_budget, decode_processes.get()};
  }
  /// All devices are of one kind.
  [[nodiscard]] bool on_host() const { return backends.front().device->properties().host_memory; }

  /// @param eager of a call that asks for no graphs. Refers to the engine.
  [[nodiscard]] CallLimits call_limits(bool eager) const;

  std::string directory;
  EngineOptions options;
  checkpoint::HfConfig files;
  std::vector<Backend> backends;  // one per replica
  ThreadPool decode_pool;
  DecodeBudget decode_budget;
  std::unique_ptr<media::DecodeProcesses> decode_processes;  // null: items are decoded here
  std::vector<std::unique_ptr<EncoderGraphModel>> models;    // one per GPU; on the CPU one for all
  std::unique_ptr<ReplicaGroup> replicas;
  ModelReport report;
  std::atomic<std::int64_t> precomputed_items{0};  // came as rows: no replica counts them
  Spares<GroupSession> sessions;                   // one per call that runs

 private:
  /// What encode() was called with, and its results.
  struct Call {
    std::span<const MediaItem> media;
    const EncodeOptions& how;
    std::span<Embedding> results;
  };
  void load();
  /// One line about what was loaded, where, and the sizes of its graphs.
  void log_initialized();
  /// The order in which a call is worked off, from the headers of what it names.
  [[nodiscard]] std::vector<CallWindow> order(std::span<const MediaItem> media, bool eager);
  /// Fills in the results of a window, without rows, and has the replicas begin to write those.
  void submit(GroupSession& session, const PreparedWindows::Window& window, const Call& call);
  /// Prunes the videos among the results that are there, if the options ask for it.
  void prune_videos(std::span<const MediaItem> media, std::span<Embedding> results);
};

/// Warns of what preprocessing assumes for want of a processor file. Random weights, which need
/// config.json only, have no processor to agree with.
void warn_of_assumptions(const ItemProcessor& processor, const EngineOptions& options);

/// Fills in what inspect() and report() add to a family's description: weight and activation
/// memory.
void add_memory_plan(ModelReport& report, const EncoderGraphModel& planner, Device& device,
                     const EngineOptions& options);

}  // namespace fovea
