// The lists of tensors of both formats of Phi-4-multimodal.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/phi4_multimodal/model.h"
#include "support/golden.h"

namespace fovea::phi4_multimodal {
namespace {

TEST(Phi4MultimodalWeights, AreTheTensorsOfThePublishedTower) {
  for (const Format format : {Format::kNative, Format::kVendor}) {
    const auto source = checkpoint::WeightSource::dummy(0);
    common::WeightLoader loader(source, "");
    Config c;
    c.format = format;
    (void)load_weights(loader, c, {});
    EXPECT_EQ(loader.report().size(), 26u * 16 + 3 + 2 + 4);
    const std::int64_t block = 4 * 1152 + 4 * (1152 * 1152 + 1152) + 2 * 1152 * 4304 + 4304 + 1152;
    const std::int64_t projector = 1152 * 3072 + 3072 + 3072 * 3072 + 3072;
    EXPECT_EQ(loader.parameters(), 589 * 1152 + 1024 * 1152 + 26 * block + 2 * 1152 + projector);
    const bool has_vendor_names =
        std::ranges::any_of(loader.report(), [](const TensorReport& tensor) {
          return tensor.name == "embed_tokens_extend.image_embed.sub_GN";
        });
    EXPECT_EQ(has_vendor_names, format == Format::kVendor);
  }
}

}  // namespace
}  // namespace fovea::phi4_multimodal
