#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor_view.h"
#include "device/arena.h"
#include "device/device.h"
#include "fovea/media.h"

namespace fovea {

struct ExecContext;  // ops/context.h: a model's forward works with it, the manager only passes it
                     // on

/// Index of a path in GraphSpec::paths.
using PathId = int;

/// Most paths a model may declare; two towers is the most any supported family has.
inline constexpr int kMaxPaths = 4;

/// Most capture axes a model may declare.
inline constexpr int kMaxAxes = 2;

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
  bool exact_only = false;  ///< padding costs more than a replay saves: replay full graphs alone
};

/// What the graph manager must know about a model; constant after load.
/// Source: encoder graph specification, section 4.
struct GraphSpec {
  std::vector<Modality> modalities;
  std::int64_t out_width = 0;             ///< columns of a final row, deepstack levels included
  std::int64_t max_frames_per_video = 1;  ///< attention sequences a video may need
  /// Input rows of a sequence at which its attention costs as much as all else does, for balancing
  /// over devices; 0: the cost of an item follows its rows alone.
  std::int64_t attention_parity_rows = 0;
  std::vector<PathSpec> paths{PathSpec{}};
  /// Capture axes: discrete sizes besides the token budget that shapes depend on. A graph is
  /// captured for every combination of keys. Most models need none.
  std::vector<std::vector<std::int64_t>> axes;
};

/// One key per capture axis.
struct AxisKeys {
  int count = 0;
  std::array<std::int64_t, kMaxAxes> keys{};

  friend bool operator==(const AxisKeys&, const AxisKeys&) noexcept = default;
};

/// Smallest and largest token budget worth capturing.
struct BudgetRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

/// The sizes of an item that packing works with.
struct ItemSpec {
  std::int64_t input_rows = 0;  ///< patches
  std::int64_t out_rows = 0;    ///< final rows, newline and separator rows included
  std::int64_t num_seqs = 0;    ///< attention sequences (frames); an image has 1; each is at least
                                ///< one token of every path that the item takes
  std::array<std::int64_t, kMaxPaths> path_tokens{};  ///< tokens per path; budgets count these
};

/// How PreparedItem::pixels holds an item.
enum class PixelLayout : std::uint8_t {
  kPictures,  ///< resized pictures one after the other
  kPatches,   ///< patches one after the other, in the order of the tower's rows
};

/// Everything about one item that follows from its size by integer arithmetic.
struct ItemPlan {
  Modality modality = Modality::kImage;
  std::int64_t source_width_px = 0;  ///< both 0 where nothing but the grid is known
  std::int64_t source_height_px = 0;
  std::int64_t num_frames = 1;  ///< sampled frames of a video
  std::int64_t resized_width_px = 0;
  std::int64_t resized_height_px = 0;
  std::array<std::int64_t, 3> grid{};  ///< grid_thw in patches, or (1, tile rows, tile columns)
  bool has_grid_thw = false;           ///< `grid` is the grid_thw of the reference
  std::size_t pixel_bytes = 0;         ///< size of PreparedItem::pixels
  PixelLayout layout = PixelLayout::kPictures;
  ItemSpec spec;
};

/// 8-bit RGB pixels, interleaved, row-major; owns nothing.
struct RgbView {
  const std::uint8_t* rgb = nullptr;
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
};

/// An item ready for the tower: resized bytes in the layout that the model's fill_inputs expects.
struct PreparedItem {
  ItemPlan plan;
  std::vector<std::uint8_t> pixels;
};

/// Sizes that one recorded graph (or one eager run) is built for.
struct GraphCapacity {
  std::int64_t tokens = 0;  ///< of the path; a multiple of its unit
  std::int64_t items = 0;
  std::int64_t seqs = 0;  ///< attention sequences
  AxisKeys axes = {};

  friend bool operator==(const GraphCapacity&, const GraphCapacity&) noexcept = default;
};

/// What the tail of an input buffer, beyond what an item batch fills, must hold at replay.
enum class PadRule : std::uint8_t {
  kKeep,  ///< anything: live counts keep it from being read
  kZero,
  kRepeatLast,  ///< the last row written, repeated: offsets must not decrease
};

