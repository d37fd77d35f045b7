#include "serve/text/headers.h"

#include <algorithm>

namespace fovea::serve {
namespace {

char lower(char character) {
  return character >= 'A' && character <= 'Z' ? static_cast<char>(character - 'A' + 'a')
                                              : character;
}

}  // namespace

const std::string* find_header(const Headers& headers, std::string_view name) {
  const auto found = std::ranges::find_if(headers, [&](const Header& header) {
    return std::ranges::equal(header.name, name, {}, lower, lower);
  });
  return found == headers.end() ? nullptr : &found->value;
}

}  // namespace fovea::serve
