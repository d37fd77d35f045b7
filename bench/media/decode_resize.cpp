// Times decode_image and resize_rgb on one image, on the calling thread.
//   fovea_bench_media IMAGE ROUNDS WxH...
// Prints one line per figure: what it is, then the median of the rounds in milliseconds. Where a
// size allows to decode a JPEG file at a fraction of its own, that is timed as well ("scaled").
// bench/peers/pillow_cpu.py runs it beside Pillow and prints the comparison.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "media/reduction.h"
#include "media/resize/resize.h"

namespace {

using fovea::media::Image;
using fovea::media::ResizeEngine;
using fovea::media::ResizeFilter;
using fovea::media::ResizeIsa;

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;

template <class Work>
double median_ms(int rounds, const Work& work) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    times.push_back(time.count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds / 2)];
}

struct NamedIsa {
  const char* name;
  ResizeIsa isa;
};

struct Size {
  std::int64_t width_px;
  std::int64_t height_px;
};

Size parse_size(const std::string& text) {
  const std::size_t x = text.find('x');
  FOVEA_CHECK(x != std::string::npos, kInvalidArgument, "expected WxH, got ", text);
  return {std::atoll(text.c_str()), std::atoll(text.c_str() + x + 1)};
}

void resize(const Image& image, Size size, ResizeEngine engine, ResizeIsa isa,
            std::vector<std::uint8_t>& result) {
  result.resize(static_cast<std::size_t>(size.width_px * size.height_px * 3));
  fovea::media::resize_rgb({.src = image.rgb,
                            .src_width_px = image.width_px,
                            .src_height_px = image.height_px,
                            .dst = result,
                            .dst_width_px = size.width_px,
                            .dst_height_px = size.height_px,
                            .engine = engine,
                            .filter = ResizeFilter::kBicubic,
                            .isa = isa,
                            .src_margins = image.margins});
}

/// Decodes into the memory of the image before, as an engine does.
void decode(const std::vector<std::uint8_t>& file, int reduction, Image& image) {
  image = fovea::media::decode_image(file, "image", {}, reduction, std::move(image.rgb));
}

void time_scaled(const std::vector<std::uint8_t>& file, const Image& image, const std::string& text,
                 int rounds) {
  const Size size = parse_size(text);
  const int reduction = fovea::media::choose_reduction(image.width_px, image.height_px,
                                                       size.width_px, size.height_px);
  Image scaled;
  decode(file, reduction, scaled);
  if (scaled.width_px == image.width_px) return;
  std::vector<std::uint8_t> result;
  std::printf("decode %s scaled by 1/%d %.4f\n", text.c_str(), reduction,
              median_ms(rounds, [&] { decode(file, reduction, scaled); }));
  std::printf("resize %s torchvision scaled by 1/%d %.4f\n", text.c_str(), reduction,
              median_ms(rounds, [&] {
                resize(scaled, size, ResizeEngine::kTorchvision, ResizeIsa::kBest, result);
              }));
}

void time_resize(const Image& image, const std::string& text, int rounds) {
  const Size size = parse_size(text);
  std::vector<std::uint8_t> result;
  for (const NamedIsa& named :
       {NamedIsa{"best", ResizeIsa::kBest}, NamedIsa{"avx2", ResizeIsa::kAvx2},
        NamedIsa{"portable", ResizeIsa::kPortable}}) {
    for (const ResizeEngine engine : {ResizeEngine::kTorchvision, ResizeEngine::kPillow})
      std::printf("resize %s %s %s %.4f\n", text.c_str(),
                  engine == ResizeEngine::kPillow ? "pillow" : "torchvision", named.name,
                  median_ms(rounds, [&] { resize(image, size, engine, named.isa, result); }));
  }
}

void run(int argc, char** argv) {
  FOVEA_CHECK(argc >= 3, kInvalidArgument, "usage: fovea_bench_media IMAGE ROUNDS WxH...");
  const std::vector<std::uint8_t> file = fovea::read_file(argv[1], kMaxFileBytes);
  const int rounds = std::max(1, std::atoi(argv[2]));
  Image image;
  std::printf("decode %.4f\n",
              median_ms(rounds, [&] { image = fovea::media::decode_image(file, argv[1], {}); }));
  std::printf("decode into memory that is there %.4f\n",
              median_ms(rounds, [&] { decode(file, 1, image); }));
  for (int i = 3; i < argc; ++i) {
    time_scaled(file, image, argv[i], rounds);
    time_resize(image, argv[i], rounds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fovea_bench_media: error: %s\n", error.what());
    return 1;
  }
}
