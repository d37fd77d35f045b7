#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::serve {

/// A part of a form; refers to the body.
struct FormPart {
  std::string name;
  std::string filename;      ///< empty: none
  std::string content_type;  ///< in lower case, without parameters; empty: none
  std::span<const std::uint8_t> bytes;
};

/// Most bytes of the headers of a part.
inline constexpr std::size_t kMaxPartHeaderBytes = 8192;

/// The parts of a body of multipart/form-data, in order. What stands before the first and behind
/// the last boundary is ignored. @param boundary the parameter of the Content-Type.
/// @throws ApiError(400, "invalid_value") for a boundary that is none or ends nowhere, parts
/// without a name, other headers than that of a part, transfer encodings, and more than `max_parts`
/// parts. Source: RFC 7578, section 4; RFC 2046, section 5.1.1.
[[nodiscard]] std::vector<FormPart> parse_multipart(std::span<const std::uint8_t> body,
                                                    std::string_view boundary,
                                                    std::size_t max_parts);

}  // namespace fovea::serve
