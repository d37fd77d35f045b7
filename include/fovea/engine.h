#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/call_bounds.h"
#include "fovea/embedding.h"
#include "fovea/export.h"
#include "fovea/lent_rows.h"
#include "fovea/media.h"
#include "fovea/options.h"
#include "fovea/planned_item.h"
#include "fovea/reports.h"
#include "fovea/row_block.h"
#include "fovea/stats.h"
#include "fovea/weight_tensors.h"

namespace fovea {

/// What encode() does with an item that cannot be read, decoded or planned.
enum class OnError : std::uint8_t {
  kFail,  ///< throws the error of the first such item that it comes to
  kSkip,  ///< returns it as Embedding::error and encodes the others
};

/// What may differ from call to call of encode().
struct EncodeOptions {
  RowDType dtype = RowDType::kFloat32;  ///< of the returned rows
  OnError on_error = OnError::kFail;
  bool enforce_eager = false;  ///< runs this call without graphs, and without the encoder cache
  bool use_cache = true;  ///< false: neither reads nor fills the encoder cache, if there is one
  /// Called on the calling thread whenever more items are done, with their number and the number
  /// of all items. Must not use the engine. What it throws leaves encode() as it is.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
  /// Asked whether there is room for the rows of an item whose plan does not tell them, such as a
  /// video in a container: before it is decoded, and perhaps again. If not, it fails with
  /// Error(kUnavailable). On any thread of the engine, for several items at a time. Must not use
  /// the engine, nor throw. Empty: there is.
  std::function<bool(const MediaItem& item, std::int64_t rows)> has_room = {};
  /// Of calls with destinations: further places for the same rows, on other GPUs for example, each
  /// with a stream of its own. Blocks have the dtype of the destination of their item, and at least
  /// its room.
  std::span<const Destinations> copies = {};
  CallBounds bounds = {};  ///< end the call as a whole, whatever on_error says
};

struct Check;           // diagnostics.h
struct GatheredRows;    // cached_rows.h
struct EmbeddingsView;  // cached_rows.h
class RowGather;        // encode_on_ranks()
class TowerRuns;        // time_tower()
class EnergyWatch;      // diagnostics.h

/// A loaded vision encoder on one device, or a replica of it on each of several. All functions may
/// be called from several threads at the same time. Calls of encode() prepare their items side by
/// side and take turns on the devices after every sub-batch. The call with the least left is next,
/// so that a small one waits for one sub-batch of large ones, but none is overtaken more than 8
/// times between two sub-batches. Rows do not depend on what runs beside. A moved-from engine may
/// only be destroyed or assigned to.
///
/// Functions that can take long have CallBounds, and throw Error(kCancelled) or Error(kDeadline) if
/// these end them, while they wait for other calls too. A thread that calls them needs 128 KiB of
/// stack, and so do the threads of the engine, which have the default of the process.
class FOVEA_API Engine {
 public:
  /// Loads the tower of the checkpoint in directory `model` and returns when the weights are on the
  /// device. Graphs are captured later, see warm_up().
  /// @throws Error(kNotFound) for missing files and tensors (one message for all missing and
  /// misshapen tensors, which inspect() lists), Error(kUnsupported) for an unknown architecture or
  /// an unusable device, Error(kCorruptData) for broken files, Error(kInvalidArgument) for options
  /// that contradict each other or the model, Error(kOutOfMemory).
  [[nodiscard]] static Engine load(const std::string& model, const EngineOptions& options = {},
                                   const CallBounds& bounds = {});

  /// As load(), with the tensors of another loader instead of those of files: `model` holds the
  /// JSON files of a checkpoint and needs no weights. Each tensor of the tower is copied to host
  /// memory when its turn comes, once for every GPU, or once for all replicas on a CPU, and once
  /// more for an encoder cache, whose keys have the bits of all weights. Rows and keys are those of
  /// the same tensors in files.
  /// @throws as load(); Error(kInvalidArgument) for dummy weights, for two tensors of one name and
  /// without a function that reads; what that function throws, as it is.
  [[nodiscard]] static Engine from_weights(const std::string& model, const WeightTensors& weights,
                                           const EngineOptions& options = {},
                                           const CallBounds& bounds = {});

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  /// Ends a capture in the background early and waits for it.
  ~Engine();

  /// Encodes items and returns when all rows are in host memory: one Embedding per item, in the
  /// same order, [rows, width] in options.dtype, each in memory of its own. Long calls are worked
  /// off in the order in which items pack well; items whose size cannot be read from a header come
  /// first. With an encoder cache, items of equal content are encoded once: those that are in it
  /// are copied, and those that another call is encoding are waited for. If that call ends early,
  /// this one encodes them; if an item fails there, it fails here. Rows are those of a call without
  /// a cache; only StageTimes of items that were not encoded are 0 but for output_ms.
  /// @throws Error of the first failing item, in that order, unless options.on_error is kSkip,
  /// Error(kDevice) or Error(kOutOfMemory) if a replica fails, after all others have ended. The
  /// engine is usable afterwards.
  [[nodiscard]] std::vector<Embedding> encode(std::span<const MediaItem> items,
                                              const EncodeOptions& options = {});
  /// As above, for items of plan_items(), which are not planned again.
  /// @throws also Error(kInvalidArgument) for a plan of another engine, before any work.
  [[nodiscard]] std::vector<Embedding> encode(std::span<const PlannedItem> items,
                                              const EncodeOptions& options = {});

