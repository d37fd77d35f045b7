#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/options.h"

namespace fovea::serve {

/// Element types of replies.
enum class ElementType : std::uint8_t { kFloat32, kFloat16, kBFloat16, kFp8E4M3, kFp8E5M2 };
enum class ByteOrder : std::uint8_t { kLittle, kBig };

/// The name as requests spell it: "float32", "bfloat16", "fp8_e4m3".
[[nodiscard]] std::string_view to_string(ElementType type);
[[nodiscard]] std::size_t size_of(ElementType type);
/// Takes "bf16" and the other names of kDTypeAliases, too.
/// @throws ApiError(400, "unsupported_dtype") for another name.
[[nodiscard]] ElementType element_type(std::string_view name, const std::string& param);
[[nodiscard]] ElementType element_type(RowDType dtype);

/// Appends numbers as elements of a type, little-endian, rounded to nearest even. Beyond the range
/// of a type they become infinite, with E4M3, which has no infinity, NaN; so does torch.
/// Source: IEEE 754-2019, 4.3.1; Micikevicius et al., "FP8 Formats for Deep Learning", table 1;
/// PyTorch, c10/util/Float8_e4m3fn.h.
void append_elements(std::span<const float> numbers, ElementType type, std::vector<std::byte>& out);

/// Turns the bytes of each element around.
void swap_bytes(std::span<std::byte> elements, std::size_t element_size);

}  // namespace fovea::serve
