#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/mm_processor/workload.h"
#include "fovea/engine.h"
#include "report/encode_report.h"

namespace fovea::cli {

/// How the tower runs.
enum class TowerMode : std::uint8_t { kGraphs, kEager };

[[nodiscard]] const char* to_string(TowerMode mode) noexcept;

/// A request that was answered.
struct RequestRecord {
  StageTimes times;   ///< sums over the items; items prepared on several threads overlap
  double e2e_ms = 0;  ///< from arrival to rows in memory
  std::int64_t items = 0;
  std::int64_t rows = 0;
  std::optional<std::int64_t> encoder_calls;  ///< absent if requests overlap
};

/// One pass over the requests in one mode.
struct WorkloadRun {
  TowerMode mode = TowerMode::kGraphs;
  std::vector<RequestRecord> completed;
  std::vector<std::string> failures;  ///< one message per failed request
  GraphCounts counts;                 ///< what was done for failed requests included
  double seconds = 0;                 ///< in which the engine was at work, failed requests included
};

/// The arguments of both ways of running requests.
struct RunContext {
  Engine& engine;
  std::span<const MmRequest> requests;
  ImageEncoding encoding = ImageEncoding::kPng;
  RowDType dtype = RowDType::kFloat32;
  std::function<void()> advance;  ///< called after every answer, one call at a time
};

/// Sends one request at a time and waits for its answer. Every request runs in all `modes`, in an
/// order that is reversed for every other request, so drift of the machine and warm caches affect
/// all modes equally. Making random pixels is not timed.
[[nodiscard]] std::vector<WorkloadRun> run_in_turn(const RunContext& ctx,
                                                   std::span<const TowerMode> modes);

/// When requests come.
struct Arrivals {
  std::int64_t max_concurrency = 1;  ///< most requests in flight
  double per_second = 0;  ///< Poisson process of this rate; 0: as soon as one is answered
  std::uint64_t seed = 0;
};

/// Sends requests when they arrive; the time that they wait for others counts. All pixels are made
/// beforehand.
[[nodiscard]] WorkloadRun run_arrivals(const RunContext& ctx, TowerMode mode,
                                       const Arrivals& arrivals);

}  // namespace fovea::cli
