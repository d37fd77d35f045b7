#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::serve {

/// Base64 of the alphabet with '+' and '/', padded with '='. Source: RFC 4648, section 4.
[[nodiscard]] std::string to_base64(std::span<const std::byte> bytes);

/// The bytes of base64 text, whose padding may be missing. Nothing for characters outside the
/// alphabet (line breaks too), padding elsewhere than at the end, and bits behind the last byte
/// that are not zero. Looks at the interrupt of the thread for each MiB of text.
/// @throws Error(kCancelled) or Error(kDeadline) under an Interrupt.
/// Source: RFC 4648, sections 3.2, 3.3, 3.5 and 4.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> from_base64(std::string_view text);

}  // namespace fovea::serve
