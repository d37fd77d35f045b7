// What ranks gain and what they cost: calls of one engine and of a rank on each device.
//
//   fovea_bench_ranks [MODEL [RANKS [DEVICE [CALLS [LOAD]]]]]
//
// MODEL (bench/configs/qwen3_vl_30b_a3b) is loaded with random weights by RANKS (2) threads, each
// on DEVICE (cuda): cuda:0, cuda:1, ... or all on cpu. CALLS (20) calls each, replayed and eager,
// of LOAD: "large" (64 images of 440 patches, and 32 of many sizes) or "small" (20 images of
// 336x336, the requests of random-mm; take 1000 calls). Rows are bfloat16, and end in host memory
// ("host") or in memory of every rank's GPU, waited for after each call ("GPU") or after ten of
// them ("GPU, in flight"). "gather" is the time of a call in which the slowest rank does not encode
// its share; "imbalance" is the patches of the largest share over the mean.
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
#include "core/row_dtype.h"
#include "engine/backend.h"
#include "engine/current_gpu.h"
#include "engine/replicas/load_balance.h"
#include "fovea/encode_on_ranks.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kInFlight = 10;

struct Settings {
  std::string model = "bench/configs/qwen3_vl_30b_a3b";
  int ranks = 2;
  std::string device = "cuda";
  int calls = 20;
  std::string load = "large";

  [[nodiscard]] bool on_gpus() const { return device != "cpu"; }
};

/// Milliseconds of calls.
struct Times {
  double mean;
  double p99;
};

/// The images of a call.
struct Load {
  const char* name;
  std::vector<MediaItem> items;
};

MediaItem noise(std::mt19937& random, std::int64_t width_px, std::int64_t height_px) {
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width_px * height_px * 3));
  for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(random());
  return image_rgb(std::move(rgb), width_px, height_px, "noise");
}

Load equal_images(const char* name, std::size_t count, std::int64_t width_px,
                  std::int64_t height_px) {
  std::mt19937 random(7);
  Load load{name, std::vector<MediaItem>(count)};
  for (MediaItem& item : load.items) item = noise(random, width_px, height_px);
  return load;
}

Load mixed_images() {
  constexpr std::size_t kCount = 32;
  std::mt19937 random(8);
  std::uniform_int_distribution<std::int64_t> side_px(200, 1000);
  Load load{"32 images of many sizes", std::vector<MediaItem>(kCount)};
  for (MediaItem& item : load.items) item = noise(random, side_px(random), side_px(random));
  return load;
}

std::vector<Load> loads(const std::string& name) {
  std::vector<Load> loads;
  if (name == "small") {
    loads.push_back(equal_images("20 images of 336x336", 20, 336, 336));
  } else {
    loads.push_back(equal_images("64 x 440 patches", 64, 320, 352));
    loads.push_back(mixed_images());
  }
  return loads;
}

Times summarize(std::vector<double> times) {
  std::ranges::sort(times);
  const std::size_t last = (times.size() - 1) * 99 / 100;
  return {std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size()),
          times[last]};
}

/// A rank with its engine, and memory of a caller for the rows of a call on its GPU.
class Rank {
 public:
  Rank(const Settings& settings, int rank) : gpu_(rank) {
    const std::string device = settings.on_gpus() ? cat(settings.device, ":", rank) : "cpu";
    engine_.emplace(Engine::load(
        settings.model,
        {.device = device, .num_threads = settings.on_gpus() ? 0 : 1, .dummy_weights = true}));
    engine_->warm_up();
    if (!settings.on_gpus()) return;
    backend_ = make_backend(device);
    stream_ = backend_.device->adopt_stream(gpu_, nullptr);
  }

  [[nodiscard]] Engine& engine() { return *engine_; }
  /// Of the default stream of the GPU.
  [[nodiscard]] CallerStream stream() const { return {.device = gpu_}; }
  /// Makes room on the GPU for rows as `known` has them.
  void make_room(std::span<const Embedding> known) {
    std::size_t bytes = 0;
    for (const Embedding& item : known) bytes += item.data.size();
    memory_ = {};
    memory_ = backend_.device->allocate(bytes);
    blocks_.clear();
    std::byte* next = memory_.data();
    for (const Embedding& item : known) {
      blocks_.push_back({.data = next, .device = gpu_, .dtype = item.dtype, .rows = item.rows});
      next += item.data.size();
    }
  }
  [[nodiscard]] std::span<const RowBlock> blocks() const { return blocks_; }
  /// Of some of the items.
  [[nodiscard]] std::vector<RowBlock> blocks(std::span<const std::size_t> items) const {
    std::vector<RowBlock> some;
    for (const std::size_t item : items) some.push_back(blocks_[item]);
    return some;
  }
  void wait() { stream_->synchronize(); }

 private:
  int gpu_;
  std::optional<Engine> engine_;
  Backend backend_;
  std::unique_ptr<Stream> stream_;
  Buffer memory_;
  std::vector<RowBlock> blocks_;
};

