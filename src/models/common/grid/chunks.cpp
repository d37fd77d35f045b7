// The input buffers of towers over chunks of frames.
#include "models/common/grid/chunks.h"

#include "models/common/grid/moonvit.h"
#include "models/common/numbers.h"

namespace fovea::common {

namespace {

constexpr const char* kTimes = "times";
constexpr const char* kMeans = "means";
constexpr const char* kPlaces = "places";

/// Writes one row of four numbers. @return the place after it.
std::int32_t* write_row(std::int32_t* row, std::int64_t a, std::int64_t b, std::int64_t c,
                        std::int64_t d) {
  for (const std::int64_t value : {a, b, c, d}) *row++ = narrow(value);
  return row;
}

}  // namespace

std::vector<BufferDecl> ChunkInputs::declare(const MoonVitConfig& config,
                                             const GraphCapacity& capacity) {
  return {{kTimes, DType::kI32, {patch_capacity(config.grid, capacity), 4}},
          {kMeans, DType::kI32, {capacity.tokens * config.grid.merge_area(), 4}},
          {kPlaces, DType::kI32, {1}}};
}

void ChunkInputs::fill(const MoonVitConfig& config, std::span<const GridRun> runs,
                       const PatchTables&, InputWriter& writer) {
  const auto places_of = [](const GridRun& run) {  // in each frame of a chunk
    return run.plan.grid[1] * run.plan.grid[2];
  };
  std::int64_t patches = 0;
  std::int64_t places = 0;
  for (const GridRun& run : runs) {
    patches += run.patches;
    places += places_of(run);
  }
  auto* time = writer.claim(kTimes, patches).as<std::int32_t>();
  auto* mean = writer.claim(kMeans, places).as<std::int32_t>();
  *writer.claim(kPlaces, 1).as<std::int32_t>() = narrow(places);
  std::int64_t first = 0;  // patch of a chunk
  for (const GridRun& run : runs) {
    const std::int64_t here = places_of(run);
    const std::int64_t frames = run.patches / here;
    for (std::int64_t patch = 0; patch < run.patches; ++patch) {
      const std::int64_t row = frames > 1 ? 1 + patch / here : 0;  // an image has no time
      time = write_row(time, 0, row, 1, 1 + config.init_pos_emb_time);
    }
    for (std::int64_t place = 0; place < here; ++place) {
      mean = write_row(mean, first + place, frames, here, 0);
    }
    first += run.patches;
  }
}

ChunkInputs ChunkInputs::of(const NamedTensors& in) {
  return {.times = in[kTimes], .means = in[kMeans], .places = {in[kPlaces].as<std::int32_t>()}};
}

}  // namespace fovea::common