/// One named input of a path's forward. Declared, not handed over, so that the manager can allocate
/// all of them in one block, check capacities before it copies, and know how to pad.
struct BufferDecl {
  std::string name;
  DType dtype = DType::kI32;
  Shape shape;  ///< at capacity; axis 0 is what batches fill
  PadRule pad = PadRule::kKeep;
  /// The buffer is this many equal parts one after the other along axis 0, each filled from its
  /// beginning and padded by itself: [3 * rows, r] with 3 parts is [3, rows, r] filled on axis 1.
  std::int64_t parts = 1;
};

/// Tensors by name, in order of declaration.
class NamedTensors {
 public:
  void add(std::string name, TensorView view) { entries_.emplace_back(std::move(name), view); }
  /// @throws Error(kInternal) if there is none of that name.
  [[nodiscard]] TensorView operator[](std::string_view name) const {
    for (const auto& [key, view] : entries_) {
      if (key == name) return view;
    }
    FOVEA_CHECK(false, kInternal, "no input buffer is named \"", name, "\"");
  }
  [[nodiscard]] const std::vector<std::pair<std::string, TensorView>>& entries() const noexcept {
    return entries_;
  }

 private:
  std::vector<std::pair<std::string, TensorView>> entries_;
};

/// Host memory that a model fills before a run; graph/input_block.h implements what is behind it.
class InputWriter {
 public:
  struct Slot {
    const BufferDecl* decl = nullptr;
    std::byte* memory = nullptr;     ///< host, decl->shape at capacity
    std::int64_t rows_written = -1;  ///< of every part; -1: not claimed in this fill
    bool kept = false;
    bool too_small = false;  ///< a claim asked for more rows than there are
  };
  /// Bytes to be copied once filling is done.
  struct Copy {
    std::byte* to;
    std::span<const std::uint8_t> from;
  };
  InputWriter(std::span<Slot> slots, std::vector<Copy>& copies) noexcept
      : slots_(slots), copies_(copies) {}

  /// Claims the first `rows` entries along axis 0 of a buffer and returns them for writing; every
  /// element must then be written. Of a buffer in parts the first `rows` entries of every part are
  /// claimed and the whole buffer is returned.
  /// @throws Error(kUnavailable) if the buffer holds fewer rows: the batch must run elsewhere.
  /// @throws Error(kInternal) for an unknown name.
  [[nodiscard]] TensorView claim(std::string_view name, std::int64_t rows);
  /// Has the bytes of an item copied to `to`, inside a claimed buffer: like memcpy, but after the
  /// model has filled everything, and by several threads where there is much to copy.
  void copy(std::byte* to, std::span<const std::uint8_t> from) {
    if (!from.empty()) copies_.push_back({to, from});
  }
  /// Says that this batch does not use the buffer: it stays as it is, leftovers of any earlier
  /// run, which the forward must not read.
  void keep(std::string_view name);

 private:
  [[nodiscard]] Slot& slot(std::string_view name);
  std::span<Slot> slots_;
  std::vector<Copy>& copies_;
};

/// Output of one path for a sub-batch.
struct PathOutput {
  bool present = false;  ///< false: no item of the sub-batch needed the path
  TensorView rows;       ///< device, [tokens of the sub-batch, columns], in item order
  const NamedTensors* inputs = nullptr;  ///< device, of the path, as filled for this sub-batch
};

/// A vision encoder as the rest of the system sees it: preprocessing by size first and pixels
/// second, inputs as named buffers, one forward per path used for eager runs, warm-up and capture
/// alike. All methods are const and thread-safe. The protocol of the encoder graph specification,
/// section 4, in its general form (named paths; a single tower is the path "default").
class EncoderGraphModel {
 public:
  virtual ~EncoderGraphModel() = default;

