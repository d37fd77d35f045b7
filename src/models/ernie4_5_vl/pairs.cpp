// Which tokens of two frames become one.
#include "models/ernie4_5_vl/pairs.h"

#include <cstdint>

namespace fovea::ernie4_5_vl {

namespace {

constexpr const char* kPairs = "pairs";
constexpr const char* kPairCounts = "pair_counts";

/// Entries of the buffer "pair_counts".
enum Count : std::int64_t { kJoined, kHalves, kNumCounts };

}  // namespace

std::vector<BufferDecl> PairInputs::declare(const Config&, const GraphCapacity& capacity) {
  return {{kPairs, DType::kI32, {2 * capacity.tokens}}, {kPairCounts, DType::kI32, {kNumCounts}}};
}

void PairInputs::fill(const Config& config, std::span<const common::GridRun> runs,
                      const common::PatchTables&, InputWriter& writer) {
  std::int64_t joined = 0;
  std::int64_t tokens = 0;
  for (const common::GridRun& run : runs) {
    joined += run.patches / config.grid.merge_area();
    tokens += run.tokens;
  }
  auto* pair = writer.claim(kPairs, 2 * tokens).as<std::int32_t>();
  auto* counts = writer.claim(kPairCounts, kNumCounts).as<std::int32_t>();
  counts[kJoined] = static_cast<std::int32_t>(joined);
  counts[kHalves] = static_cast<std::int32_t>(2 * tokens);
  std::int64_t first = 0;  // row of a temporal patch
  for (const common::GridRun& run : runs) {
    const std::int64_t here = run.patches / config.grid.merge_area();
    const std::int64_t second = here > run.tokens ? run.tokens : 0;
    for (std::int64_t token = first; token < first + run.tokens; ++token) {
      *pair++ = static_cast<std::int32_t>(token);
      *pair++ = static_cast<std::int32_t>(token + second);
    }
    first += here;
  }
}

PairInputs PairInputs::of(const NamedTensors& in) {
  const auto* counts = in[kPairCounts].as<std::int32_t>();
  return {.pairs = in[kPairs], .joined = {counts + kJoined}, .halves = {counts + kHalves}};
}

}  // namespace fovea::ernie4_5_vl
