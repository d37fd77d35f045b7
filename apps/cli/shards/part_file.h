#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shards/manifest.h"

namespace fovea::cli {

/// What is wrong with a part, beginning with its name; absent if it is a safetensors file of the
/// size written down that holds the rows of exactly these items. Reads its header.
[[nodiscard]] std::optional<std::string> problem_of_part(const std::string& path,
                                                         const PartLine& part,
                                                         const std::vector<ItemLine>& items);

}  // namespace fovea::cli
