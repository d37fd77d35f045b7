#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "fovea/embedding.h"

namespace fovea::python {

/// Adds the class Embedding.
void bind_embedding(nanobind::module_& module);

/// Embeddings as a list of Python objects, which own their rows. Needs the GIL.
[[nodiscard]] nanobind::list embedding_list(std::vector<Embedding> items);

}  // namespace fovea::python