  /// As above, but writes the rows of items[i] to destinations[i], in its dtype and with its
  /// distance between rows, and returns Embeddings without data: width, the number of rows and all
  /// else are there. The bits are those of the call above.
  ///
  /// Without a stream the rows are there when the call returns. With one, of an engine on GPUs,
  /// rows on GPUs are written behind what the stream holds at the time of the call, and what the
  /// caller puts on it after the call finds them: the call returns when its work is submitted, and
  /// the destinations have to stay until the stream has passed it. The host then waits for no rows,
  /// but for those that pass through host memory: of pruned videos, and precomputed ones that lie
  /// there. Rows on the host are there when the call returns in any case.
  /// Where memory grows, and where it is more than two sub-batches ahead of the GPU, the host
  /// waits, too. StageTimes::encode_ms is the time of the submission then, and what a GPU reports
  /// later is an Error(kDevice) of a later call, or of the caller's own.
  ///
  /// EncodeOptions::copies get the rows from the destinations when all are submitted, from GPU to
  /// GPU without the host: what the caller puts on the stream of a copy finds them there, and both
  /// streams have to pass the call before the destinations go. With replicas on several GPUs every
  /// GPU ends with all rows.
  ///
  /// Nothing is written behind the rows of an item, or between them. Nothing is written for an item
  /// that has an Embedding::error. If the call throws, destinations hold anything, and nothing
  /// writes to them any more.
  /// @param destinations one for each item, on the host or on any GPU that the driver copies to. An
  /// item without rows needs no memory. They overlap neither each other nor precomputed rows;
  /// blocks of equal stride may lie side by side. A destination with more room than rows is fine.
  /// @throws Error(kInvalidArgument) before any work for a destination that is null, not aligned to
  /// its elements, of another device than it says, or overlaps another one, for strides smaller
  /// than a row, and for a stream of an engine on a CPU; copies likewise. A destination too small
  /// for its item is an error of the item, found before any work where its plan tells its rows, and
  /// before it is decoded for a video in a container, whose frames that cannot be read count, too.
  [[nodiscard]] std::vector<Embedding> encode(std::span<const MediaItem> items,
                                              std::span<const RowBlock> destinations,
                                              const CallerStream& stream,
                                              const EncodeOptions& options = {});
  [[nodiscard]] std::vector<Embedding> encode(std::span<const PlannedItem> items,
                                              std::span<const RowBlock> destinations,
                                              const CallerStream& stream,
                                              const EncodeOptions& options = {});

  /// As the function merge_rows() of cached_rows.h, with the same bits, for rows and embeddings on
  /// GPUs: in the order of `stream`, without a wait of the host. A copy for each run of positions
  /// and each level. Rows and embeddings have to stay until the stream has passed them, and do not
  /// overlap. Of an engine on a CPU without a stream: in host memory, done when the call returns.
  /// @throws Error(kInvalidArgument) as that function, and for a stream on a CPU or none on a GPU;
  /// nothing is written then.
  void merge_rows(const GatheredRows& gathered, const EmbeddingsView& target,
                  const CallerStream& stream);

  /// Lends rows that the encoder cache has in memory of a GPU to other processes of the host, as
  /// the tower has left them, without a copy: they stay there while the result's `pins` lives,
  /// which the engine must outlive. Waits for no encoding.
  /// @param keys Embedding::cache_key of items of this engine. Without any the call says whether
  /// rows can be lent at all.
  /// @throws Error(kUnsupported) for an engine on a CPU, and where the driver shares no memory;
  /// Error(kInvalidArgument) without an encoder cache on GPUs
  /// (EngineOptions::encoder_device_cache_size); Error(kDevice).
  [[nodiscard]] LentRows lend_rows(std::span<const std::string> keys);
  /// The same for threads that must not wait: nothing while some of the rows are still being copied
  /// into the cache.
  [[nodiscard]] std::optional<LentRows> try_lend_rows(std::span<const std::string> keys);

  /// Captures every graph of the configuration and returns when all are captured. Without this call
  /// a CPU captures a graph when a batch first needs it, and a GPU captures all of them in the
  /// background from the moment of loading, while batches run eagerly. Graphs that do not fit into
  /// the memory are left out.
  /// @param bounds a call that they end leaves the graphs that it has captured; what captures in
  /// the background goes on.
  /// @throws Error(kDevice) if a capture fails.
  void warm_up(const CallBounds& bounds = {});

