#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

/// Adds the class Engine, on which that of the package is built, and what plan() returns.
void bind_engine(nanobind::module_& module);

}  // namespace fovea::python
