// The ops between pixels and the first block, and rows of a convolution, on the CPU.
#include "ops/cpu/rowwise/rowwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/check.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/rowwise/row_loop.h"

namespace fovea::cpu {

namespace {

constexpr std::int64_t kByteValues = 256;

/// One entry of PatchifyArgs::sources.
struct PatchSource {
  std::int32_t offset;
  std::int32_t row_stride;
  std::int32_t frame_stride;
  std::int32_t channel_stride;  ///< 0: channels are interleaved
};

/// One frame of one patch: three planes of pixels that lie `kPixelStride` bytes apart.
/// @param channel_stride bytes from one channel of a pixel to the next.
/// @param plane the distance of the first values of two channels in the output.
template <std::int64_t kPixelStride>
void write_frame(const std::uint8_t* pixels, std::int64_t row_stride, std::int64_t channel_stride,
                 const float* table, std::int64_t patch_size, std::int64_t plane, float* out) {
  for (std::int64_t y = 0; y < patch_size; ++y, pixels += row_stride, out += patch_size) {
    for (std::int64_t x = 0; x < patch_size; ++x) {
      const std::uint8_t* const pixel = pixels + kPixelStride * x;
      out[x] = table[pixel[0]];
      out[plane + x] = table[kByteValues + pixel[channel_stride]];
      out[2 * plane + x] = table[2 * kByteValues + pixel[2 * channel_stride]];
    }
  }
}

void patchify_row(const ops::PatchifyArgs& args, std::int64_t row) {
  const PatchSource source = args.sources.as<PatchSource>()[row];
  const std::int64_t size = args.patch_size;
  const std::int64_t frames = args.temporal_patch_size;
  const bool are_planes = source.channel_stride > 0;
  const std::int64_t last =
      source.offset + (frames - 1) * std::int64_t{source.frame_stride} +
      (size - 1) * std::int64_t{source.row_stride} +
      (are_planes ? 2 * std::int64_t{source.channel_stride} + size : 3 * size);
  FOVEA_CHECK(source.offset >= 0 && source.row_stride >= 0 && source.frame_stride >= 0 &&
                  source.channel_stride >= 0 && last <= args.pixels.shape[0],
              kInternal, "patchify: row ", row, " reads bytes ", source.offset, "..", last, " of ",
              args.pixels.shape[0]);
  float* const out = args.out.as<float>() + row * args.out.shape[1];
  const auto write = are_planes ? &write_frame<1> : &write_frame<3>;
  for (std::int64_t f = 0; f < frames; ++f) {
    write(args.pixels.as<std::uint8_t>() + source.offset + f * source.frame_stride,
          source.row_stride, are_planes ? source.channel_stride : 1, args.table.as<float>(), size,
          frames * size * size, out + f * size * size);
  }
}

/// Entries of an axis of the position table that a patch reads, and their weights.
template <std::size_t kTaps>
struct AxisTaps {
  std::array<std::int64_t, kTaps> entry;
  std::array<float, kTaps> weight;
};

/// The two entries of an axis around a position in [0, side).
AxisTaps<2> taps_at(float position, std::int64_t side) {
  const auto low = static_cast<std::int64_t>(position);
  const float fraction = position - static_cast<float>(low);
  return {{low, std::min(low + 1, side - 1)}, {1 - fraction, fraction}};
}

/// The taps of patch i of n, on an axis of `side` entries, as add_positions_bilinear defines them.
AxisTaps<2> linear_taps(std::int32_t i, std::int32_t n, std::int64_t side) {
  const auto end = static_cast<float>(side - 1);
  float position = 0.0f;
  if (n > 1) {
    const float step = end / static_cast<float>(n - 1);
    position =
        i < n / 2 ? static_cast<float>(i) * step : end - static_cast<float>(n - 1 - i) * step;
  }
  return taps_at(position, side);
}

/// The place of the centre of patch i of n on an axis of `side` entries.
float centre(std::int32_t i, std::int32_t n, std::int64_t side) {
  const float scale = static_cast<float>(side) / static_cast<float>(n);
  return (static_cast<float>(i) + 0.5f) * scale - 0.5f;
}

/// The taps of patch i of n, on an axis of `side` entries, as add_positions_half_pixel defines
/// them.
AxisTaps<2> half_pixel_taps(std::int32_t i, std::int32_t n, std::int64_t side) {
  return taps_at(std::max(centre(i, n, side), 0.0f), side);
}

/// The taps of patch i of n, on an axis of `side` entries, as add_positions_bicubic defines them.
AxisTaps<4> cubic_taps(std::int32_t i, std::int32_t n, std::int64_t side) {
  constexpr float kA = -0.75f;
  const auto near = [](float d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
  const auto far = [](float d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  const float position = centre(i, n, side);
  const float low = std::floor(position);
  const float t = position - low;
  AxisTaps<4> taps{{}, {far(t + 1), near(t), near(1 - t), far(2 - t)}};
  for (std::int64_t k = 0; k < 4; ++k) {
    taps.entry[static_cast<std::size_t>(k)] =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(low) - 1 + k, 0, side - 1);
  }
  return taps;
}

/// x[row] += the entries at every pair of taps, four at a time.
template <std::size_t kTaps>
void add_position_row(const ops::AddPositionsArgs& args, std::int64_t row, const AxisTaps<kTaps>& y,
                      const AxisTaps<kTaps>& x, AddWeighted4 add_weighted4) {
  const std::int64_t cols = args.x.shape[1];
  std::array<const float*, kTaps * kTaps> entries;
  std::array<float, kTaps * kTaps> weights;
  for (std::size_t k = 0; k < entries.size(); ++k) {
    const std::int64_t entry = y.entry[k / kTaps] * args.table_width + x.entry[k % kTaps];
    entries[k] = args.table.as<float>() + entry * cols;
    weights[k] = y.weight[k / kTaps] * x.weight[k % kTaps];
  }
  for (std::size_t k = 0; k < entries.size(); k += 4) {
    add_weighted4(&entries[k], &weights[k], args.x.as<float>() + row * cols, cols);
  }
}

/// One line of all grids of interpolate_grids. Every row begins at 0, to which the neighbours are
/// added.
void interpolate_line(const ops::InterpolateGridsArgs& args, std::int64_t line,
                      AddWeighted4 add_weighted4) {
  const std::int64_t cols = args.out.shape[1];
  const std::int64_t grid = line / args.out_height;
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  const AxisTaps<2> y =
      half_pixel_taps(narrow(line % args.out_height), narrow(args.out_height), args.height);
  const float* const x = args.x.as<float>() + grid * args.height * args.width * cols;
  for (std::int64_t j = 0; j < args.out_width; ++j) {
    const AxisTaps<2> taps = half_pixel_taps(narrow(j), narrow(args.out_width), args.width);
    std::array<const float*, 4> entries;
    std::array<float, 4> weights;
    for (std::size_t k = 0; k < entries.size(); ++k) {
      entries[k] = x + (y.entry[k / 2] * args.width + taps.entry[k % 2]) * cols;
      weights[k] = y.weight[k / 2] * taps.weight[k % 2];
    }
    float* const out = args.out.as<float>() + (line * args.out_line_rows + j) * cols;
    std::fill_n(out, cols, 0.0f);
    add_weighted4(entries.data(), weights.data(), out, cols);
  }
}

/// A filter of an axis of `side` entries around the centre of patch i of n, as
/// add_positions_antialiased defines it. Its weights are computed when they are asked for: their
/// number has no bound, and running allocates nothing.
class TriangleFilter {
 public:
  TriangleFilter(std::int32_t i, std::int32_t n, std::int64_t side) {
    const float scale = static_cast<float>(side) / static_cast<float>(n);
    radius_ = std::max(scale, 1.0f);
    centre_ = scale * (static_cast<float>(i) + 0.5f);
    first_ = std::max<std::int64_t>(static_cast<std::int64_t>(centre_ - radius_ + 0.5f), 0);
    last_ = std::min<std::int64_t>(static_cast<std::int64_t>(centre_ + radius_ + 0.5f), side);
    for (std::int64_t k = first_; k < last_; ++k) sum_ += height(k);
  }

  [[nodiscard]] std::int64_t first() const { return first_; }
  [[nodiscard]] std::int64_t last() const { return last_; }  ///< excluded
  [[nodiscard]] float weight(std::int64_t k) const { return height(k) / sum_; }

 private:
  [[nodiscard]] float height(std::int64_t k) const {
    return std::max(1 - std::abs(static_cast<float>(k) + 0.5f - centre_) / radius_, 0.0f);
  }

  float radius_ = 1;
  float centre_ = 0;
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  float sum_ = 0;
};

/// x[row] += the entries under both filters, four at a time.
void add_filtered_row(const ops::AddPositionsArgs& args, std::int64_t row, const TriangleFilter& y,
                      const TriangleFilter& x, AddWeighted4 add_weighted4) {
  const std::int64_t cols = args.x.shape[1];
  float* const out = args.x.as<float>() + row * cols;
  std::array<const float*, 4> entries;
  std::array<float, 4> weights{};
  std::size_t count = 0;
  for (std::int64_t v = y.first(); v < y.last(); ++v) {
    for (std::int64_t h = x.first(); h < x.last(); ++h) {
      entries[count] = args.table.as<float>() + (v * args.table_width + h) * cols;
      weights[count] = y.weight(v) * x.weight(h);
      if (++count < entries.size()) continue;
      add_weighted4(entries.data(), weights.data(), out, cols);
      count = 0;
    }
  }
  if (count == 0) return;
  std::fill(entries.begin() + static_cast<std::ptrdiff_t>(count), entries.end(), entries[0]);
  std::fill(weights.begin() + static_cast<std::ptrdiff_t>(count), weights.end(), 0.0f);
  add_weighted4(entries.data(), weights.data(), out, cols);
}

/// Calls add(row, p) for every live row with p = y, x, height, width of its place.
/// @param op for messages.
template <class Add>
void submit_positions(const char* op, Stream& stream, const ops::AddPositionsArgs& args, Add add) {
  static_cast<CpuStream&>(stream).submit([=](ThreadPool& pool) {
    const auto add_checked = [&](std::int64_t row) {
      const auto* const p = args.positions.as<std::int32_t>() + 4 * row;  // y, x, height, width
      FOVEA_CHECK(p[0] >= 0 && p[0] < p[2] && p[1] >= 0 && p[1] < p[3], kInternal, op, ": row ",
                  row, " is at (", p[0], ", ", p[1], ") of a ", p[2], " x ", p[3], " grid");
      add(row, p);
    };
    for_row_ranges(pool, count_live(args.rows, args.x.shape[0]), 4 * args.x.shape[1],
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r) add_checked(r);
                   });
  });
}

/// The same of the taps of both axes. @param taps linear_taps, half_pixel_taps or cubic_taps.
template <class Taps>
void submit_taps(const char* op, Stream& stream, const ops::AddPositionsArgs& args,
                 AddWeighted4 add_weighted4, Taps taps) {
  submit_positions(op, stream, args, [=](std::int64_t row, const std::int32_t* p) {
    add_position_row(args, row, taps(p[0], p[2], args.table_height),
                     taps(p[1], p[3], args.table_width), add_weighted4);
  });
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

void add_positions_bilinear(Stream& stream, const ops::AddPositionsArgs& args,
                            AddWeighted4 add_weighted4) {
  submit_taps("add_positions_bilinear", stream, args, add_weighted4, &linear_taps);
}

void add_positions_half_pixel(Stream& stream, const ops::AddPositionsArgs& args,
                              AddWeighted4 add_weighted4) {
  submit_taps("add_positions_half_pixel", stream, args, add_weighted4, &half_pixel_taps);
}

void add_positions_bicubic(Stream& stream, const ops::AddPositionsArgs& args,
                           AddWeighted4 add_weighted4) {
  submit_taps("add_positions_bicubic", stream, args, add_weighted4, &cubic_taps);
}

void add_positions_antialiased(Stream& stream, const ops::AddPositionsArgs& args,
                               AddWeighted4 add_weighted4) {
  submit_positions("add_positions_antialiased", stream, args,
                   [=](std::int64_t row, const std::int32_t* p) {
                     add_filtered_row(args, row, {p[0], p[2], args.table_height},
                                      {p[1], p[3], args.table_width}, add_weighted4);
                   });
}

void interpolate_grids(Stream& stream, const ops::InterpolateGridsArgs& args,
                       AddWeighted4 add_weighted4) {
  static_cast<CpuStream&>(stream).submit([=](ThreadPool& pool) {
    const std::int64_t lines = args.out.shape[0] / args.out_line_rows;
    for_row_ranges(pool, lines, 4 * args.out_width * args.out.shape[1],
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t line = first; line < last; ++line) {
                       interpolate_line(args, line, add_weighted4);
                     }
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

void im2col_3x3(Stream& stream, const ops::Im2colArgs& args) {
  static_cast<CpuStream&>(stream).submit([args](ThreadPool& pool) {
    const std::int64_t channels = args.x.shape[1];
    const std::int64_t out_h = (args.height - 1) / args.stride + 1;
    const std::int64_t out_w = (args.width - 1) / args.stride + 1;
    const auto bytes = static_cast<std::size_t>(channels) * sizeof(float);
    const auto write_row = [&](std::int64_t row) {
      const std::int64_t image = row / (out_h * out_w);
      const std::int64_t y = row / out_w % out_h * args.stride;
      const std::int64_t x = row % out_w * args.stride;
      float* to = args.out.as<float>() + row * args.out.shape[1];
      for (std::int64_t in_y = y - 1; in_y <= y + 1; ++in_y) {
        for (std::int64_t in_x = x - 1; in_x <= x + 1; ++in_x, to += channels) {
          if (in_y < 0 || in_y >= args.height || in_x < 0 || in_x >= args.width) {
            std::memset(to, 0, bytes);
            continue;
          }
          const std::int64_t from = (image * args.height + in_y) * args.width + in_x;
          std::memcpy(to, args.x.as<float>() + from * channels, bytes);
        }
      }
    };
    for_row_ranges(pool, count_live(args.rows, args.out.shape[0]), args.out.shape[1],
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t row = first; row < last; ++row) write_row(row);
                   });
  });
}

}  // namespace fovea::cpu
