#pragma once

#include "fovea/embedding.h"

namespace fovea {

/// An item without its rows, and without what differs between items of equal content.
[[nodiscard]] Embedding facts_of(const Embedding& item);

}  // namespace fovea
