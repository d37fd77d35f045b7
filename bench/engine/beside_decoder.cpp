// A decoder and a tower on one GPU: what each of them loses.
//
//   fovea_bench_beside_decoder [MODEL [SECONDS [LAYERS [BUDGETS]]]]
//
// The tower of MODEL (bench/configs/qwen3_vl_30b_a3b), with random weights, runs again and again on
// an image of 1024 patches, then on 20 of 440, beside steps of a stand-in for a decoder, for
// SECONDS (4) each. The stand-in has LAYERS (56) of 0.386 GB. Measures: none, a higher priority of
// the decoder, SM budgets of the tower (BUDGETS, 66,88,100,120) without and with that, and, for the
// same numbers of SMs, two green contexts of the caller. Says so and ends where there is no GPU.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/check.h"
#include "core/stopwatch.h"
#include "device/cuda_plugin.h"
#include "engine/backend.h"
#include "engine/decoder_stand_in.h"
#include "engine/diagnostics/tower_runs.h"
#include "fovea/engine.h"

namespace fovea::bench {
namespace {

struct Case {
  const char* name;
  std::int64_t count;
  std::int64_t patches;
  std::int64_t rows;
};
constexpr Case kCases[] = {{"1x1024", 1, 1024, 256}, {"20x440", 20, 440, 2200}};
constexpr double kWarmUpSeconds = 0.5;

double percentile(std::vector<double> values, double part) {
  FOVEA_CHECK(!values.empty(), kInvalidArgument, "no step of the decoder in the time given");
  const auto place = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + place);
  return values[static_cast<std::size_t>(place)];
}

/// Runs the tower for so long. @return mean milliseconds.
double run_tower(TowerRuns& runs, double seconds) {
  const Stopwatch watch;
  int count = 0;
  do {
    (void)runs.run_ms(false);
    ++count;
  } while (watch.elapsed_seconds() < seconds);
  return watch.elapsed_ms() / count;
}

/// Steps of the decoder while something else goes on. @return milliseconds of each.
std::vector<double> steps_during(const DecoderStandIn& decoder, Place place,
                                 const std::function<void()>& action) {
  std::stop_source stop;
  std::vector<double> steps_ms;
  std::jthread steps([&] { steps_ms = decoder.run(place, stop.get_token()); });
  action();
  stop.request_stop();
  steps.join();
  return steps_ms;
}

class Comparison {
 public:
  Comparison(std::string model, double seconds, int layers)
      : model_(std::move(model)), seconds_(seconds), decoder_(layers) {
    std::printf("decoder: %.1f GB of weights\n\n", decoder_.gigabytes());
    std::printf(
        "| measure | SMs | patches | decoder p50, ms | p99, ms | p99 / alone | tower, ms "
        "| of its throughput |\n|---|---|---|---|---|---|---|---|\n");
  }

  void run_without_budget(const Case& c) {
    sms_ = 0;
    Engine engine = load(c, 0);
    TowerRuns runs(engine, {.count = c.count, .patches = c.patches}, "beside_decoder");
    (void)run_tower(runs, kWarmUpSeconds);
    alone_ms_[&c] = run_tower(runs, seconds_);
    print("tower alone", c, {}, alone_ms_[&c]);
    const std::vector<double> steps_ms = decoder_alone(Place::kEqual);
    alone_p99_ = percentile(steps_ms, 0.99);
    print("decoder alone", c, steps_ms, std::nullopt);
    beside("none", c, runs, Place::kEqual);
    beside("priority", c, runs, Place::kBefore);
  }

  void run_with_budget(const Case& c, int budget) {
    sms_ = budget;
    Engine engine = load(c, budget);
    TowerRuns runs(engine, {.count = c.count, .patches = c.patches}, "beside_decoder");
    (void)run_tower(runs, kWarmUpSeconds);
    print("budget, tower alone", c, {}, run_tower(runs, seconds_));
    beside("budget", c, runs, Place::kEqual);
    beside("budget, priority", c, runs, Place::kBefore);
  }

  void run_divided(const Case& c, int sms_of_tower) {
    sms_ = decoder_.divide(sms_of_tower);
    std::optional<Engine> engine;
    decoder_.in_context_of_tower([&] { engine = load(c, 0); });
    TowerRuns runs(*engine, {.count = c.count, .patches = c.patches}, "beside_decoder");
    (void)run_tower(runs, kWarmUpSeconds);
    print("green contexts, tower alone", c, {}, run_tower(runs, seconds_));
    print("green contexts, decoder alone", c, decoder_alone(Place::kApart), std::nullopt);
    beside("green contexts", c, runs, Place::kApart);
  }

 private:
  Engine load(const Case& c, int sm_budget) {
    Engine engine = Engine::load(
        model_,
        {.device = "cuda:0",
         .dummy_weights = true,
         .graphs = {.encoder_cudagraph_token_budgets = {c.rows},
                    .encoder_cudagraph_max_vision_items_per_batch = c.count},
         .sm_budget = sm_budget,
         .measure_graphs = false,
         .cache_dir = std::filesystem::temp_directory_path() / "fovea_bench_beside_decoder"});
    engine.warm_up();
    return engine;
  }

  std::vector<double> decoder_alone(Place place) const {
    return steps_during(decoder_, place, [&] {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    });
  }

  void beside(const char* measure, const Case& c, TowerRuns& runs, Place place) {
    double tower_ms = 0;
    const std::vector<double> steps_ms =
        steps_during(decoder_, place, [&] { tower_ms = run_tower(runs, seconds_); });
    print(measure, c, steps_ms, tower_ms);
  }

  void print(const char* measure, const Case& c, const std::vector<double>& steps_ms,
             std::optional<double> tower_ms) const {
    std::printf("| %s | %d | %s ", measure, sms_, c.name);
    if (steps_ms.empty()) {
      std::printf("| | | ");
    } else {
      const double p99 = percentile(steps_ms, 0.99);
      std::printf("| %.2f | %.2f | %.2f ", percentile(steps_ms, 0.5), p99, p99 / alone_p99_);
    }
    if (tower_ms) {
      std::printf("| %.2f | %.2f |\n", *tower_ms, alone_ms_.at(&c) / *tower_ms);
    } else {
      std::printf("| | |\n");
    }
    std::fflush(stdout);
  }

  std::string model_;
  double seconds_;
  DecoderStandIn decoder_;
  int sms_ = 0;  // for the tower; 0: all
  double alone_p99_ = 0;
  std::map<const Case*, double> alone_ms_;
};

int run(int argc, char** argv) {
  Comparison comparison(argc > 1 ? argv[1] : "bench/configs/qwen3_vl_30b_a3b",
                        argc > 2 ? std::atof(argv[2]) : 4, argc > 3 ? std::atoi(argv[3]) : 56);
  std::vector<int> budgets;
  std::istringstream list(argc > 4 ? argv[4] : "66,88,100,120");
  for (std::string budget; std::getline(list, budget, ',');)
    budgets.push_back(std::atoi(budget.c_str()));
  for (const Case& c : kCases) {
    comparison.run_without_budget(c);
    for (const int budget : budgets) comparison.run_with_budget(c, budget);
  }
  for (const Case& c : kCases)
    for (const int budget : budgets) comparison.run_divided(c, budget);
  return 0;
}

}  // namespace
}  // namespace fovea::bench

int main(int argc, char** argv) try {
  if (fovea::usable_gpus(fovea::find_cuda()).empty()) {
    std::printf("%s\n", fovea::cuda_status().c_str());
    return 0;
  }
  return fovea::bench::run(argc, argv);
} catch (const fovea::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
