#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::serve {

struct Header {
  std::string name;
  std::string value;
};
using Headers = std::vector<Header>;

/// The value of the first header of that name, whatever its case; null if there is none.
[[nodiscard]] const std::string* find_header(const Headers& headers, std::string_view name);

/// Whether a client has what `etag`, which includes its quotes, names: If-None-Match lists it, or
/// is "*". Source: RFC 9110, section 13.1.2.
[[nodiscard]] bool has_entity(const Headers& headers, std::string_view etag);

/// Whether text is a token, as methods and names of headers are. Source: RFC 9110, section 5.6.2.
[[nodiscard]] bool is_http_token(std::string_view text) noexcept;

/// The names that stand between commas, in lower case, without the blanks around them.
[[nodiscard]] std::vector<std::string> listed_names(std::string_view list);

/// The value of a header with parameters: `image/png; q=1`, `form-data; name="file"`.
struct ContentType {
  std::string type;    ///< in lower case
  Headers parameters;  ///< as they came, without quotes; find_header() finds them
};

/// Nothing for text that breaks the form, or gives a parameter twice.
/// Source: RFC 9110, sections 5.6.2, 5.6.4, 5.6.6 and 8.3.1.
[[nodiscard]] std::optional<ContentType> parse_content_type(std::string_view text);

}  // namespace fovea::serve
