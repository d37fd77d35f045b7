#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

/// Adds MappedMemory: memory of another process on a GPU, as a tensor of bytes.
void bind_memory(nanobind::module_& module);

}  // namespace fovea::python
