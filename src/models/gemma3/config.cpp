// config.json of Gemma 3.
#include "models/gemma3/config.h"

#include <cmath>

#include "core/check.h"
#include "models/common/config_reader.h"

namespace fovea::gemma3 {

namespace {

constexpr std::int64_t kTokens = 256;  // of a view, where the file does not say it

/// Patches a side of a token.
std::int64_t read_pooling(const JsonView& root, const common::SquareView& view) {
  const std::int64_t tokens = common::read_size(root, "mm_tokens_per_image", kTokens);
  const std::int64_t side = std::lround(std::sqrt(static_cast<double>(tokens)));
  FOVEA_CHECK(side * side == tokens && view.grid() % side == 0, kUnsupported, root.path(),
              ": mm_tokens_per_image: ", tokens,
              " is not the number of equal squares of a grid of ", view.grid(), "x", view.grid(),
              " patches");
  return view.grid() / side;
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  Config c{.tower = common::read_siglip(root.at("vision_config"))};
  c.tower.view.merge = read_pooling(root, c.tower.view);
  c.text_hidden_size = common::as_size(root.at("text_config").at("hidden_size"));
  return c;
}

}  // namespace fovea::gemma3
