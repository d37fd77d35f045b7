#pragma once

#include <string>
#include <string_view>

#include "core/check.h"
#include "fovea/error.h"
#include "fovea/media.h"

namespace fovea {

/// How messages about an item begin.
[[nodiscard]] inline std::string label_of(const MediaItem& media) {
  return (media.name.empty() ? "item" : media.name) + ": ";
}

/// The error as it is for items of the same content, whatever they are called.
[[nodiscard]] inline Error without_name(const Error& error, const MediaItem& media) {
  std::string_view text = error.what();
  if (text.starts_with(label_of(media))) text.remove_prefix(label_of(media).size());
  return {error.code(), text};
}

[[nodiscard]] inline Error with_name(const Error& error, const MediaItem& media) {
  return {error.code(), label_of(media) + error.what()};
}

}  // namespace fovea