  [[nodiscard]] virtual const GraphSpec& graph_spec() const noexcept = 0;
  /// Budgets to infer when the configuration names none. @param max_tokens of the consumer's step.
  [[nodiscard]] virtual BudgetRange budget_range(std::int64_t max_tokens) const = 0;

  // --- preprocessing ---

  /// @throws Error(kInvalidArgument) if the model cannot take a picture of this size.
  [[nodiscard]] virtual ItemPlan plan_image(std::int64_t width_px,
                                            std::int64_t height_px) const = 0;
  /// @param num_frames sampled frames.
  /// @throws Error(kUnsupported) if the model takes no videos, Error(kInvalidArgument) as above.
  [[nodiscard]] virtual ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                            std::int64_t height_px) const = 0;
  /// Indices of the frames that represent a video, ascending, in [0, total_frames).
  /// @param video_fps of the file, 0 if unknown. @param target_fps frames per second wanted.
  /// @throws Error(kUnsupported) if the model takes no videos; the default does.
  [[nodiscard]] virtual std::vector<std::int64_t> sample_frames(std::int64_t total_frames,
                                                                double video_fps,
                                                                double target_fps) const;
  /// Resizes source frames into `out` (plan.pixel_bytes bytes). One frame for an image; for a video
  /// plan.num_frames frames of the planned source size. No device involved.
  virtual void fill_pixels(const ItemPlan& plan, std::span<const RgbView> frames,
                           std::span<std::uint8_t> out) const = 0;

  // --- preprocessing that the caller has done: a second entrance to the same graph inputs ---

  /// Plan of an item whose pixel values the caller brings, from its grid_thw alone. Counts and grid
  /// are those that plan_image and plan_video give for a picture or video of that grid.
  /// @throws Error(kInvalidArgument) for a grid that no picture or video of the model has,
  /// Error(kUnsupported) if the model takes no pixel values; the default does.
  [[nodiscard]] virtual ItemPlan plan_grid(Modality modality,
                                           const std::array<std::int64_t, 3>& grid) const;
  /// Turns pixel values, as the reference's processor returns them, into `out` (plan.pixel_bytes
  /// bytes), so that the tower reads exactly what it would read of the picture.
  /// @param plan of plan_grid. @param values host, [plan.spec.input_rows, values of a patch], f32,
  /// f16 or bf16, unaligned is fine.
  /// @throws Error(kInvalidArgument) for another shape, and for values that no 8-bit picture has.
  virtual void fill_pixel_values(const ItemPlan& plan, const ConstTensorView& values,
                                 std::span<std::uint8_t> out) const;

  // --- encoding ---

  /// Columns of a path's output rows.
  [[nodiscard]] virtual std::int64_t path_width(PathId path) const = 0;
  /// Keys of the capture axes that this sub-batch needs, one per axis of the graph spec.
  [[nodiscard]] virtual AxisKeys axis_keys(std::span<const PreparedItem* const>) const {
    return {};
  }
  [[nodiscard]] virtual std::vector<BufferDecl> inputs(PathId path,
                                                       const GraphCapacity& capacity) const = 0;
  /// Writes the inputs of one sub-batch: claims every declared buffer, or keeps it on purpose. Host
  /// arithmetic only. Items that do not need the path contribute nothing.
  virtual void fill_inputs(PathId path, const GraphCapacity& capacity,
                           std::span<const PreparedItem* const> items,
                           InputWriter& writer) const = 0;
  /// Submits the whole forward of a path. Uses nothing but `in`, weights and ctx; capture-safe.
  /// @param out device, [capacity.tokens, path_width(path)], activation dtype; live rows come
  /// first.
  virtual void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity,
                       const NamedTensors& in, TensorView out) const = 0;
  /// Turns the path outputs of a sub-batch into final rows: out[i] is [items[i] out_rows,
  /// out_width] on the device. ctx.arena offers what the forward of the sub-batch had. Default: the
  /// rows of the only path, cut by item.
  virtual void assemble(ExecContext& ctx, std::span<const PathOutput> outputs,
                        std::span<const PreparedItem* const> items,
                        std::span<const TensorView> out) const;
};

}  // namespace fovea
