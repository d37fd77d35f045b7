// What `fovea bench latency` measures of the tower: times, and the energy that it takes.
#include "core/boundary.h"
#include "core/check.h"
#include "core/interrupt.h"
#include "core/stopwatch.h"
#include "engine/diagnostics/tower_runs.h"
#include "fovea/diagnostics.h"

namespace fovea {

TowerTiming time_tower(Engine& engine, const TowerLoad& load, int warmups, int repetitions,
                       const CallBounds& bounds) try {
  FOVEA_CHECK(warmups >= 0 && repetitions >= 1, kInvalidArgument,
              "time_tower: repetitions must be positive and warmups not negative, got ",
              repetitions, " and ", warmups);
  const CallScope scope(bounds, "time_tower");
  TowerRuns runs(engine, load, "time_tower");
  TowerTiming timing{.items = runs.num_items(),
                     .patches = runs.patches(),
                     .rows = runs.rows(),
                     .flops = runs.flops()};
  bool all_replayed = true;  // a mix of replays and eager runs is neither
  const auto replay_ms = [&] {
    const std::int64_t before = runs.num_replayed();
    const double ms = runs.run_ms(false);
    all_replayed = all_replayed && runs.num_replayed() - before == timing.items;
    return ms;
  };
  for (int i = 0; i < warmups; ++i) {
    (void)runs.run_ms(true);
    (void)replay_ms();
  }
  for (int i = 0; i < repetitions; ++i) {  // in turn, so that drift of the machine hits both
    timing.eager_ms.push_back(runs.run_ms(true));
    timing.replay_ms.push_back(replay_ms());
  }
  if (all_replayed) {
    timing.budget = runs.largest_budget();
  } else {
    timing.replay_ms.clear();
  }
  return timing;
} catch (...) {
  rethrow_as_error();
}

std::optional<TowerEnergy> measure_tower_energy(Engine& engine, const TowerLoad& load,
                                                double seconds, const CallBounds& bounds) try {
  FOVEA_CHECK(seconds > 0, kInvalidArgument, "measure_tower_energy: seconds must be positive, got ",
              seconds);
  const CallScope scope(bounds, "measure_tower_energy");
  if (!engine.stats().energy_joules) return std::nullopt;
  TowerRuns runs(engine, load, "measure_tower_energy");
  TowerEnergy energy;
  EnergyWatch power(engine);
  const Stopwatch watch;
  while (watch.elapsed_ms() < seconds * 1000) {
    (void)runs.run_ms(false);
    ++energy.runs;
  }
  energy.run_ms = watch.elapsed_ms() / static_cast<double>(energy.runs);
  const std::optional<PowerReading> reading = power.stop();
  if (!reading) return std::nullopt;
  energy.watts = reading->watts;
  energy.uncertainty = reading->uncertainty;
  return energy;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