/// A group in this process, a thread for each rank.
class Group {
 public:
  explicit Group(const Settings& settings) : settings_(settings) {
    for (int rank = 0; rank < settings.ranks; ++rank) {
      ranks_.push_back(std::make_unique<Rank>(settings, rank));
    }
    group_ = connect_threads(settings.ranks);
    if (settings.on_gpus() && settings.ranks > 1) add_gpus();
  }
  ~Group() {
    std::vector<std::jthread> threads;  // NCCL takes its leave together
    for (auto& ranks : group_) threads.emplace_back([&ranks] { ranks.reset(); });
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] Engine& engine() { return ranks_.front()->engine(); }

  /// Compares calls to the host and, where there are GPUs, to them.
  void compare(const Load& load, bool eager) {
    const EncodeOptions how{.dtype = RowDType::kBFloat16, .enforce_eager = eager};
    const std::vector<MediaItem>& items = load.items;
    std::vector<std::int64_t> patches;
    for (const PlannedItem& item : engine().plan_items(items)) {
      patches.push_back(item.patches().value_or(1));
    }
    const Assignment assignment = balance_load(patches, ranks_.size());
    std::vector<std::vector<MediaItem>> shares(ranks_.size());
    for (std::size_t rank = 0; rank < shares.size(); ++rank)
      for (const std::size_t item : assignment.items(rank)) shares[rank].push_back(items[item]);

    print({load.name, eager, "host", assignment}, time([&](std::size_t rank) {
            if (rank == 0) (void)engine().encode(items, how);
          }),
          time([&](std::size_t rank) {
            (void)encode_on_ranks(ranks_[rank]->engine(), *group_[rank], items, how);
          }),
          time([&](std::size_t rank) { (void)ranks_[rank]->engine().encode(shares[rank], how); }));
    if (!settings_.on_gpus()) return;
    const std::vector<Embedding> known = engine().encode(items, how);
    for (const auto& rank : ranks_) rank->make_room(known);
    for (const int in_flight : {1, kInFlight}) {
      compare_on_gpus({load.name, eager, in_flight == 1 ? "GPU" : "GPU, in flight", assignment},
                      items, shares, in_flight);
    }
  }

 private:
  struct Case {
    const char* load;
    bool eager;
    const char* where;
    const Assignment& assignment;
  };

  /// Of rows to memory of the GPUs. @param in_flight calls between two waits.
  void compare_on_gpus(const Case& what, const std::vector<MediaItem>& items,
                       const std::vector<std::vector<MediaItem>>& shares, int in_flight) {
    const EncodeOptions how{.dtype = RowDType::kBFloat16, .enforce_eager = what.eager};
    const auto timed = [&](auto&& call) {
      const Times times = time([&](std::size_t number) {
        for (int i = 0; i < in_flight; ++i) call(number, *ranks_[number]);
        ranks_[number]->wait();
      });
      return Times{times.mean / in_flight, times.p99 / in_flight};
    };
    const Times one = timed([&](std::size_t number, Rank& rank) {
      if (number == 0) (void)rank.engine().encode(items, rank.blocks(), rank.stream(), how);
    });
    const Times all = timed([&](std::size_t number, Rank& rank) {
      (void)encode_on_ranks(rank.engine(), *group_[number], items, rank.blocks(), rank.stream(),
                            how);
    });
    const Times alone = timed([&](std::size_t number, Rank& rank) {
      (void)rank.engine().encode(shares[number], rank.blocks(what.assignment.items(number)),
                                 rank.stream(), how);
    });
    print(what, one, all, alone);
  }

  void add_gpus() {
    std::vector<std::optional<Error>> errors(group_.size());
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < group_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          bench::set_current_gpu(static_cast<int>(rank));
          group_[rank] = add_nccl(std::move(group_[rank]));
        } catch (const Error& error) {
          errors[rank] = error;
        }
      });
    }
    threads.clear();
    if (errors.front()) throw Error(*errors.front());
  }

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
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
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

  /// @param alone of the slowest share.
  void print(const Case& what, const Times& one, const Times& all, const Times& alone) const {
    const std::vector<std::int64_t>& loads = what.assignment.loads;
    const double mean_load =
        static_cast<double>(std::accumulate(loads.begin(), loads.end(), std::int64_t{0})) /
        static_cast<double>(loads.size());
    std::printf("| %s, %s, %s | %.2f / %.2f | %.2f / %.2f | %.2f | %.2f | %.2f |\n", what.load,
                what.eager ? "eager" : "graphs", what.where, one.mean, one.p99, all.mean, all.p99,
                one.mean / all.mean, static_cast<double>(std::ranges::max(loads)) / mean_load,
                all.mean - alone.mean);
    std::fflush(stdout);
  }

  Settings settings_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::unique_ptr<Communicator>> group_;
};

void run(const Settings& settings) {
  Group group(settings);
  std::printf("%d ranks, %s, ms per call, mean / p99\n\n", settings.ranks,
              group.engine().device().c_str());
  std::printf("| | one engine | ranks | ratio | imbalance | gather |\n|---|---|---|---|---|---|\n");
  const std::vector<Load> all = loads(settings.load);
  for (const bool eager : {false, true}) {
    for (const Load& load : all) group.compare(load, eager);
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
  if (argc > 5) settings.load = argv[5];
  try {
    fovea::run(settings);
  } catch (const fovea::Error& error) {
    std::fprintf(stderr, "fovea_bench_ranks: %s\n", error.what());
    return 1;
  }
  return 0;
}
