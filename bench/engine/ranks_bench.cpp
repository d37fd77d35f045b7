// What ranks gain and what they cost: calls of one engine and of a rank on each device.
//
//   fovea_bench_ranks [MODEL [RANKS [DEVICE [CALLS]]]]
//
// MODEL (bench/configs/qwen3_vl_30b_a3b) is loaded with random weights by RANKS (2) threads, each
// on DEVICE (cuda): cuda:0, cuda:1, ... or all on cpu. CALLS (20) calls each with 64 images of 440
// patches and with 32 images of many sizes, replayed and eager. "gather" is the time of a call in
// which the slowest rank does not encode its share; "imbalance" is the patches of the largest share
// over the mean. Rows of bfloat16.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/check.h"
#include "engine/replicas/load_balance.h"
#include "fovea/encode_on_ranks.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  std::string model = "bench/configs/qwen3_vl_30b_a3b";
  int ranks = 2;
  std::string device = "cuda";
  int calls = 20;
};

/// Milliseconds of calls.
struct Times {
  double mean;
  double p99;
};

MediaItem noise(std::mt19937& random, std::int64_t width_px, std::int64_t height_px) {
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width_px * height_px * 3));
  for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(random());
  return image_rgb(std::move(rgb), width_px, height_px, "noise");
}

std::vector<MediaItem> equal_images() {
  constexpr std::size_t kCount = 64;
  std::mt19937 random(7);
  std::vector<MediaItem> items(kCount);
  for (MediaItem& item : items) item = noise(random, 320, 352);
  return items;
}

std::vector<MediaItem> mixed_images() {
  constexpr std::size_t kCount = 32;
  std::mt19937 random(8);
  std::uniform_int_distribution<std::int64_t> side_px(200, 1000);
  std::vector<MediaItem> items(kCount);
  for (MediaItem& item : items) item = noise(random, side_px(random), side_px(random));
  return items;
}

Times summarize(std::vector<double> times) {
  std::ranges::sort(times);
  const std::size_t last = (times.size() - 1) * 99 / 100;
  return {std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size()),
          times[last]};
}

/// A group in this process, a thread for each rank.
class Group {
 public:
  explicit Group(const Settings& settings) : settings_(settings) {
    ranks_ = connect_threads(settings.ranks);
    for (int rank = 0; rank < settings.ranks; ++rank) {
      const bool is_cpu = settings.device == "cpu";
      engines_.push_back(Engine::load(
          settings.model, {.device = is_cpu ? settings.device : cat(settings.device, ":", rank),
                           .num_threads = is_cpu ? 1 : 0,
                           .dummy_weights = true}));
      engines_.back().warm_up();
    }
  }

  [[nodiscard]] Engine& engine(std::size_t rank) { return engines_[rank]; }

  /// The times of what work(rank) does on all ranks at once, until the last has done it.
  template <class Work>
  Times time(const Work& work) {
    constexpr int kWarmUps = 3;
    std::vector<double> times;
    Clock::time_point begin;
    int round = -kWarmUps;
    const auto between = [&]() noexcept {
      const Clock::time_point now = Clock::now();
      if (round > 0)
        times.push_back(std::chrono::duration<double, std::milli>(now - begin).count());
      ++round;
      begin = Clock::now();
    };
    times.reserve(static_cast<std::size_t>(settings_.calls) + 1);
    std::barrier together(settings_.ranks, between);
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < engines_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        together.arrive_and_wait();
        for (int i = 0; i < settings_.calls + kWarmUps; ++i) {
          work(rank);
          together.arrive_and_wait();
        }
      });
    }
    threads.clear();
    return summarize(times);
  }

  void compare(const char* name, const std::vector<MediaItem>& items, bool eager) {
    const EncodeOptions how{.dtype = RowDType::kBFloat16, .enforce_eager = eager};
    const Times one = time([&](std::size_t rank) {
      if (rank == 0) (void)engine(0).encode(items, how);
    });
    const Times all = time(
        [&](std::size_t rank) { (void)encode_on_ranks(engine(rank), *ranks_[rank], items, how); });
    std::vector<std::int64_t> patches;
    for (const auto& known : engine(0).patches_ahead(items)) patches.push_back(known.value_or(1));
    const Assignment assignment = balance_load(patches, engines_.size());
    std::vector<std::vector<MediaItem>> shares(engines_.size());
    for (std::size_t rank = 0; rank < shares.size(); ++rank)
      for (const std::size_t item : assignment.items(rank)) shares[rank].push_back(items[item]);
    const Times alone =
        time([&](std::size_t rank) { (void)engine(rank).encode(shares[rank], how); });
    const double mean_load =
        static_cast<double>(std::accumulate(patches.begin(), patches.end(), std::int64_t{0})) /
        static_cast<double>(shares.size());
    std::printf(
        "| %s, %s | %.1f / %.1f | %.1f / %.1f | %.2f | %.2f | %.1f |\n", name,
        eager ? "eager" : "graphs", one.mean, one.p99, all.mean, all.p99, one.mean / all.mean,
        static_cast<double>(std::ranges::max(assignment.loads)) / mean_load, all.mean - alone.mean);
    std::fflush(stdout);
  }

 private:
  Settings settings_;
  std::vector<std::unique_ptr<Communicator>> ranks_;
  std::vector<Engine> engines_;
};

void run(const Settings& settings) {
  Group group(settings);
  std::printf("%d ranks, %s, ms per call, mean / p99\n\n", settings.ranks,
              group.engine(0).device().c_str());
  std::printf("| | one engine | ranks | ratio | imbalance | gather |\n|---|---|---|---|---|---|\n");
  const std::vector<MediaItem> equal = equal_images();
  const std::vector<MediaItem> mixed = mixed_images();
  for (const bool eager : {false, true}) {
    group.compare("64 x 440 patches", equal, eager);
    group.compare("32 images of many sizes", mixed, eager);
  }
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) {
  fovea::Settings settings;
  if (argc > 1) settings.model = argv[1];
  if (argc > 2) settings.ranks = std::max(1, std::atoi(argv[2]));
  if (argc > 3) settings.device = argv[3];
  if (argc > 4) settings.calls = std::max(1, std::atoi(argv[4]));
  try {
    fovea::run(settings);
  } catch (const fovea::Error& error) {
    std::fprintf(stderr, "fovea_bench_ranks: %s\n", error.what());
    return 1;
  }
  return 0;
}
