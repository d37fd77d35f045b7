#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/hf_config.h"
#include "core/thread_pool.h"
#include "device/device.h"
#include "engine/backend.h"
#include "engine/prepare.h"
#include "fovea/engine.h"
#include "graph/graph_manager.h"
#include "models/encoder_graph_model.h"
#include "models/registry.h"

namespace fovea {

/// The parts of an engine, from the device up. Private to this room.
struct Engine::Impl {
  Impl(const std::string& model_directory, const EngineOptions& engine_options);

  /// The whole way of a batch: prepare, pack, run, hand over. The table of contents of the system.
  [[nodiscard]] std::vector<Embedding> encode(std::span<const MediaItem> media,
                                              const EncodeOptions& how);

  /// As encode, of items that are prepared already.
  [[nodiscard]] std::vector<Embedding> encode_prepared(std::span<const PreparedItem* const> items,
                                                       const EncodeOptions& how);

  /// Runs the tower on prepared items; rows[i] refers to row memory on the device, valid until the
  /// next run.
  void run_tower(std::span<const PreparedItem* const> items, const EncodeOptions& how,
                 std::vector<TensorView>& rows);

  std::string directory;
  EngineOptions options;
  checkpoint::HfConfig files;
  Backend backend;
  ThreadPool decode_pool;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<EncoderGraphModel> model;
  std::unique_ptr<GraphManager> graphs;
  ModelReport report;

  std::mutex mutex;    // guards the members below: one batch at a time
  Buffer row_memory;   // device; grows to the largest batch
  Buffer host_memory;  // pinned, only where the device does not compute in host memory

 private:
  void encode_window(std::span<const MediaItem> media, std::span<PreparedMedia> prepared,
                     const EncodeOptions& how, std::vector<Embedding>& results);
  [[nodiscard]] std::vector<ConstTensorView> rows_on_host(std::span<const TensorView> rows);
};

/// Fills in what inspect() and report() add to a family's description: weight and activation
/// memory.
void add_memory_plan(ModelReport& report, const EncoderGraphModel& planner, Device& device,
                     const EngineOptions& options);

}  // namespace fovea
