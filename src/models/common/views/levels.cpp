// Patch embeddings over pixels that are no whole numbers.
#include "models/common/views/levels.h"

#include <utility>

#include "media/resize/resize_fine.h"

namespace fovea::common {

void split_levels(std::int64_t patch_px, const std::array<float, 3>& mean,
                  const std::array<float, 3>& std, std::vector<float>& weight,
                  std::vector<float>& bias) {
  const std::int64_t area = patch_px * patch_px;
  std::vector<float> split;
  split.reserve(weight.size() * media::kLevelBytes);
  auto from = weight.begin();
  for (float& offset : bias) {
    double constant = 0;
    for (std::size_t channel = 0; channel < 3; ++channel, from += area) {
      const double zero = double{mean[channel]} / double{std[channel]};
      float scale = 1;
      for (std::size_t plane = 0; plane < media::kLevelBytes; ++plane, scale /= 256) {
        for (auto w = from; w != from + area; ++w) {
          split.push_back(*w * scale);
          if (plane > 0) constant += zero * double{split.back()};
        }
      }
    }
    offset += static_cast<float>(constant);
  }
  weight = std::move(split);
}

PatchEmbedding load_patch_embedding(WeightLoader& loader, const std::string& name,
                                    std::int64_t features, const SquareView& view,
                                    const PixelScaling& scaling) {
  const std::int64_t patch = view.patch_px;
  PatchEmbedding embedding{.normalize = loader.constant(scaling.table()), .proj = {}};
  if (view.planes == 1) {
    embedding.proj = loader.linear(name, features, {3, patch, patch});
    return embedding;
  }
  embedding.proj =
      loader.linear_from(name, {features, 3, patch, patch}, 3 * view.planes * patch * patch,
                         [&](std::vector<float>& weight, std::vector<float>& bias) {
                           split_levels(patch, scaling.image_mean, scaling.image_std, weight, bias);
                         });
  return embedding;
}

}  // namespace fovea::common
