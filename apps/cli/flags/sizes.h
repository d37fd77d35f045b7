#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/engine.h"

namespace fovea::cli {

/// Reads "640x480,1024x1024x8f": width x height, and for a video the number of frames with an f
/// behind it. "@FILE" reads the same from a file, one or more per line; from # to the end of the
/// line is a comment.
/// @throws UsageError naming the part that is wrong, Error(kNotFound) for a missing file.
[[nodiscard]] std::vector<ItemSize> parse_sizes(const std::string& text);

/// The file that parse_sizes() reads a list from, if it does: an input of the run.
[[nodiscard]] std::vector<std::string> files_of_sizes(const std::string& text);

/// Reads one "WxH" or "WxHxNf". Whether images may be that large is up to MediaLimits.
/// @throws UsageError.
[[nodiscard]] ItemSize parse_size(const std::string& text);

/// Refuses sizes that `model` cannot take or that exceed the limits of `options`, before their
/// pixels are made. @throws Error as plan() does.
void check_sizes(const std::string& model, std::span<const ItemSize> sizes, EngineOptions options);

/// Formats a size as parse_size reads it.
[[nodiscard]] std::string to_text(const ItemSize& size);

}  // namespace fovea::cli