  /// Gives back memory that only calls of the past needed: rows, images and pinned memory of calls
  /// that have ended, and what eager runs have grown to. Keeps weights, graphs and the memory
  /// they are recorded over, the encoder cache, and what calls use that run meanwhile. The next
  /// calls are slower by the allocations that they do again.
  ///
  /// Without this call memory follows the load: what eager runs have grown to is given back when 32
  /// sub-batches on a device have needed less than half of it, memory for rows when 32 batches of a
  /// caller have, and what was made for callers at the same time when 32 calls did without it.
  /// @return bytes of device memory given back.
  std::size_t trim();

  /// Computes sizes, grids and packing of items of the given sizes, as one call of encode() packs
  /// them. Host arithmetic; reads no weights.
  /// @throws Error(kInvalidArgument) for a size beyond the limits of EngineOptions::media, as
  /// encode() does, or that the model cannot take; Error(kUnsupported) for a video if the model
  /// takes none.
  [[nodiscard]] PackingPlan plan(std::span<const ItemSize> sizes,
                                 const CallBounds& bounds = {}) const;

  /// Whether items of this modality may have these options (MediaItem::mm_processor_kwargs), so
  /// that a caller learns of a wrong one before it reads any media. Reads no weights.
  /// @throws Error(kInvalidArgument) for what is no JSON object and for values that the family's
  /// reader of processor files refuses, Error(kUnsupported) for keys that the family takes neither
  /// for images nor for videos: messages begin with "mm_processor_kwargs: " and the path of the
  /// key.
  void check_item_options(Modality modality, const std::string& mm_processor_kwargs) const;

  /// Plans items, once for all that is done with them: what becomes of each, as far as descriptions
  /// and the headers of images tell without decoding (PlannedItem). Reads 128 KiB of a file at
  /// most, and copies no bytes.
  /// @throws Error(kCancelled) or Error(kDeadline) as `bounds` say, Error(kOutOfMemory). What is
  /// wrong with an item is no error: it has no plan, and encode() says why.
  [[nodiscard]] std::vector<PlannedItem> plan_items(std::vector<MediaItem> items,
                                                    const CallBounds& bounds = {}) const;

  /// The loaded model: what it is, its tensors, the size of its weights. Valid while the engine
  /// lives.
  [[nodiscard]] const ModelReport& report() const;
  /// Names the JSON files of the model and the bits of all weights: engines of equal fingerprints
  /// make equal rows of equal pixels, as far as devices compute alike. 64 hexadecimal digits, and
  /// how the tower computes. Known of engines with an encoder cache, whose keys begin with it;
  /// empty without one, because it takes reading all weights once more.
  [[nodiscard]] const std::string& fingerprint() const noexcept;
  /// Counters of all replicas together since loading. An item counts once, whichever replica
  /// encoded it.
  [[nodiscard]] Stats stats() const;
  /// Counters of each replica, in the order of EngineOptions::device; at least one. Items that came
  /// as rows belong to no replica.
  [[nodiscard]] std::vector<ReplicaStats> replica_stats() const;
  /// Name and description of the device in use, for example "cpu, <processor>, 8 threads"; several
  /// devices are separated by semicolons.
  [[nodiscard]] std::string device() const;

 private:
  friend FOVEA_API std::vector<Check> verify(Engine& engine, const std::string& golden,
                                             const CallBounds& bounds);
  friend class RowGather;
  friend class TowerRuns;
  friend class EnergyWatch;
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The size of an encoded image, upright where `options` turn images upright. Reads its header
/// only: the first 128 KiB of a file are nearly always enough.
/// @param name for messages.
/// @throws Error(kUnsupported) for bytes of no known format, Error(kCorruptData) for a broken
/// header, Error(kInvalidArgument) beyond a limit of `options`, with both numbers.
[[nodiscard]] FOVEA_API ItemSize probe_image(std::span<const std::uint8_t> bytes,
                                             const std::string& name,
                                             const MediaOptions& options = {});

/// Plans as Engine::plan without loading weights: only the JSON files of `model` are read. The call
/// is one on a GPU if options.device names one, on the CPU otherwise; no device is opened.
/// @throws as Engine::plan, and Error(kNotFound), Error(kCorruptData) or Error(kUnsupported) for
/// the files of `model` as Engine::load does.
[[nodiscard]] FOVEA_API PackingPlan plan(const std::string& model, std::span<const ItemSize> sizes,
                                         const EngineOptions& options = {},
                                         const CallBounds& bounds = {});

/// Patches of the largest item that the model's own rules make of what `options.media.limits` let
/// through, max_patches_per_item aside: of an image of the most pixels, or of a video of at most as
/// many frames as the model samples. Loads no weights, as plan(). @throws as plan().
[[nodiscard]] FOVEA_API std::int64_t largest_item_patches(const std::string& model,
                                                          const EngineOptions& options = {},
                                                          const CallBounds& bounds = {});

/// Describes the checkpoint in `model`, tensor headers included, without loading weights. Missing
/// and misshapen tensors are listed in the report, not thrown.
/// @throws Error(kNotFound), Error(kCorruptData) or Error(kUnsupported) as Engine::load does for
/// everything else.
[[nodiscard]] FOVEA_API ModelReport inspect(const std::string& model,
                                            const EngineOptions& options = {},
                                            const CallBounds& bounds = {});

}  // namespace fovea
