// From the names of published checkpoints to those of others.
#include "models/common/weight_names.h"

namespace fovea::common {

std::string WeightNames::stored(std::string_view asked) const {
  std::string name(asked);
  for (const RenamedPart& part : renamed_) {
    const std::size_t at = name.find(part.asked);
    if (at != std::string::npos) name.replace(at, part.asked.size(), part.stored);
  }
  return prefix_ + name;
}

}  // namespace fovea::common
