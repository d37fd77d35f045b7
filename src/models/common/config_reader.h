#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"

namespace fovea::common {

/// Largest sizes that are taken from a file: far above every published tower, and low enough for
/// products of sizes to stay below 63 bits.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxDepth = 1024;

/// A number in [1, most]; `fallback` where the key is absent. Some files write a list of one or two
/// equal numbers for it.
/// @throws Error(kCorruptData) naming the key for anything else, Error(kUnsupported) for two
/// numbers that differ.
[[nodiscard]] std::int64_t read_size(const JsonView& object, std::string_view key,
                                     std::int64_t fallback, std::int64_t most = kMaxSize);

/// The same of a value that is there. @throws as read_size.
[[nodiscard]] std::int64_t as_size(const JsonView& value, std::int64_t most = kMaxSize);

/// The same of a number in [0, most].
[[nodiscard]] std::int64_t read_count(const JsonView& object, std::string_view key,
                                      std::int64_t fallback, std::int64_t most);

/// The value of a key that has an older name. Nothing if the object has neither.
[[nodiscard]] std::optional<JsonView> find_renamed(const JsonView& object, std::string_view key,
                                                   std::string_view before);

/// The side of a square that `object` gives as [height, width]; `fallback` where the key is absent.
/// @throws Error(kCorruptData) naming the key for anything but two sizes, Error(kUnsupported) if
/// they differ.
[[nodiscard]] std::int64_t read_square(const JsonView& object, std::string_view key,
                                       std::int64_t fallback);

/// Requires that `width` divides into `heads` heads of whole vectors of 8 elements, which kernels
/// work on.
/// @param object where the numbers come from, for the message.
/// @throws Error(kCorruptData) if it does not divide, Error(kUnsupported) for another head size.
void check_heads(const JsonView& object, std::int64_t width, std::int64_t heads);

/// depth and num_heads of a tower into the fields of a family's Config. Each has a second name,
/// which counts where both are there: attribute_map in the reference (transformers 5.24).
/// @throws as read_size.
template <class Config>
void read_depth_and_heads(const JsonView& vision, Config& c) {
  for (const char* key : {"depth", "num_hidden_layers"})
    c.depth = read_size(vision, key, c.depth, kMaxDepth);
  for (const char* key : {"num_heads", "num_attention_heads"})
    c.num_heads = read_size(vision, key, c.num_heads);
}

/// The sizes of a transformer into the fields of a family's Config, which are named as the keys.
/// @throws as read_size, and as check_heads.
template <class Config>
void read_transformer(const JsonView& vision, Config& c) {
  c.hidden_size = read_size(vision, "hidden_size", c.hidden_size);
  c.num_hidden_layers = read_size(vision, "num_hidden_layers", c.num_hidden_layers, kMaxDepth);
  c.num_attention_heads = read_size(vision, "num_attention_heads", c.num_attention_heads);
  c.intermediate_size = read_size(vision, "intermediate_size", c.intermediate_size);
  check_heads(vision, c.hidden_size, c.num_attention_heads);
}

/// vision_config of a config.json. Models that hear or speak as well have it in their
/// thinker_config, retrievers around another model in their vlm_config.
/// @throws Error(kCorruptData) naming the key if there is none.
[[nodiscard]] JsonView vision_config(const JsonView& root);

/// A view of image_size in patches of patch_size. Where a patch is a token, the convolution over
/// patches leaves out what is right of and below the last whole one.
/// @param defaults where a key is absent; its other numbers stay.
/// @throws Error(kCorruptData) for sizes out of bounds, Error(kUnsupported) for other than 3
/// channels and for patches that do not make whole tokens.
[[nodiscard]] SquareView read_square_view(const JsonView& vision, SquareView defaults);

/// Requires the one value that the tower has, where the key is there.
/// @throws Error(kUnsupported) naming the key for another, Error(kCorruptData) for another type.
void require_number(const JsonView& object, std::string_view key, double only);
void require_text(const JsonView& object, std::string_view key, std::string_view only);
void require_flag(const JsonView& object, std::string_view key, bool only);

/// The elements of a list that must have `count`. @throws Error(kCorruptData) for another number.
[[nodiscard]] std::vector<JsonView> elements_of(const JsonView& list, std::size_t count);

/// The numbers of `list`, ascending indexes of blocks of a tower of `depth` blocks.
/// @throws Error(kCorruptData) naming file and key for anything else: more indexes than there are
/// blocks, one beyond them, one that occurs twice.
[[nodiscard]] std::vector<std::int64_t> read_block_indexes(const JsonView& list,
                                                           std::int64_t depth);

/// Patches and tokens of `vision`, under patch_size or spatial_patch_size, and spatial_merge_size.
/// @param defaults where a key is absent; its temporal_patch_size is the only one supported.
/// @throws Error(kCorruptData) for sizes out of bounds, Error(kUnsupported) for other than 3
/// channels or another temporal_patch_size.
[[nodiscard]] GridGeometry read_grid_geometry(const JsonView& vision, GridGeometry defaults);

/// vision.rope_parameters.rope_theta, else vision.rope_theta, where older files have it. The one
/// form of positions that towers have is called "axial", and "default" before transformers 5.20.
/// @throws Error(kCorruptData) for anything but a number above 0, Error(kUnsupported) for another
/// rope_type.
[[nodiscard]] double read_rope_theta(const JsonView& vision, double fallback);

/// The function that a config file calls `name`, as transformers' table of activations does.
/// @param key where the name stands, for the message, for example "config.json: a.hidden_act".
/// @throws Error(kUnsupported) for a name that is not in the list of the message.
[[nodiscard]] ops::Activation parse_activation(const std::string& name, const std::string& key);

}  // namespace fovea::common
