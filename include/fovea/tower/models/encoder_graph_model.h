#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/models/inputs.h"
#include "fovea/tower/models/item_processor.h"

namespace fovea {

struct ExecContext;  // ops/context.h: a model's forward works with it, the manager only passes it
                     // on

/// Index of a path in GraphSpec::paths.
using PathId = int;

/// An independently captured and replayed part of the encoder. A single tower has the one path
/// "default"; DeepSeek-OCR has "global" and "local".
struct PathSpec {
  std::string name = "default";
  std::optional<std::int64_t>
      min_token_budget;            ///< absent: the budgets of the configuration as they are
  bool allow_zero_tokens = false;  ///< an item may not need this path
  std::int64_t unit =
      1;  ///< tokens come in multiples of this; capacity is floor(budget / unit) * unit
  std::optional<std::int64_t> max_item_tokens =
      {};  ///< most tokens of one item, if there is a bound: larger loads need no graph
};

/// What the graph manager must know about a model; constant after load.
struct GraphSpec {
  std::vector<Modality> modalities;
  std::int64_t main_width = 0;            ///< columns of the main embedding of a row
  std::int64_t out_width = 0;             ///< columns of a row: main_width * (1 + deepstack levels)
  std::int64_t max_frames_per_video = 1;  ///< attention sequences a video may need
  /// Input rows of a sequence at which its attention costs as much as all else does, for balancing
  /// over devices; 0: the cost of an item follows its rows alone.
  std::int64_t attention_parity_rows = 0;
  /// Heads of every attention, where nothing else in the forward lets the rows of different tokens
  /// meet, and the patches of a token are neighbours: devices can then compute a unit together,
  /// each a part of the tokens and of the heads. 0: they cannot.
  std::int64_t team_heads = 0;
  /// Smallest token budget worth capturing where the configuration names none, and the largest that
  /// the language model could use, if the checkpoint says so.
  std::int64_t min_token_budget = 64;
  std::optional<std::int64_t> max_token_budget = {};
  std::vector<PathSpec> paths{PathSpec{}};
};

/// Sizes that one recorded graph (or one eager run) is built for.
struct GraphCapacity {
  std::int64_t tokens = 0;  ///< of the path; a multiple of its unit
  std::int64_t items = 0;
  std::int64_t seqs = 0;  ///< attention sequences
  /// Devices that compute the forward together (fovea/tower/device/team.h): the tokens are those of
  /// each, items and sequences those of all.
  int team = 1;

  friend bool operator==(const GraphCapacity&, const GraphCapacity&) noexcept = default;
};

/// A vision encoder as the rest of the system sees it: a processor that turns items into bytes on
/// the host, inputs as named buffers, and one forward per path that serves eager runs, warm-up and
/// capture alike. All methods are const and thread-safe.
/// Source: docs/reference/encoder_graphs.md, "The model protocol".
class FOVEA_API EncoderGraphModel {
 public:
  virtual ~EncoderGraphModel() = default;

  [[nodiscard]] virtual const GraphSpec& graph_spec() const noexcept = 0;
  [[nodiscard]] virtual const ItemProcessor& processor() const noexcept = 0;
  /// What is worth knowing about the tower, by name, for people: depth, heads, sizes of images.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> facts() const {
    return {};
  }

  /// Columns of a path's output rows.
  [[nodiscard]] virtual std::int64_t path_width(PathId path) const = 0;
  /// The buffers that a run of this capacity reads; names are unique, sizes grow with the capacity.
  [[nodiscard]] virtual std::vector<BufferDecl> inputs(PathId path,
                                                       const GraphCapacity& capacity) const = 0;
  /// Writes the inputs of one sub-batch: claims every declared buffer. Host arithmetic only.
  /// @param parts of the path, each with at least one unit: whole items, or some of their units.
  /// What is written for a unit follows from its bytes and the grid of its item alone: not from
  /// which unit it is, nor from the others.
  /// @throws Error(kUnavailable) if a buffer holds fewer rows than the parts need: they must run
  /// elsewhere. Error(kInvalidArgument) for more pixels than 32-bit offsets reach.
  virtual void fill_inputs(PathId path, const GraphCapacity& capacity,
                           std::span<const ItemPart> parts, InputWriter& writer) const = 0;
  /// Submits the whole forward of a path to ctx.stream and ctx.side; asynchronous. Uses nothing but
  /// `in`, weights and ctx; capture-safe.
  /// @param in the declared buffers on the device, at `capacity`.
  /// @param out device, [capacity.tokens, path_width(path)], activation dtype; live rows come
  /// first. Overlaps neither inputs nor weights.
  /// @throws Error(kOutOfMemory) if the arena is too small, Error of an op that refuses its
  /// operands.
  virtual void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity,
                       const NamedTensors& in, TensorView out) const = 0;
  /// Puts what a path made of a sub-batch to its place in the final rows of items, and beside it
  /// those rows that no path makes (newlines, separators). When all units of an item have come,
  /// each once, its rows are complete; in which order they come, and with which others, makes no
  /// difference. Submitted to ctx.stream; asynchronous. ctx.arena offers what the forward had.
  /// Default: the units of the only path, one after the other.
  /// @param rows device, [tokens of all parts, path_width(path)], part after part.
  /// @param out of each part, the rows of its whole item: device, [out_rows, out_width]; no overlap
  /// with `rows`.
  /// @throws Error(kInternal) if rows and destinations do not fit each other.
  virtual void assemble(ExecContext& ctx, PathId path, TensorView rows,
                        std::span<const ItemPart> parts, std::span<const TensorView> out) const;
};

}  // namespace fovea
