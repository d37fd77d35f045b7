#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/row_block.h"

namespace fovea::python {

/// The memory of tensors [rows, width] as blocks, which are valid while `capsules` stay. They are
/// what `__dlpack__()` returns, not yet taken over by anybody, and are left that way: whoever holds
/// the last reference gives the memory back. Needs the GIL.
/// @param list its name, for messages.
/// @throws as row_block() of fovea/dlpack.h, with the name of the tensor in front; TypeError for
/// what is no such capsule.
[[nodiscard]] std::vector<RowBlock> row_blocks(const nanobind::list& capsules, std::int64_t width,
                                               const std::string& list);

}  // namespace fovea::python
