#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/export.h"
#include "fovea/media.h"
#include "fovea/reports.h"
#include "fovea/row_block.h"
#include "fovea/tower/core/margins.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/device/team.h"

namespace fovea {

/// Most paths a model may declare; two towers is the most any supported family has.
inline constexpr int kMaxPaths = 4;

/// The sizes of an item that packing works with.
struct ItemSpec {
  std::int64_t input_rows = 0;  ///< patches
  std::int64_t out_rows = 0;    ///< final rows, newline and separator rows included
  std::int64_t num_seqs = 0;    ///< attention sequences (frames); an image has 1; where each is not
                                ///< at least one token of every path that the item takes, small
                                ///< budgets may have no room for it
  std::array<std::int64_t, kMaxPaths> path_tokens{};  ///< tokens per path; budgets count these
  /// Equal units per path, none where the item does not take it: patches add up to input_rows, rows
  /// to the path_tokens of each path. None on any path: the whole item is one unit.
  std::array<ItemUnits, kMaxPaths> units{};

  /// The units on a path, also where the whole item is one; none where it does not take the path.
  [[nodiscard]] ItemUnits units_on(int path) const noexcept;
};

/// ItemInfo::units.
[[nodiscard]] FOVEA_API std::vector<ItemUnits> units_of(const ItemSpec& spec);

/// How PreparedItem::pixels holds an item.
enum class PixelLayout : std::uint8_t {
  kImages,   ///< resized frames, or square views, one after the other
  kPatches,  ///< patches one after the other, in the order of the tower's rows
};

/// Everything about one item that follows from its size by integer arithmetic.
struct ItemPlan {
  Modality modality = Modality::kImage;
  std::int64_t source_width_px = 0;  ///< both 0 where nothing but the grid is known
  std::int64_t source_height_px = 0;
  std::int64_t num_frames = 1;  ///< sampled frames of a video
  std::int64_t resized_width_px = 0;
  std::int64_t resized_height_px = 0;
  /// Largest sides that fill_frame resizes a frame to, in any view; it then takes frames that were
  /// decoded at a fraction of their size as well. Both 0: it takes frames at full size alone.
  std::int64_t target_width_px = 0;
  std::int64_t target_height_px = 0;
  std::array<std::int64_t, 3> grid{};  ///< grid_thw in patches, or (1, tile rows, tile columns)
  bool has_grid_thw = false;           ///< `grid` is the grid_thw of the reference
  std::size_t pixel_bytes = 0;         ///< size of PreparedItem::pixels
  PixelLayout layout = PixelLayout::kImages;
  /// Bytes of PreparedItem::pixels that a unit of each path takes. Those of a path lie one after
  /// the other, path after path; the very last may be shorter. 0: all bytes are those of one unit.
  std::array<std::size_t, kMaxPaths> unit_bytes{};
  ItemSpec spec;
};

/// 8-bit RGB pixels, interleaved, row-major; owns nothing.
struct RgbView {
  const std::uint8_t* rgb = nullptr;
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  Margins margins = {};  ///< none where the image has its full size
};

/// An item ready for the tower: resized bytes in the layout that the model's fill_inputs expects;
/// or some units of it, which are all that a run may then take.
struct PreparedItem {
  ItemPlan plan;  ///< of the whole item
  std::vector<std::uint8_t> pixels;
  std::size_t first_byte = 0;  ///< of the item's pixels: where `pixels` begins
  /// All pixels, where the caller has them on the device: then `pixels` is empty, and the host does
  /// not read these.
  std::span<const std::uint8_t> on_device = {};
  CallerStream written_by = {};  ///< behind what this queue holds they are there
};

/// The units of an item that one of several runs takes, where they share it: only an item whose
/// rows are the units of one path, one after the other, can be shared.
struct FOVEA_API ItemShare {
  UnitRange units = {};  ///< on that path; none: the whole item, whatever its paths
  bool counts = true;    ///< in statistics, where each item counts once: its other runs do not
  TeamPart part = {};    ///< of the only one of these units

  /// The only path of an item that can be shared; absent: it cannot, or has a single unit.
  [[nodiscard]] static std::optional<int> path_of(const ItemSpec& spec) noexcept;
  /// The same, also where the item has a single unit.
  [[nodiscard]] static std::optional<int> only_path_of(const ItemSpec& spec) noexcept;
  /// The sizes of this share.
  /// @throws Error(kInternal) for some units of an item that cannot be shared.
  [[nodiscard]] ItemSpec spec_of(const ItemSpec& item) const;
};

/// Consecutive units of an item on one path: what a run of the path takes of it. Refers to the
/// item.
struct FOVEA_API ItemPart {
  const PreparedItem* item = nullptr;
  int path = 0;
  std::int64_t first = 0;  ///< unit of the path
  std::int64_t count = 0;  ///< of units, at least 1
  TeamPart team = {};      ///< of the only one of these units

