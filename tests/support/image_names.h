#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"

namespace fovea::test {

/// Names of the images whose tensors end with `suffix`.
inline std::vector<std::string> image_names(const checkpoint::SafetensorsFile& file,
                                            std::string_view suffix) {
  std::vector<std::string> names;
  for (const checkpoint::TensorEntry& entry : file.header().tensors) {
    if (entry.name.ends_with(suffix)) {
      names.push_back(entry.name.substr(0, entry.name.size() - suffix.size()));
    }
  }
  return names;
}

}  // namespace fovea::test
