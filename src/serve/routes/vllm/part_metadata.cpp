#include "serve/routes/vllm/part_metadata.h"

#include <algorithm>
#include <array>

namespace fovea::serve {
namespace {

struct FamilyRule {
  std::string_view family;
  MetadataRule rule;
};
constexpr std::array kRules{FamilyRule{"qwen2_vl", MetadataRule::kGrid},
                            FamilyRule{"qwen2_5_vl", MetadataRule::kGrid},
                            FamilyRule{"qwen3_vl", MetadataRule::kGridAndTimestamps}};

}  // namespace

MetadataRule metadata_rule(std::string_view family) {
  const auto* const found = std::ranges::find(kRules, family, &FamilyRule::family);
  return found == kRules.end() ? MetadataRule::kNone : found->rule;
}

JsonObject part_metadata(MetadataRule rule, const Embedding& item) {
  JsonObject metadata;
  if (rule == MetadataRule::kNone || !item.grid_thw || item.retained) return metadata;
  const bool is_video = item.modality == Modality::kVideo;
  const bool has_times = is_video && rule == MetadataRule::kGridAndTimestamps;
  if (has_times && item.timestamps.empty()) return metadata;
  metadata.set(is_video ? "video_grid_thw" : "image_grid_thw", *item.grid_thw);
  if (has_times) metadata.set("timestamps", item.timestamps);
  return metadata;
}

}  // namespace fovea::serve
