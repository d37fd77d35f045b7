#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fovea::cli {

/// What stands at the beginning of a text.
struct Character {
  std::optional<char32_t> code;  ///< absent if the first byte begins no character of UTF-8
  std::size_t bytes = 1;
};

/// @param text not empty.
[[nodiscard]] Character first_character(std::string_view text);

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

}  // namespace fovea::cli
