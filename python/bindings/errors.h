#pragma once

#include <nanobind/nanobind.h>

#include "fovea/error.h"

namespace fovea::python {

/// Lets functions of the module throw fovea::Error: Python sees fovea.Error with its `code`.
void translate_errors();

/// The class fovea.Error. Needs the GIL.
[[nodiscard]] nanobind::object error_type();

/// The exception itself, an instance of fovea.Error. Needs the GIL.
[[nodiscard]] nanobind::object error_object(const Error& error);

/// An instance of fovea.Error as the C++ object it came from. Needs the GIL.
[[nodiscard]] Error error_from(nanobind::handle error);

}  // namespace fovea::python
