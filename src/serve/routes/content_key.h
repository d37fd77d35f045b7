#pragma once

#include <string>

#include "fovea/media.h"
#include "fovea/options.h"

namespace fovea::serve {

/// Whether the engine names the rows of its items itself: Embedding::key.
[[nodiscard]] bool has_keys(const EngineOptions& engine);

/// A name for the rows of an item where the engine has none: a SHA-256, 64 hexadecimal digits, of
/// all they depend on. @param fingerprint of ServedModel.
[[nodiscard]] std::string content_key(const MediaItem& item, const std::string& fingerprint);

}  // namespace fovea::serve
