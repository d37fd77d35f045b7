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

/// How many bytes from_base64() makes of text, at most.
[[nodiscard]] std::size_t base64_bytes(std::string_view text);

/// The parts of a data URL; `base64` refers to its text.
struct DataUrl {
  std::string type;  ///< lower case, for example "image/png"; empty if the URL names none
  std::string_view base64;
};

/// Whether text begins as a data URL does, in whatever case.
[[nodiscard]] bool is_data_url(std::string_view text);

/// Splits "data:[type][;parameter]*;base64,<data>"; the data is not looked at. Nothing for data in
/// another form than base64, for types and parameters with other characters than those of
/// tokens, and for more than 1024 bytes of them. Source: RFC 2397, section 3; RFC 2045,
/// section 5.1.
[[nodiscard]] std::optional<DataUrl> parse_data_url(std::string_view text);

}  // namespace fovea::serve
