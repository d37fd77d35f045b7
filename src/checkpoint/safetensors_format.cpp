// Tables of the safetensors format.
#include "checkpoint/safetensors_format.h"

#include <algorithm>
#include <array>

namespace fovea::checkpoint {

namespace {

constexpr std::array kFileDTypes{
    FileDType{"BOOL", 8, {}},
    FileDType{"U8", 8, DType::kU8},
    FileDType{"I8", 8, {}},
    FileDType{"F8_E4M3", 8, DType::kF8E4M3},
    FileDType{"F8_E5M2", 8, {}},
    FileDType{"F8_E8M0", 8, {}},
    FileDType{"F4", 4, {}},
    FileDType{"F6_E2M3", 6, {}},
    FileDType{"F6_E3M2", 6, {}},
    FileDType{"I16", 16, {}},
    FileDType{"U16", 16, {}},
    FileDType{"F16", 16, DType::kF16},
    FileDType{"I32", 32, DType::kI32},
    FileDType{"BF16", 16, DType::kBF16},
    FileDType{"U32", 32, {}},
    FileDType{"F32", 32, DType::kF32},
    FileDType{"I64", 64, DType::kI64},
    FileDType{"U64", 64, {}},
    FileDType{"F64", 64, {}},
    FileDType{"C64", 64, {}},
};

}  // namespace

std::uint64_t read_length(std::span<const std::byte, kLengthBytes> bytes) noexcept {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= std::to_integer<std::uint64_t>(bytes[i]) << (kBitsPerByte * static_cast<int>(i));
  return length;
}

const FileDType* find_file_dtype(std::string_view name) noexcept {
  const auto it = std::ranges::find(kFileDTypes, name, &FileDType::name);
  return it == kFileDTypes.end() ? nullptr : &*it;
}

std::string_view file_name_of(DType dtype) noexcept {
  return std::ranges::find(kFileDTypes, std::optional(dtype), &FileDType::dtype)->name;
}

}  // namespace fovea::checkpoint
