#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fovea::serve {

/// Text with %41 and the like replaced; nothing for a '%' without two hexadecimal digits.
/// Source: RFC 3986, section 2.1.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace fovea::serve
