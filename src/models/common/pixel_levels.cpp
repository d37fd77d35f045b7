// Weights of patch embeddings over levels of several bytes.
#include "models/common/pixel_levels.h"

#include <array>
#include <cstddef>
#include <utility>

namespace fovea::common {

namespace {

constexpr double kMiddle = 128;  // of the bytes

/// The factors of the bytes of a channel, and the number that is added.
struct ChannelScale {
  std::array<double, media::kLevelBytes> factors{};
  double constant = 0;
};

ChannelScale scale_of(const media::LevelScale& levels, const PixelScaling& scaling,
                      std::size_t channel) {
  const auto deviation = double{scaling.image_std[channel]};
  const double step = double{levels.step} * scaling.rescale_factor / deviation;
  ChannelScale scale;
  scale.constant = (double{levels.first} * scaling.rescale_factor - scaling.image_mean[channel]);
  scale.constant /= deviation;
  double share = 1;
  for (double& factor : scale.factors) {
    factor = step * share;
    scale.constant += kMiddle * factor;
    share /= 256;
  }
  return scale;
}

}  // namespace

media::NormalizeTable level_table() {
  media::NormalizeTable table{};
  for (auto& channel : table) {
    for (std::size_t b = 0; b < channel.size(); ++b) {
      channel[b] = static_cast<float>(static_cast<double>(b) - kMiddle);
    }
  }
  return table;
}

std::function<void(std::vector<float>&, std::vector<float>&)> split_levels(
    std::int64_t patch_pixels, const media::LevelScale& levels, const PixelScaling& scaling) {
  std::array<ChannelScale, 3> scales{};
  for (std::size_t c = 0; c < scales.size(); ++c) scales[c] = scale_of(levels, scaling, c);
  return [patch_pixels, scales](std::vector<float>& weight, std::vector<float>& bias) {
    std::vector<float> split;
    split.reserve(weight.size() * media::kLevelBytes);
    auto from = weight.begin();
    for (float& offset : bias) {
      double constant = 0;
      for (const ChannelScale& scale : scales) {
        const auto end = from + patch_pixels;
        for (const double factor : scale.factors) {
          for (auto w = from; w != end; ++w) split.push_back(static_cast<float>(*w * factor));
        }
        for (; from != end; ++from) constant += double{*from} * scale.constant;
      }
      offset += static_cast<float>(constant);
    }
    weight = std::move(split);
  };
}

}  // namespace fovea::common
