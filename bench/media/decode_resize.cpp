// Times decode_image and resize_rgb on one image, on the calling thread.
//   fovea_bench_media IMAGE ROUNDS WxH...
// Prints one line per figure: what it is, then the median of the rounds in milliseconds.
// bench/peers/pillow_cpu.py runs it beside Pillow and prints the comparison.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "media/decode_image.h"
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

void time_resize(const Image& image, const std::string& size, int rounds) {
  const std::size_t x = size.find('x');
  FOVEA_CHECK(x != std::string::npos, kInvalidArgument, "expected WxH, got ", size);
  const std::int64_t width = std::atoll(size.c_str());
  const std::int64_t height = std::atoll(size.c_str() + x + 1);
  std::vector<std::uint8_t> result(static_cast<std::size_t>(width * height * 3));
  const auto run = [&](ResizeEngine engine, ResizeIsa isa) {
    fovea::media::resize_rgb({.src = image.rgb,
                              .src_width_px = image.width_px,
                              .src_height_px = image.height_px,
                              .dst = result,
                              .dst_width_px = width,
                              .dst_height_px = height,
                              .engine = engine,
                              .filter = ResizeFilter::kBicubic,
                              .isa = isa});
  };
  for (const NamedIsa& named :
       {NamedIsa{"best", ResizeIsa::kBest}, NamedIsa{"avx2", ResizeIsa::kAvx2},
        NamedIsa{"portable", ResizeIsa::kPortable}}) {
    for (const ResizeEngine engine : {ResizeEngine::kTorchvision, ResizeEngine::kPillow})
      std::printf("resize %s %s %s %.4f\n", size.c_str(),
                  engine == ResizeEngine::kPillow ? "pillow" : "torchvision", named.name,
                  median_ms(rounds, [&] { run(engine, named.isa); }));
  }
}

void run(int argc, char** argv) {
  FOVEA_CHECK(argc >= 3, kInvalidArgument, "usage: fovea_bench_media IMAGE ROUNDS WxH...");
  const std::vector<std::uint8_t> file = fovea::read_file(argv[1], kMaxFileBytes);
  const int rounds = std::max(1, std::atoi(argv[2]));
  Image image;
  std::printf("decode %.4f\n",
              median_ms(rounds, [&] { image = fovea::media::decode_image(file, argv[1], {}); }));
  for (int i = 3; i < argc; ++i) time_resize(image, argv[i], rounds);
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
