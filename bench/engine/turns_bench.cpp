// How long a small call takes beside threads that keep an engine busy.
//
//   fovea_bench_turns MODEL [THREADS [ITEMS [SECONDS [DEVICE]]]]
//
// THREADS (3) threads encode ITEMS (4) images of 640x480 each, again and again. One more thread
// encodes an image of 64x64, once by itself and then beside them for SECONDS (10).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fovea/engine.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

struct Load {
  int threads = 3;
  int items = 4;
  int seconds = 10;
};

std::vector<MediaItem> noise(int count, std::int64_t width, std::int64_t height) {
  std::mt19937 random(7);
  std::vector<MediaItem> items;
  for (int i = 0; i < count; ++i) {
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width * height * 3));
    for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(random());
    items.push_back(image_rgb(std::move(rgb), width, height, "noise"));
  }
  return items;
}

double encode_ms(Engine& engine, const std::vector<MediaItem>& items) {
  const Clock::time_point begin = Clock::now();
  (void)engine.encode(items);
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// Times of one call after the other until `end`, in ascending order.
std::vector<double> times_of(Engine& engine, const std::vector<MediaItem>& items,
                             Clock::time_point end) {
  std::vector<double> times;
  do {
    times.push_back(encode_ms(engine, items));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (Clock::now() < end);
  std::ranges::sort(times);
  return times;
}

void print(const char* what, const std::vector<double>& times) {
  std::printf("%-28s %6zu calls, median %8.1f ms, p99 %8.1f ms, longest %8.1f ms\n", what,
              times.size(), times[times.size() / 2], times[times.size() * 99 / 100], times.back());
}

void run(Engine& engine, const Load& load) {
  const std::vector<MediaItem> large = noise(load.items, 640, 480);
  const std::vector<MediaItem> small = noise(1, 64, 64);
  (void)encode_ms(engine, large);
  (void)encode_ms(engine, small);
  print("large by itself", times_of(engine, large, Clock::now() + std::chrono::seconds(2)));
  print("small by itself", times_of(engine, small, Clock::now() + std::chrono::seconds(2)));
  std::atomic<bool> stop = false;
  std::atomic<int> large_calls = 0;
  {
    std::vector<std::jthread> busy;
    for (int i = 0; i < load.threads; ++i) {
      busy.emplace_back([&] {
        for (; !stop; ++large_calls) (void)encode_ms(engine, large);
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    print("small beside the large ones",
          times_of(engine, small, Clock::now() + std::chrono::seconds(load.seconds)));
    stop = true;
  }
  std::printf("%d large calls of %d items by %d threads meanwhile\n", large_calls.load(),
              load.items, load.threads);
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s MODEL [THREADS [ITEMS [SECONDS [DEVICE]]]]\n", argv[0]);
    return 2;
  }
  const auto number = [&](int index, int otherwise) {
    return argc > index ? std::max(1, std::atoi(argv[index])) : otherwise;
  };
  fovea::Engine engine = fovea::Engine::load(argv[1], {.device = argc > 5 ? argv[5] : "cpu"});
  engine.warm_up();
  fovea::run(engine, {number(2, 3), number(3, 4), number(4, 10)});
  return 0;
}
