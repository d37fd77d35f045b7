// Reads the energy counters of an engine's GPUs again and again, on a thread of its own.
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "core/blocked_signals.h"
#include "core/boundary.h"
#include "core/stopwatch.h"
#include "engine/diagnostics/power_meter.h"
#include "engine/engine_impl.h"
#include "fovea/diagnostics.h"

namespace fovea {

namespace {

/// A fraction of the counter's steps, so that their moments are known well enough.
constexpr std::chrono::milliseconds kInterval{2};

}  // namespace

struct EnergyWatch::Impl {
  explicit Impl(const std::vector<EnergyCounter>& of) : counters(of), meters(of.size()) {
    const BlockedSignals none;
    if (!counters.empty())
      reader = std::jthread([this](const std::stop_token& stop) { read(stop); });
  }

  void read(const std::stop_token& stop) noexcept {
    while (!stop.stop_requested()) {
      for (std::size_t i = 0; i < counters.size(); ++i) {
        const std::optional<double> joules = counters[i].joules();
        if (joules) meters[i].add(watch.elapsed_ms() / 1000, *joules);
      }
      std::this_thread::sleep_for(kInterval);
    }
  }

  const std::vector<EnergyCounter>& counters;
  std::vector<PowerMeter> meters;  // of the reader until it has ended
  const Stopwatch watch;
  std::jthread reader;  // last: it ends before what it uses
};

EnergyWatch::EnergyWatch(const Engine& engine) try
    : impl_(std::make_unique<Impl>(engine.impl_->energy)) {
} catch (...) {
  rethrow_as_error();
}

EnergyWatch::~EnergyWatch() = default;

std::optional<PowerReading> EnergyWatch::stop() {
  if (impl_->reader.joinable()) {
    impl_->reader.request_stop();
    impl_->reader.join();
  }
  std::optional<PowerReading> all;
  for (const PowerMeter& meter : impl_->meters) {
    const std::optional<PowerReading> one = meter.reading();
    if (!one) return std::nullopt;
    if (!all) all = PowerReading{};
    all->watts += one->watts;
    all->uncertainty = std::max(all->uncertainty, one->uncertainty);
  }
  return all;
}

}  // namespace fovea
