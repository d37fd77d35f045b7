#pragma once

#include <array>
#include <string_view>

#include "fovea/row_formats.h"

// What writer and reader of torch archives share. Source: docs/reference/row_formats.md, "torch".
namespace fovea::torch_format {

inline constexpr std::string_view kLocalMagic{"PK\x03\x04", 4};
inline constexpr std::string_view kCentralMagic{"PK\x01\x02", 4};
inline constexpr std::string_view kEndMagic{"PK\x05\x06", 4};
inline constexpr std::size_t kLocalBytes = 30;
inline constexpr std::size_t kEndBytes = 22;

struct Storage {
  std::string_view name;
  StoredType type;
};
inline constexpr std::array<Storage, 4> kStorages{{{"FloatStorage", StoredType::kFloat32},
                                                   {"BFloat16Storage", StoredType::kBFloat16},
                                                   {"HalfStorage", StoredType::kFloat16},
                                                   {"LongStorage", StoredType::kInt64}}};

/// CRC-32 as ZIP archives have it.
[[nodiscard]] std::uint32_t checksum(std::span<const std::byte> bytes) noexcept;

}  // namespace fovea::torch_format
