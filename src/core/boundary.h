#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include "core/check.h"

namespace fovea {

/// The last handler of every public function: `T f() try { ... } catch (...) { rethrow_as_error();
/// }`. Throws the exception that is being handled as an Error: std::bad_alloc and std::length_error
/// as kOutOfMemory, std::system_error (a thread that cannot start, a file system) as kIo,
/// everything else as kInternal. Errors pass as they are, and so does what call_back() brings.
/// Needs no memory where that has run out.
[[noreturn]] void rethrow_as_error();

/// An exception of a function of the caller, on its way out through the library.
struct ThrownByCaller {
  std::exception_ptr exception;
};

/// Calls a function that the caller of the library has handed in. What it throws leaves the library
/// as it is, whatever its type. @throws Error(kInvalidArgument) if there is none.
template <class Function, class... Args>
decltype(auto) call_back(const Function& function, Args&&... args) {
  if constexpr (std::is_constructible_v<bool, const Function&>) {
    FOVEA_CHECK(static_cast<bool>(function), kInvalidArgument, "expected a function, got none");
  }
  try {
    return function(std::forward<Args>(args)...);
  } catch (...) {
    throw ThrownByCaller{std::current_exception()};
  }
}

}  // namespace fovea
