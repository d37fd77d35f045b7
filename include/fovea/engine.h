#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fovea/embedding.h"
#include "fovea/export.h"
#include "fovea/media.h"
#include "fovea/options.h"
#include "fovea/reports.h"
#include "fovea/stats.h"

namespace fovea {

/// What encode() does with an item that cannot be read, decoded or planned.
enum class OnError : std::uint8_t { kFail, kSkip };

struct EncodeOptions {
  RowDType dtype = RowDType::kFloat32;
  OnError on_error = OnError::kFail;
  bool enforce_eager = false;  ///< run this call without graphs
  /// Called on the calling thread whenever more items are done, with their number and the number
  /// of all items. Must not use the engine.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

struct Check;        // diagnostics.h
struct TowerTiming;  // diagnostics.h

/// A loaded vision encoder on one device, or a replica of it on each of several. encode() may be
/// called from several threads and serialises them.
class FOVEA_API Engine {
 public:
  /// Loads the tower of the checkpoint in directory `model`.
  /// @throws Error(kNotFound) for missing files, Error(kUnsupported) for an unknown architecture or
  /// device, Error(kCorruptData) for broken files; one message for all missing and misshapen
  /// tensors, which inspect() lists.
  [[nodiscard]] static Engine load(const std::string& model, const EngineOptions& options = {});

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  /// Encodes items and returns one Embedding per item in the same order, each in memory of its own.
  /// @throws Error of the first failing item unless options.on_error is kSkip. A replica that fails
  /// fails the call, after all others have ended; the engine is usable afterwards.
  [[nodiscard]] std::vector<Embedding> encode(std::span<const MediaItem> items,
                                              const EncodeOptions& options = {});

  /// Captures every graph of the configuration and returns when all are there. Without this call
  /// graphs appear as they are needed: on a CPU when a batch first needs one, on a GPU in the
  /// background from the moment of loading, batches running eagerly meanwhile.
  void warm_up();

  /// Computes sizes, grids and packing of items of the given sizes, in the windows of items that
  /// one call of encode() takes; touches no weights.
  /// @throws Error(kInvalidArgument) for a size beyond the limits of EngineOptions::media, as
  /// encode() does, or that the model cannot take.
  [[nodiscard]] PackingPlan plan(std::span<const ItemSize> sizes) const;

  [[nodiscard]] const ModelReport& report() const;
  /// Counters of all replicas together, in which an item counts once whoever encoded it.
  [[nodiscard]] Stats stats() const;
  /// Counters of each replica, in the order of EngineOptions::device. At least one. No replica sees
  /// items that came as rows.
  [[nodiscard]] std::vector<ReplicaStats> replica_stats() const;
  /// Name and description of the device in use, for example "cpu, <processor>, 8 threads"; of
  /// several, with semicolons between them.
  [[nodiscard]] std::string device() const;

 private:
  friend FOVEA_API std::vector<Check> verify(Engine& engine, const std::string& golden);
  friend FOVEA_API TowerTiming time_tower(Engine& engine, std::int64_t patches, std::int64_t count,
                                          int warmups, int repetitions);
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Plans as Engine::plan without loading weights: only the JSON files of `model` are read. Windows
/// are those of a GPU if options.device names one, of the CPU otherwise; no device is looked at.
[[nodiscard]] FOVEA_API PackingPlan plan(const std::string& model, std::span<const ItemSize> sizes,
                                         const EngineOptions& options = {});

/// Describes the checkpoint in `model`, tensor headers included, without loading weights. Missing
/// and misshapen tensors are listed in the report, not thrown.
[[nodiscard]] FOVEA_API ModelReport inspect(const std::string& model,
                                            const EngineOptions& options = {});

}  // namespace fovea
