#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

/// Adds is_hub_name(), find_on_disk() and pull_model().
void bind_hub(nanobind::module_& module);

}  // namespace fovea::python
