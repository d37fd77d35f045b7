#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace fovea::python {

/// A str, bytes or os.PathLike as the bytes that the system knows the file by. Needs the GIL.
/// @throws TypeError for anything else.
[[nodiscard]] std::string file_path(nanobind::handle object);

/// The other way round, as os.fsdecode(): also what is no text can be given back to file_path().
[[nodiscard]] nanobind::str path_text(std::string_view path);

/// A text as it may stand in a message: bytes that are no UTF-8 become escapes.
[[nodiscard]] nanobind::str printable_text(std::string_view text);

}  // namespace fovea::python
