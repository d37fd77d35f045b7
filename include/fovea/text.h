#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "fovea/error.h"
#include "fovea/export.h"

namespace fovea {

/// What stands at the beginning of a text.
struct Character {
  std::optional<char32_t> code;  ///< absent if the first byte begins no character of UTF-8
  std::size_t bytes = 1;
};

/// @param text not empty. Source: RFC 3629, section 4.
[[nodiscard]] FOVEA_API Character first_character(std::string_view text) noexcept;

/// The text with `replacement` for every byte that is no part of a character, and for every
/// character that `unwanted` says true of.
template <class Unwanted>
[[nodiscard]] std::string replace_characters(std::string_view text, std::string_view replacement,
                                             Unwanted unwanted) {
  std::string result;
  while (!text.empty()) {
    const Character character = first_character(text);
    const bool keep = character.code && !unwanted(*character.code);
    result += keep ? text.substr(0, character.bytes) : replacement;
    text.remove_prefix(character.bytes);
  }
  return result;
}

/// A text of somebody else as it may stand in a message, in a log and on a terminal: at most
/// `max_bytes` bytes, as shortened() has them, with a question mark for every control character
/// (C0, DEL, C1), every character that breaks lines or changes the direction of a text, and every
/// byte that is no UTF-8. A printable text is its own.
/// @throws Error(kOutOfMemory).
[[nodiscard]] FOVEA_API std::string printable(std::string_view text,
                                              std::size_t max_bytes = kMaxMessageBytes);

/// The text of a regular file, for files that a user names: keys, certificates, configurations. A
/// pipe or a device is refused without waiting for it, and a large file before it is read.
/// @throws Error(kNotFound), Error(kIo) with the system's reason, also for what is no regular file,
/// Error(kInvalidArgument) for a file of more than `max_bytes`, Error(kOutOfMemory).
[[nodiscard]] FOVEA_API std::string read_text_file(const std::string& path, std::size_t max_bytes);

}  // namespace fovea
