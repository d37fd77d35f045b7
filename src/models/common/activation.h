#pragma once

#include <string>

#include "fovea/tower/ops/linear.h"

namespace fovea::common {

/// The function that a config file calls `name`, as transformers' table of activations does.
/// @param key where the name stands, for the message, for example "config.json: a.hidden_act".
/// @throws Error(kUnsupported) for a name that is not in the list of the message.
[[nodiscard]] ops::Activation parse_activation(const std::string& name, const std::string& key);

}  // namespace fovea::common
