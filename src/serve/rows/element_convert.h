#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "serve/rows/row_output.h"

namespace fovea::serve {

/// Appends numbers as elements of a type, little-endian, rounded to nearest even. Beyond the range
/// of a type they become infinite, with E4M3, which has no infinity, NaN; so does torch.
/// Source: IEEE 754-2019, 4.3.1; Micikevicius et al., "FP8 Formats for Deep Learning", table 1;
/// PyTorch, c10/util/Float8_e4m3fn.h.
void append_elements(std::span<const float> numbers, ElementType type, std::vector<std::byte>& out);

/// Turns the bytes of each element around.
void swap_bytes(std::span<std::byte> elements, std::size_t element_size);

}  // namespace fovea::serve
