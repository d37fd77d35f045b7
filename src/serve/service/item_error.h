#pragma once

#include "fovea/media.h"
#include "fovea/options.h"
#include "serve/api_error.h"

namespace fovea::serve {

/// The error of an item of a request, as clients see it: with the code of the limit that an image
/// breaks, as far as its header tells. @param options those of the engine.
/// Source: docs/serving.md, "Errors".
[[nodiscard]] ApiError item_error(const Error& error, const MediaItem& item,
                                  const MediaOptions& options);

}  // namespace fovea::serve
