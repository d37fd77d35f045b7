#pragma once

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

}  // namespace fovea::serve
