#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace fovea::common {

/// A part of the names that a family asks for, and what stands in its place in a checkpoint.
struct RenamedPart {
  std::string_view asked;
  std::string_view stored;
};

/// Where a checkpoint has the tensors that a family asks for by the names of published checkpoints.
class WeightNames {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a prefix is all that most have.
  WeightNames(const char* prefix) : WeightNames(std::string(prefix)) {}
  /// @param renamed outlives this object.
  WeightNames(std::string prefix, std::span<const RenamedPart> renamed = {})
      : prefix_(std::move(prefix)), renamed_(renamed) {}
  // NOLINTEND(google-explicit-constructor)

  /// The prefix, and the name with the first occurrence of each part renamed, part after part.
  [[nodiscard]] std::string stored(std::string_view asked) const {
    std::string name(asked);
    for (const RenamedPart& part : renamed_) {
      const std::size_t at = name.find(part.asked);
      if (at != std::string::npos) name.replace(at, part.asked.size(), part.stored);
    }
    return prefix_ + name;
  }

 private:
  std::string prefix_;
  std::span<const RenamedPart> renamed_;
};

/// Names under which some checkpoints have the tensors of a family: those of the modules of
/// transformers, which its state_dict() has, or those that its save_pretrained() writes.
struct OtherNames {
  std::string_view anchor_folder;  ///< as those of ModelFamily, of such a checkpoint
  std::string_view anchor_tensor;
  std::span<const RenamedPart> renamed;
};

inline constexpr std::array<RenamedPart, 1> kWithoutVisionModel{
    {{"vision_tower.vision_model.", "vision_tower."}}};
/// Those of a CLIP or SigLIP tower: transformers 5 has no module `vision_model` in it, and saves a
/// model so that it has made itself. Source: transformers 5.24, conversion_mapping.py.
inline constexpr std::array<OtherNames, 1> kNamesWithoutVisionModel{
    {{"", "vision_tower.embeddings.patch_embedding.weight", kWithoutVisionModel}}};

}  // namespace fovea::common
