// Sizes of towers, read with bounds.
#include "models/common/config_reader.h"

#include <utility>

#include "core/check.h"
#include "models/common/processor_file.h"

namespace fovea::common {

namespace {

template <class Value>
void require(const JsonView& where, const Value& value, const Value& only) {
  FOVEA_CHECK(value == only, kUnsupported, where.path(), ": only ", only, " is supported, got ",
              value);
}

/// A size that the towers cannot vary.
void require_size(const JsonView& object, std::string_view key, std::int64_t only) {
  if (const auto value = object.find(key)) require(*value, as_size(*value), only);
}

}  // namespace

std::int64_t as_size(const JsonView& value, std::int64_t most) {
  if (value.is_array()) {
    const std::size_t count = value.num_elements();
    FOVEA_CHECK(count == 1 || count == 2, kCorruptData, value.path(),
                ": expected a number, got a list of ", count);
    const std::vector<JsonView> list = value.elements();
    const std::int64_t first = as_size(list.front(), most);
    FOVEA_CHECK(as_size(list.back(), most) == first, kUnsupported, value.path(),
                ": only equal numbers are supported, got ", first, " and ",
                as_size(list.back(), most));
    return first;
  }
  const std::int64_t number = value.as_int();
  FOVEA_CHECK(number >= 1 && number <= most, kCorruptData, value.path(),
              ": expected a number in [1, ", most, "], got ", number);
  return number;
}

std::int64_t read_size(const JsonView& object, std::string_view key, std::int64_t fallback,
                       std::int64_t most) {
  const auto value = object.find(key);
  return value ? as_size(*value, most) : fallback;
}

JsonView vision_config(const JsonView& root) {
  for (const char* around : {"thinker_config", "vlm_config"}) {
    if (const auto inner = root.find(around)) return inner->at("vision_config");
  }
  return root.at("vision_config");
}

std::int64_t read_count(const JsonView& object, std::string_view key, std::int64_t fallback,
                        std::int64_t most) {
  const std::int64_t count = object.int_or(key, fallback);
  FOVEA_CHECK(count >= 0 && count <= most, kCorruptData, object.path(), ".", key,
              ": expected a number in [0, ", most, "], got ", count);
  return count;
}

std::optional<JsonView> find_renamed(const JsonView& object, std::string_view key,
                                     std::string_view before) {
  const auto value = object.find(key);
  return value ? value : object.find(before);
}

SquareView read_square_view(const JsonView& vision, SquareView view) {
  constexpr std::int64_t kMaxSide = 4096;
  require_size(vision, "num_channels", 3);
  view.side_px = read_size(vision, "image_size", view.side_px, kMaxSide);
  view.patch_px = read_size(vision, "patch_size", view.patch_px, kMaxSide);
  FOVEA_CHECK(view.grid() > 0, kCorruptData, vision.path(), ".image_size: ", view.side_px,
              " pixels hold no patch of ", view.patch_px);
  if (view.merge == 1) return view;
  FOVEA_CHECK(view.side_px % (view.patch_px * view.merge) == 0, kUnsupported, vision.path(),
              ".image_size: ", view.side_px, " is not a multiple of ", view.patch_px * view.merge,
              " (tokens of ", view.merge, "x", view.merge, " patches)");
  return view;
}

void require_number(const JsonView& object, std::string_view key, double only) {
  if (const auto value = object.find(key)) require(*value, value->as_number(), only);
}

void require_text(const JsonView& object, std::string_view key, std::string_view only) {
  if (const auto value = object.find(key)) require(*value, value->as_string(), std::string(only));
}

void require_flag(const JsonView& object, std::string_view key, bool only) {
  const auto text = [](bool flag) { return std::string(flag ? "true" : "false"); };
  if (const auto value = object.find(key)) require(*value, text(value->as_bool()), text(only));
}

std::vector<JsonView> elements_of(const JsonView& list, std::size_t count) {
  FOVEA_CHECK(list.num_elements() == count, kCorruptData, list.path(), ": expected ", count,
              " numbers, got ", list.num_elements());
  return list.elements();
}

std::vector<std::int64_t> read_block_indexes(const JsonView& list, std::int64_t depth) {
  FOVEA_CHECK(std::cmp_less_equal(list.num_elements(), depth), kCorruptData, list.path(),
              ": expected at most ", depth, " block indexes, got ", list.num_elements());
  std::vector<std::int64_t> indexes;
  for (const JsonView& entry : list.elements()) {
    const std::int64_t index = entry.as_int();
    FOVEA_CHECK(index >= 0 && index < depth, kCorruptData, entry.path(),
                ": expected a block index below ", depth, ", got ", index);
    FOVEA_CHECK(indexes.empty() || index > indexes.back(), kCorruptData, entry.path(),
                ": expected ascending block indexes, got ", index, " after ", indexes.back());
    indexes.push_back(index);
  }
  return indexes;
}

GridGeometry read_grid_geometry(const JsonView& vision, GridGeometry g) {
  constexpr std::int64_t kMaxResizeFactor = std::int64_t{1} << 12;
  for (const char* key : {"in_chans", "in_channels"}) require_size(vision, key, 3);
  require_size(vision, "temporal_patch_size", g.temporal_patch_size);
  g.patch_size = read_size(vision, "spatial_patch_size", g.patch_size);
  g.patch_size = read_size(vision, "patch_size", g.patch_size);
  g.spatial_merge_size = read_size(vision, "spatial_merge_size", g.spatial_merge_size);
  FOVEA_CHECK(g.resize_factor() <= kMaxResizeFactor, kCorruptData, vision.path(), ": patch_size ",
              g.patch_size, " times spatial_merge_size ", g.spatial_merge_size, " is above ",
              kMaxResizeFactor);
  return g;
}

double read_rope_theta(const JsonView& vision, double fallback) {
  constexpr const char* kKey = "rope_theta";
  const double beside = read_positive(vision, kKey, fallback);
  const auto rope = find_renamed(vision, "rope_parameters", "rope_scaling");
  if (!rope) return beside;
  const std::string type = rope->string_or("rope_type", rope->string_or("type", "axial"));
  FOVEA_CHECK(type == "axial" || type == "default", kUnsupported, rope->path(),
              ".rope_type: axial and default are supported, got ", type);
  return read_positive(*rope, kKey, beside);
}

std::int64_t read_square(const JsonView& object, std::string_view key, std::int64_t fallback) {
  const auto list = object.find(key);
  if (!list) return fallback;
  const std::vector<JsonView> sides = elements_of(*list, 2);
  const std::int64_t height = as_size(sides[0]);
  const std::int64_t width = as_size(sides[1]);
  FOVEA_CHECK(height == width, kUnsupported, list->path(), ": only squares are supported, got ",
              height, " x ", width);
  return height;
}

void check_heads(const JsonView& object, std::int64_t width, std::int64_t heads) {
  FOVEA_CHECK(width % heads == 0, kCorruptData, object.path(), ": ", heads,
              " heads do not divide a width of ", width);
  FOVEA_CHECK(width / heads % 8 == 0, kUnsupported, object.path(), ": head size ", width / heads,
              " (", width, " / ", heads, ") is not a multiple of 8");
}

ops::Activation parse_activation(const std::string& name, const std::string& key) {
  using ops::Activation;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::kGeluTanh;
  if (name == "gelu") return Activation::kGeluErf;
  if (name == "quick_gelu") return Activation::kQuickGelu;
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "relu2") return Activation::kRelu2;
  throw Error(ErrorCode::kUnsupported, cat(key,
                                           ": expected gelu_pytorch_tanh, gelu_new, gelu, "
                                           "quick_gelu, silu, swish or relu2, got ",
                                           name));
}

}  // namespace fovea::common
