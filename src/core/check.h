#pragma once

#include <locale>
#include <sstream>
#include <string>

#include "fovea/error.h"

namespace fovea {

/// Joins printable things into one string, as the C locale writes them, whatever locale the program
/// has chosen: files are made of these strings, too. (g++ 12 has no <format>.)
/// @throws std::bad_alloc.
template <class... Parts>
[[nodiscard]] std::string cat(const Parts&... parts) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // where memory runs out, a stream else drops what follows
  out.imbue(std::locale::classic());
  (out << ... << parts);
  return std::move(out).str();
}

namespace detail {
/// Throws Error(code, message); for kInternal the message is prefixed with the place of the check.
[[noreturn]] void fail_check(ErrorCode code, const std::string& message, const char* file,
                             int line);
}  // namespace detail

}  // namespace fovea

/// Throws fovea::Error(ErrorCode::code, parts joined) unless the condition holds. The parts are
/// evaluated on failure only; they say what was expected, what came, and which object.
#define FOVEA_CHECK(condition, code, ...)                                                        \
  do {                                                                                           \
    if (!(condition)) [[unlikely]] {                                                             \
      ::fovea::detail::fail_check(::fovea::ErrorCode::code, ::fovea::cat(__VA_ARGS__), __FILE__, \
                                  __LINE__);                                                     \
    }                                                                                            \
  } while (false)
