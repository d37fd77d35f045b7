// Mean power from a counter that moves in steps.
#include "engine/diagnostics/power_meter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/golden.h"

namespace fovea {
namespace {

/// A counter of `watts` that moves every `step_s`, read every millisecond.
PowerMeter read_for(double seconds, double watts, double step_s) {
  PowerMeter meter;
  const auto readings = static_cast<int>(std::lround(seconds * 1000));
  for (int i = 0; i <= readings; ++i) {
    const double now = 0.0335 + i * 1e-3;  // begins between two steps
    meter.add(now, watts * step_s * std::floor(now / step_s));
  }
  return meter;
}

TEST(PowerMeter, WholeStepsGiveThePower) {
  for (const double step_s : {0.02, 0.1}) {
    const std::optional<PowerReading> reading = read_for(2, 700, step_s).reading();
    ASSERT_TRUE(reading) << step_s;
    EXPECT_NEAR(reading->watts, 700, 1) << step_s;
    EXPECT_NEAR(reading->uncertainty, step_s / 2, 0.01) << step_s;
  }
}

TEST(PowerMeter, TooFewStepsGiveNoFigure) {
  EXPECT_FALSE(PowerMeter().reading());
  EXPECT_FALSE(read_for(0.05, 700, 0.1).reading());
  EXPECT_FALSE(read_for(0.5, 700, 0.1).reading());
  EXPECT_TRUE(read_for(0.5, 700, 0.02).reading());
}

TEST(PowerMeter, ACounterThatStandsStillGivesNoFigure) {
  EXPECT_FALSE(read_for(2, 0, 0.02).reading());
}

TEST(PowerMeter, WhatWasTakenBeforeTheFirstMoveDoesNotCount) {
  PowerMeter meter;
  meter.add(0, 0);
  meter.add(0.01, 1000);  // of a step that began long before
  for (int i = 1; i <= 20; ++i) meter.add(0.01 + 0.05 * i, 1000 + 5.0 * i);
  ASSERT_TRUE(meter.reading());
  EXPECT_NEAR(meter.reading()->watts, 100, 1e-6);
}

TEST(PowerMeter, AGapInTheStepsIsTheUncertainty) {
  PowerMeter meter;
  for (int i = 0; i <= 100; ++i) {
    if (i < 50 || i >= 54) meter.add(0.02 * i, 2.0 * i);  // nobody read for five steps
  }
  ASSERT_TRUE(meter.reading());
  EXPECT_NEAR(meter.reading()->watts, 100, 1e-6);
  EXPECT_NEAR(meter.reading()->uncertainty, 0.1 / 1.98, 1e-6);
}

TEST(TowerEnergy, IsNotMeasuredWhereNothingCountsIt) {
  Engine engine = Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"),
                               {.device = "cpu", .num_threads = 1});
  EXPECT_FALSE(engine.stats().energy_joules);
  EXPECT_FALSE(EnergyWatch(engine).stop());
  EXPECT_FALSE(measure_tower_energy(engine, {.count = 1, .patches = 64}, 1e6)) << "at once";
}

TEST(TowerEnergy, JoulesAreThoseOfARun) {
  const TowerEnergy energy{.runs = 100, .run_ms = 20, .watts = 700};
  EXPECT_DOUBLE_EQ(energy.joules(), 14);
}

}  // namespace
}  // namespace fovea
