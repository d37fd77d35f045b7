// The ops between pixels and the first block, on the CPU.
#include "ops/cpu/patch.h"

#include <algorithm>
#include <cstring>

#include "device/cpu/cpu_device.h"
#include "ops/cpu/row_loop.h"
#include "ops/cpu/vector/vector_kernels.h"

namespace fovea::cpu {

namespace {

constexpr std::int64_t kByteValues = 256;

/// One entry of PatchifyArgs::sources.
struct PatchSource {
  std::int32_t offset;
  std::int32_t row_stride;
  std::int32_t frame_stride;
  std::int32_t unused;
};

/// One frame of one patch: three planes from interleaved pixels.
/// `plane` is the distance of the first values of two channels in the output.
void write_frame(const std::uint8_t* pixels, std::int64_t row_stride, const float* table,
                 std::int64_t patch_size, std::int64_t plane, float* out) {
  for (std::int64_t y = 0; y < patch_size; ++y, pixels += row_stride, out += patch_size) {
    for (std::int64_t x = 0; x < patch_size; ++x) {
      out[x] = table[pixels[3 * x]];
      out[plane + x] = table[kByteValues + pixels[3 * x + 1]];
      out[2 * plane + x] = table[2 * kByteValues + pixels[3 * x + 2]];
    }
  }
}

void patchify_row(const ops::PatchifyArgs& args, std::int64_t row) {
  const PatchSource source = args.sources.as<PatchSource>()[row];
  const std::int64_t size = args.patch_size;
  const std::int64_t frames = args.temporal_patch_size;
  const std::int64_t last = source.offset + (frames - 1) * std::int64_t{source.frame_stride} +
                            (size - 1) * std::int64_t{source.row_stride} + 3 * size;
  FOVEA_CHECK(source.offset >= 0 && source.row_stride >= 0 && source.frame_stride >= 0 &&
                  last <= args.pixels.shape[0],
              kInternal, "patchify: row ", row, " reads bytes ", source.offset, "..", last, " of ",
              args.pixels.shape[0]);
  float* const out = args.out.as<float>() + row * args.out.shape[1];
  for (std::int64_t f = 0; f < frames; ++f) {
    write_frame(args.pixels.as<std::uint8_t>() + source.offset + f * source.frame_stride,
                source.row_stride, args.table.as<float>(), size, frames * size * size,
                out + f * size * size);
  }
}

/// Place of entry i of n on an axis of the position table: the two neighbours and the weight of the
/// second. The linspace formula is that of AddPositionsArgs.
struct AxisPlace {
  std::int64_t low;
  std::int64_t high;
  float fraction;
};

AxisPlace place_on_axis(std::int32_t i, std::int32_t n, std::int64_t side) {
  const auto end = static_cast<float>(side - 1);
  float position = 0.0f;
  if (n > 1) {
    const float step = end / static_cast<float>(n - 1);
    position =
        i < n / 2 ? static_cast<float>(i) * step : end - static_cast<float>(n - 1 - i) * step;
  }
  const auto low = static_cast<std::int64_t>(position);
  return {low, std::min(low + 1, side - 1), position - static_cast<float>(low)};
}

void add_position_row(const ops::AddPositionsArgs& args, std::int64_t row,
                      const VectorKernels& kernels) {
  const std::int32_t* const p = args.positions.as<std::int32_t>() + 4 * row;  // y, x, height, width
  FOVEA_CHECK(p[0] >= 0 && p[0] < p[2] && p[1] >= 0 && p[1] < p[3], kInternal,
              "add_positions_bilinear: row ", row, " is at (", p[0], ", ", p[1], ") of a ", p[2],
              " x ", p[3], " grid");
  const AxisPlace y = place_on_axis(p[0], p[2], args.side);
  const AxisPlace x = place_on_axis(p[1], p[3], args.side);
  const std::int64_t cols = args.x.shape[1];
  const auto entry = [&](std::int64_t table_y, std::int64_t table_x) {
    return args.table.as<float>() + (table_y * args.side + table_x) * cols;
  };
  const float* const entries[4] = {entry(y.low, x.low), entry(y.low, x.high), entry(y.high, x.low),
                                   entry(y.high, x.high)};
  const float weights[4] = {(1 - y.fraction) * (1 - x.fraction), (1 - y.fraction) * x.fraction,
                            y.fraction * (1 - x.fraction), y.fraction * x.fraction};
  kernels.add_weighted4(entries, weights, args.x.as<float>() + row * cols, cols);
}

}  // namespace

void patchify(Stream& stream, const ops::PatchifyArgs& args) {
  static_cast<CpuStream&>(stream).submit([args](ThreadPool& pool) {
    for_row_ranges(pool, count_live(args.rows, args.out.shape[0]), args.out.shape[1],
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r) patchify_row(args, r);
                   });
  });
}

void add_positions_bilinear(Stream& stream, const ops::AddPositionsArgs& args, CpuIsa isa) {
  const VectorKernels& kernels = vector_kernels(isa);
  static_cast<CpuStream&>(stream).submit([args, &kernels](ThreadPool& pool) {
    for_row_ranges(pool, count_live(args.rows, args.x.shape[0]), 4 * args.x.shape[1],
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r) add_position_row(args, r, kernels);
                   });
  });
}

void gather_rows(Stream& stream, const ops::GatherRowsArgs& args) {
  static_cast<CpuStream&>(stream).submit([args](ThreadPool& pool) {
    const std::int64_t cols = args.x.shape[1];
    const auto* const index = args.index.as<std::int32_t>();
    for_row_ranges(
        pool, count_live(args.rows, args.out.shape[0]), cols,
        [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t r = first; r < last; ++r) {
            FOVEA_CHECK(index[r] >= 0 && index[r] < args.x.shape[0], kInternal, "gather_rows: row ",
                        r, " wants row ", index[r], " of ", args.x.shape[0]);
            std::memcpy(args.out.as<float>() + r * cols, args.x.as<float>() + index[r] * cols,
                        static_cast<std::size_t>(cols) * sizeof(float));
          }
        });
  });
}

}  // namespace fovea::cpu
