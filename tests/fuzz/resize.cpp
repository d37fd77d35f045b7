// Any sizes and pixels: every instruction set computes the bytes of the portable loops.
// Input: source width, height, result width, height (each plus one), engine and filter, pixels.
#include "media/resize/resize.h"

#include <algorithm>
#include <vector>

#include "fuzz.h"

using fovea::media::ResizeArgs;
using fovea::media::ResizeEngine;
using fovea::media::ResizeFilter;
using fovea::media::ResizeIsa;
using fovea::test::require;

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kHeadBytes = 6;
constexpr int kNumFilters = 3;

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kHeadBytes) return -1;
  const auto num_bytes = [](int width, int height) {
    return static_cast<std::size_t>(width + 1) * static_cast<std::size_t>(height + 1) * 3;
  };
  Bytes source(num_bytes(data[0], data[1]));
  std::copy_n(data + kHeadBytes, std::min(size - kHeadBytes, source.size()), source.begin());
  Bytes expected(num_bytes(data[2], data[3]));
  Bytes result(expected.size());
  ResizeArgs args{.src = source,
                  .src_width_px = data[0] + 1,
                  .src_height_px = data[1] + 1,
                  .dst = expected,
                  .dst_width_px = data[2] + 1,
                  .dst_height_px = data[3] + 1,
                  .engine = data[4] % 2 == 0 ? ResizeEngine::kPillow : ResizeEngine::kTorchvision,
                  .filter = static_cast<ResizeFilter>(data[5] % kNumFilters),
                  .isa = ResizeIsa::kPortable};
  if (!fovea::test::accepts([&] { fovea::media::resize_rgb(args); })) return 0;
  args.dst = result;
  for (const ResizeIsa isa : {ResizeIsa::kAvx2, ResizeIsa::kAvx512, ResizeIsa::kNeon}) {
    args.isa = isa;
    if (fovea::test::accepts([&] { fovea::media::resize_rgb(args); })) require(result == expected);
  }
  return 0;
}
