#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "models/common/weight_names.h"

namespace fovea {

namespace common {
class WeightLoader;
}

struct TowerLibrary;

/// The `architectures` of a family whose videos may be pruned, by each PruningMethod.
struct Prunable {
  std::span<const std::string_view> evs = {};
  std::span<const std::string_view> vidcom2 = {};
};

/// Keys of processor files whose values an item may have of its own (MediaItem::options): those
/// that say how large it is made, how it is cut and which frames are taken. What is said of the
/// others holds for the tower.
struct ItemOptionKeys {
  std::span<const std::string_view> image = {};
  std::span<const std::string_view> video = {};
};

/// The kinds of output that a model makes of an item.
enum class TowerOutput : std::uint8_t {
  kRows,         ///< the rows of its patches
  kVectors,      ///< one row, the family's own vector of a whole image
  kUnitVectors,  ///< the same, divided by its L2 norm
};

/// One family of vision towers. A new family is one folder and one line in registry.cpp.
struct ModelFamily {
  std::string_view name;                            ///< folder under models/
  std::span<const std::string_view> architectures;  ///< names in architectures of config.json
  /// The tensor by which the tower is found in a checkpoint: its name ends with the two together,
  /// and what stands before `anchor_tensor` is the prefix of all names that `make` asks for.
  std::string_view anchor_folder;  ///< "visual.", or empty
  std::string_view anchor_tensor;  ///< "patch_embed.proj.weight"

  /// Builds the model from the configuration files and the weights that it asks `loader` for. With
  /// a loader that only checks, the model plans, preprocesses and counts its work, but cannot run.
  /// @throws Error(kCorruptData) or Error(kUnsupported) naming the key of a file that is wrong,
  /// Error(kInvalidArgument) for impossible limits in `media`, and what the loader throws.
  std::unique_ptr<EncoderGraphModel> (*make)(const checkpoint::HfConfig& files,
                                             const MediaOptions& media,
                                             common::WeightLoader& loader);

  /// Whether its processor resizes images into a range of pixels, which MediaOptions::min_pixels
  /// and max_pixels replace.
  bool has_pixel_range = false;

  ItemOptionKeys item_options = {};

  /// Another name of `anchor_folder`, which some of the checkpoints have; "" where some have none.
  std::optional<std::string_view> other_folder = {};

  /// Other names of its tensors, which are looked for first.
  std::span<const common::OtherNames> other_names = {};

  Prunable prunable = {};

  /// The library of a tower that is not Fovea's, which makes it in the place of `make`.
  const TowerLibrary* library = nullptr;

  /// As make(), of a family whose model makes a vector of a whole image: the one with that vector
  /// as its only row. @param output not kRows.
  std::unique_ptr<EncoderGraphModel> (*make_vectors)(const checkpoint::HfConfig& files,
                                                     const MediaOptions& media,
                                                     common::WeightLoader& loader,
                                                     TowerOutput output) = nullptr;

  /// ModelReport::bfloat16_tolerance; more than the default only where the reference implementation
  /// in bfloat16 is so far from itself in float32, which docs/models says with its figures.
  double bfloat16_tolerance = 2e-2;

  /// vision_config.model_type of its checkpoints, where another family has the same architectures
  /// with any other tower; empty: it has any.
  std::string_view tower = {};
};

/// All families, in the order of docs/models.md.
[[nodiscard]] std::span<const ModelFamily* const> model_families() noexcept;

/// The family of an architecture string; of several, that for any tower.
/// @throws Error(kUnsupported) with the nearest family, if there is one, and the known names.
[[nodiscard]] const ModelFamily& find_family(std::string_view architecture);

/// The family of a checkpoint: of those of its architecture that for its tower, or the tower of the
/// library that it is to be encoded with.
/// @throws as known_architecture and load_tower_library, and Error(kCorruptData) for a tower whose
/// name is no text.
[[nodiscard]] ModelFamily family_of(const checkpoint::HfConfig& files);

/// Which of the families' architectures a checkpoint has: the first of its `architectures` that a
/// family knows, else the one that is spelled as its `model_type`, or as that of its `vlm_config`:
/// "glm4v_moe" means Glm4vMoeForConditionalGeneration. With a library, the name of its tower.
/// @throws Error(kUnsupported) as find_family; Error(kCorruptData) for a config.json without names.
[[nodiscard]] std::string_view known_architecture(const checkpoint::HfConfig& files);

/// The family whose tower is most like that of an architecture that no family knows, for messages;
/// empty if none is said to be.
[[nodiscard]] std::string_view nearest_family(std::string_view architecture);

}  // namespace fovea
