// Element types of rows.
#include "core/row_dtype.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "fovea/tower/core/row_copy.h"

namespace fovea {

DType to_dtype(RowDType dtype) noexcept {
  switch (dtype) {
    case RowDType::kFloat32: return DType::kF32;
    case RowDType::kBFloat16: return DType::kBF16;
    case RowDType::kFloat16: return DType::kF16;
  }
  return DType::kF32;
}

std::optional<RowDType> to_row_dtype(DType dtype) noexcept {
  for (const RowDType type : {RowDType::kFloat32, RowDType::kBFloat16, RowDType::kFloat16}) {
    if (to_dtype(type) == dtype) return type;
  }
  return std::nullopt;
}

namespace {

/// Whether memory may be read and written as floats. Bytes of a request begin anywhere.
bool may_hold_floats(const std::byte* memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory) % alignof(float) == 0;
}

}  // namespace

void convert_rows(DType from, const std::byte* source, DType dtype, std::byte* out,
                  std::size_t count) noexcept {
  if (count == 0) return;  // there may be no memory at all
  if (from == dtype) {
    std::memcpy(out, source, count * size_of(dtype));
  } else if (from == DType::kF32 && may_hold_floats(source)) {
    narrow_from_f32(reinterpret_cast<const float*>(source), dtype, out, count);
  } else if (dtype == DType::kF32 && may_hold_floats(out)) {
    widen_to_f32(from, source, reinterpret_cast<float*>(out), count);
  } else {
    std::array<float, 1024> wide;  // in the cache
    for (std::size_t at = 0; at < count; at += wide.size()) {
      const std::size_t part = std::min(wide.size(), count - at);
      widen_to_f32(from, source + at * size_of(from), wide.data(), part);
      narrow_from_f32(wide.data(), dtype, out + at * size_of(dtype), part);
    }
  }
}

void copy_rows(const RowCopy& copy) noexcept {
  const std::int64_t pieces = copy.is_packed() ? std::min<std::int64_t>(copy.rows, 1) : copy.rows;
  const std::int64_t count = copy.is_packed() ? copy.rows * copy.width : copy.width;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const auto row = static_cast<std::size_t>(piece);
    convert_rows(copy.from_dtype, copy.from + row * copy.from_stride, copy.to_dtype,
                 copy.to + row * copy.to_stride, static_cast<std::size_t>(count));
  }
}

}  // namespace fovea
