#pragma once

#include <memory>

#include "ops/kernels.h"

namespace fovea::test {

/// The kernels `cpu` of the CPU backend, but every op also writes finite values to the rows of its
/// output beyond the live ones, as ops on a GPU may (LiveRows). A forward over them has the rows of
/// the CPU backend unless it reads, or keeps something in, rows that are not live.
[[nodiscard]] std::unique_ptr<Kernels> make_overwriting_kernels(std::unique_ptr<Kernels> cpu);

}  // namespace fovea::test
