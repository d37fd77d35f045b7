// Callers fill in MediaItem by hand: nothing about it is taken for granted.
#include "engine/prepare/check_item.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/check.h"
#include "core/row_dtype.h"
#include "fovea/tower/core/shape.h"
#include "media/limits.h"
#include "rows/row_target.h"

namespace fovea {

namespace {

/// Whether a source has what it needs; the bytes of the others have to fit numbers.
struct SourceCheck {
  const MediaItem& media;

  void operator()(const EncodedFile& source) const {
    FOVEA_CHECK(!source.path.empty(), kInvalidArgument, media.name,
                ": expected the path of a file, got none");
  }
  void operator()(const FrameFiles& source) const {
    FOVEA_CHECK(!source.paths.empty(), kInvalidArgument, media.name,
                ": expected paths of frames, got none");
  }
  void operator()(const EncodedFrames& source) const {
    FOVEA_CHECK(!source.frames.empty(), kInvalidArgument, media.name,
                ": expected frames, got none");
    for (std::size_t i = 0; i < source.frames.size(); ++i) {
      FOVEA_CHECK(!source.frames[i].view().empty(), kInvalidArgument, frame_name(media, i),
                  ": expected an encoded image, got no bytes");
    }
  }
  void operator()(const EncodedBytes& source) const {
    FOVEA_CHECK(!source.bytes.view().empty(), kInvalidArgument, media.name,
                ": expected an encoded image or video, got no bytes");
  }
  void operator()(const auto&) const {}
};

bool is_count(std::int64_t number) noexcept {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // so that bytes of rows do not overflow
  return number >= 0 && number <= kMost;
}

/// The patches of all units, whose rows are the tokens of their paths; absent: they do not fit.
std::optional<std::int64_t> patches_of_units(const ItemSpec& spec) {
  std::int64_t patches = 0;
  for (std::size_t path = 0; path < spec.units.size(); ++path) {
    const ItemUnits& units = spec.units[path];
    if (!is_count(units.count) || !is_count(units.patches) || !is_count(units.rows)) return {};
    if (checked_mul(units.count, units.rows) != spec.path_tokens[path]) return {};
    const std::optional<std::int64_t> own = checked_mul(units.count, units.patches);
    if (!own || !is_count(*own)) return {};
    patches += *own;
  }
  return patches;
}

/// Where the pixels of the last unit begin.
std::size_t last_unit_of(const ItemPlan& plan) noexcept {
  std::size_t begin = 0;
  std::size_t end = 0;
  for (std::size_t path = 0; path < plan.unit_bytes.size(); ++path) {
    const ItemUnits units = plan.spec.units_on(static_cast<int>(path));
    if (units.count == 0) continue;
    begin = end + static_cast<std::size_t>(units.count - 1) * plan.unit_bytes[path];
    end = begin + plan.unit_bytes[path];
  }
  return begin;
}

ConstTensorView check_elements(const MediaBytes& bytes, DType dtype, std::int64_t num_rows,
                               std::int64_t row_width, const std::string& name, const char* rows) {
  const auto elements = checked_mul(num_rows, row_width);
  const auto element_bytes = static_cast<std::int64_t>(size_of(dtype));
  const auto expected = elements ? checked_mul(*elements, element_bytes) : std::nullopt;
  const std::span<const std::uint8_t> got = bytes.view();
  FOVEA_CHECK(expected && num_rows >= 0 && row_width >= 0 &&
                  static_cast<std::uint64_t>(*expected) == got.size(),
              kInvalidArgument, name, ": ", num_rows, " ", rows, " of ", row_width, " x ",
              to_string(dtype), " do not take ", got.size(), " bytes");
  return {reinterpret_cast<const std::byte*>(got.data()), dtype, {num_rows, row_width}};
}

}  // namespace

std::int64_t num_finished_rows(const MediaItem& media) noexcept {
  if (const auto* const known = std::get_if<PrecomputedRows>(&media.source)) {
    return known->rows.num_rows;
  }
  const auto* const known = std::get_if<PrecomputedBlock>(&media.source);
  return known != nullptr ? known->block.rows : 0;
}

const std::array<std::int64_t, 3>* patch_grid(const MediaItem& media) noexcept {
  if (const auto* const values = std::get_if<PixelValues>(&media.source)) return &values->grid_thw;
  if (const auto* const pixels = std::get_if<PixelBytes>(&media.source)) return &pixels->grid_thw;
  const auto* const block = std::get_if<PixelBlock>(&media.source);
  return block != nullptr ? &block->grid_thw : nullptr;
}

void check_source(const MediaItem& media) { std::visit(SourceCheck{media}, media.source); }

void check_block(const PixelBlock& block, const Device& device, const std::string& name) {
  FOVEA_CHECK(block.data != nullptr && block.num_patches >= 1 && block.patch_dim >= 1 &&
                  checked_mul(block.num_patches, block.patch_dim),
              kInvalidArgument, name, ": expected bytes of patches on the device, got ",
              block.num_patches, " of ", block.patch_dim);
  FOVEA_CHECK(block.device != RowBlock::kHost || device.properties().host_memory, kInvalidArgument,
              name, ": an engine on ", device.properties().name,
              " takes patches in host memory as pixel_bytes()");
  FOVEA_CHECK(block.stream.device == CallerStream::kNone || !device.properties().host_memory,
              kInvalidArgument, name, ": a stream of cuda:", block.stream.device,
              " needs an engine on a GPU, this one is on the CPU");
  check_memory(block.data, block.device, device, name);
}

std::string frame_name(const MediaItem& media, std::size_t frame) {
  return cat(media.name, "[", frame, "]");
}

void check_rgb(const RgbFrames& rgb, const std::string& name, const MediaLimits& limits) {
  FOVEA_CHECK(rgb.width_px >= 1 && rgb.height_px >= 1 && rgb.num_frames >= 1, kInvalidArgument,
              name, ": expected at least 1 frame of at least 1x1 pixels, got ", rgb.num_frames,
              " of ", rgb.width_px, "x", rgb.height_px);
  media::check_image_size(rgb.width_px, rgb.height_px, name, limits);
  media::check_num_frames(rgb.num_frames, name, limits);
  const std::size_t got = rgb.bytes.view().size();
  const auto bytes = checked_mul(3 * rgb.width_px * rgb.height_px, rgb.num_frames);
  FOVEA_CHECK(bytes && static_cast<std::uint64_t>(*bytes) == got, kInvalidArgument, name, ": ",
              rgb.num_frames, " frames of ", rgb.width_px, "x", rgb.height_px,
              " RGB pixels do not take ", got, " bytes");
}

void check_plan(const ItemPlan& plan, const std::string& name) {
  const ItemSpec& spec = plan.spec;
  FOVEA_CHECK(is_count(spec.input_rows) && is_count(spec.out_rows) && is_count(spec.num_seqs) &&
                  std::ranges::all_of(spec.path_tokens, is_count),
              kInternal, name, ": the tower plans ", spec.input_rows, " patches, ", spec.out_rows,
              " rows and ", spec.num_seqs, " sequences, and ",
              *std::ranges::min_element(spec.path_tokens), " to ",
              *std::ranges::max_element(spec.path_tokens), " tokens of a path");
  const bool is_cut =
      std::ranges::any_of(spec.units, [](const ItemUnits& units) { return units.count != 0; });
  FOVEA_CHECK(!is_cut || patches_of_units(spec) == spec.input_rows, kInternal, name,
              ": the units that the tower plans do not make up its ", spec.input_rows,
              " patches, and the tokens of each path");
  FOVEA_CHECK(last_unit_of(plan) <= plan.pixel_bytes, kInternal, name,
              ": the last unit that the tower plans begins at ", last_unit_of(plan), " of ",
              plan.pixel_bytes, " bytes of pixels");
}

ConstTensorView check_matrix(const RowMatrix& matrix, const std::string& name, const char* rows) {
  return check_elements(matrix.bytes, to_dtype(matrix.dtype), matrix.num_rows, matrix.row_width,
                        name, rows);
}

ConstTensorView check_matrix(const PixelBytes& pixels, const std::string& name, const char* rows) {
  return check_elements(pixels.patches, DType::kU8, pixels.num_patches, pixels.patch_dim, name,
                        rows);
}

}  // namespace fovea
