#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/json.h"

namespace fovea::blocks {

/// Three numbers, one per channel; `fallback` where the key is absent.
/// @throws Error(kCorruptData) naming the key for anything but 3 numbers that f32 can hold.
[[nodiscard]] std::array<float, 3> read_channels(const JsonView& object, std::string_view key,
                                                 const std::array<float, 3>& fallback);

/// The same for divisors and factors. @throws also for numbers that are not above 0.
[[nodiscard]] std::array<float, 3> read_positive_channels(const JsonView& object,
                                                          std::string_view key,
                                                          const std::array<float, 3>& fallback);
[[nodiscard]] double read_positive(const JsonView& object, std::string_view key, double fallback);

/// Values of the three channels for log lines: "0.5,0.5,0.5".
[[nodiscard]] std::string channel_text(const std::array<float, 3>& values);

/// What stands in for a key that a processor file should have.
struct Assumption {
  bool given = false;     ///< the file has the key
  std::string_view key;   ///< as in the file
  std::string assumed{};  ///< "<name>=<value> ..."
};

/// "missing=<file> keys=<key>,<key> <name>=<value> ..." of what is not given, without the keys if
/// there is no file; empty if all is given.
/// @param has_file whether there is the file, or the part of one, that `file` names.
[[nodiscard]] std::string missing_text(const std::string& file, bool has_file,
                                       std::initializer_list<Assumption> assumptions);

}  // namespace fovea::blocks