  /// All units of an item on a path, which it must take.
  [[nodiscard]] static ItemPart whole(const PreparedItem& item, int path) noexcept;

  [[nodiscard]] const ItemPlan& plan() const noexcept { return item->plan; }
  [[nodiscard]] ItemUnits units() const noexcept { return plan().spec.units_on(path); }
  /// Patches that enter the path, tokens that it makes of them, and attention sequences.
  [[nodiscard]] std::int64_t patches() const noexcept;
  [[nodiscard]] std::int64_t tokens() const noexcept;
  [[nodiscard]] std::int64_t seqs() const noexcept;
  /// The bytes of these units, in the item's pixels; of a unit all, whatever its team computes
  /// here.
  [[nodiscard]] std::span<const std::uint8_t> pixels() const noexcept;
};

/// What happens to an item on the host, before any device sees it: sizes first, by integer
/// arithmetic, pixels second. All methods are const and thread-safe.
class FOVEA_API ItemProcessor {
 public:
  virtual ~ItemProcessor() = default;

  /// @throws Error(kInvalidArgument) if the model cannot take an image of this size.
  [[nodiscard]] virtual ItemPlan plan_image(std::int64_t width_px,
                                            std::int64_t height_px) const = 0;
  /// @param num_frames sampled frames.
  /// @throws Error(kUnsupported) if the model takes no videos, as the default does;
  /// Error(kInvalidArgument) if it cannot take frames of this size.
  [[nodiscard]] virtual ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                            std::int64_t height_px) const;
  /// Plan of an item whose pixel values the caller brings, from its grid_thw alone. Counts and grid
  /// are those that plan_image and plan_video give for an image or video of that grid.
  /// @throws Error(kInvalidArgument) for a grid that no image or video of the model has,
  /// Error(kUnsupported) if the model takes no pixel values; the default does.
  [[nodiscard]] virtual ItemPlan plan_grid(Modality modality,
                                           const std::array<std::int64_t, 3>& grid) const;
  /// As plan_grid for patches of bytes, of which all are there: its pixels are those
  /// [plan.spec.input_rows, patch_dim], in this order.
  /// @throws as plan_grid; Error(kInvalidArgument) for another patch_dim; Error(kUnsupported) if
  /// the reference's processor returns patches in another order than the tower reads them.
  [[nodiscard]] virtual ItemPlan plan_patches(Modality modality,
                                              const std::array<std::int64_t, 3>& grid,
                                              std::int64_t patch_dim) const;
  /// Indices of the frames that represent a video, ascending, in [0, total_frames).
  /// @param video_fps of the file, 0 if unknown. @param target_fps frames per second wanted.
  /// @throws Error(kUnsupported) if the model takes no videos; the default does.
  [[nodiscard]] virtual std::vector<std::int64_t> sample_frames(std::int64_t total_frames,
                                                                double video_fps,
                                                                double target_fps) const;

  /// Seconds that stand for each temporal patch of a video, as prompts of the family name it.
  /// @param frame_seconds of the sampled frames, ascending. @return the same where a patch is one
  /// frame, which is the default.
  [[nodiscard]] virtual std::vector<double> timestamps(std::span<const double> frame_seconds) const;

  /// Resizes one source frame into its part of `out` (plan.pixel_bytes bytes). `out` is complete
  /// when each of plan.num_frames frames was given once, in any order; an image is frame 0.
  /// @param frame of the planned size, or if the plan names a target, 1/2, 1/4 or 1/8 of that:
  /// sides rounded up, and margins that say by how much.
  /// @throws Error(kInvalidArgument) for a frame of another size, or of an index that is not in [0,
  /// plan.num_frames).
  virtual void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                          std::span<std::uint8_t> out) const = 0;
  /// Turns pixel values, as the reference's processor returns them, into `out` (plan.pixel_bytes
  /// bytes), so that the tower reads exactly what it would read of the image.
  /// @param plan of plan_grid. @param values host, [plan.spec.input_rows, values of a patch], f32,
  /// f16 or bf16, or u8 where nothing was normalised; unaligned is fine.
  /// @throws Error(kInvalidArgument) for another shape, and for values that no 8-bit image has.
  virtual void fill_pixel_values(const ItemPlan& plan, const ConstTensorView& values,
                                 std::span<std::uint8_t> out) const;

  /// What preprocessing takes for granted because the checkpoint lacks a processor file that says
  /// it, or a key in it: "missing=<file> [keys=<key>,...] <name>=<value> ..."; empty if nothing.
  [[nodiscard]] virtual std::string assumptions() const { return {}; }
  /// Where the values of preprocessing come from, for a line of the log: "image.file=\"<file>\"
  /// image.given=<key>,... image.class_default=<key>,... image.option=<key>,...", the same for
  /// video, and image.assumed=<key>,... where there is no file; empty if no file is read.
  [[nodiscard]] virtual std::string sources() const { return {}; }
};

}  // namespace fovea
