#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/engine.h"
#include "fovea/export.h"

namespace fovea {

/// One line of `fovea env`: what was looked for, and what was found or why it was not.
using EnvironmentFact = std::pair<std::string, std::string>;

/// Versions, processor, instruction sets, libraries, and which devices and plugins were found or
/// why they were not. Missing ones are facts, not errors.
[[nodiscard]] FOVEA_API std::vector<EnvironmentFact> describe_environment();

/// One check of `fovea verify`.
struct Check {
  std::string name;
  bool passed = false;
  std::string detail;    ///< measured difference, or the reason of the failure or of `skipped`
  bool skipped = false;  ///< there was nothing to check it with; counts as passed
};

/// Runs the self-checks of a loaded engine: eager runs equal replays, an item alone equals the same
/// item in a batch, order is kept, every captured graph gives the same rows under a full load as an
/// eager run, and, with a golden directory, rows equal the stored reference rows. A graph that is
/// not replayed under its load fails its check, so load the engine with
/// EngineOptions::measure_graphs off; otherwise slow graphs are not replayed. Calls of other
/// threads meanwhile may fail the checks that count replays. Returns when all checks have run.
/// @param golden directory with golden.safetensors and images/, or empty.
/// @throws Error(kNotFound) if there is no such directory, Error(kDevice) or Error(kOutOfMemory) as
/// Engine::encode. Differences are failed checks, not errors.
[[nodiscard]] FOVEA_API std::vector<Check> verify(Engine& engine, const std::string& golden,
                                                  const CallBounds& bounds = {});

/// Relative L2 difference between an item's rows and the stored reference rows of the same name:
/// `<stem>.out.pooler_output.0`, `<stem>.out.pooler_output` per view or `<stem>.out.projected`, and
/// `<stem>.out.deepstack_features.<k>` side by side in golden.safetensors. The stem is the item's
/// file name without its extension, for videos "video". Absent if the file holds no reference for
/// the item.
/// @throws Error(kNotFound) or Error(kCorruptData) if golden.safetensors cannot be read.
[[nodiscard]] FOVEA_API std::optional<double> golden_difference(const Embedding& item,
                                                                const std::string& golden);

/// Measures the multiply-add rate of this processor in GFLOP/s with register-only loops of the
/// widest vectors it has, on `num_threads` threads (0: all this process may use) for about
/// `seconds`. Best of several repetitions.
/// @throws Error(kInvalidArgument) for negative threads or seconds that are not positive.
[[nodiscard]] FOVEA_API double measure_fma_peak(int num_threads, double seconds);

/// What the tower is timed on, all of it at once, with random pixels: so many images, or videos, of
/// one size, or items of the sizes listed.
struct TowerLoad {
  std::vector<ItemSize> sizes;  ///< of an item each; empty: the others tell
  std::int64_t count = 1;
  std::int64_t patches = 0;     ///< of an image, or of a temporal patch of a video
  std::int64_t num_frames = 0;  ///< of a video; 0: images
  bool equal_frames = false;    ///< a video holds one frame again and again
};

/// Result of timing the tower on random pixels of a given size.
struct TowerTiming {
  std::int64_t items = 0;
  std::int64_t patches = 0;  ///< of all items together, rows too
  std::int64_t rows = 0;
  double flops = 0;               ///< of GEMMs and attention, two per multiply-add
  std::vector<double> eager_ms;   ///< one entry per repetition
  std::vector<double> replay_ms;  ///< empty unless everything was replayed every time
  std::int64_t budget = 0;        ///< of the largest graph replayed; 0 without replay_ms
};

/// Times the tower alone, where `load` lists no sizes on images or videos whose sides are chosen to
/// give the patches asked for: from prepared pixels in host memory to rows on the device, eager
/// runs and replays in turns. Calls of other threads meanwhile are part of the times.
/// @throws Error(kInvalidArgument) for numbers that are not positive, negative warmups or frames,
/// more than 2^24 patches in all, or if no image or video of the model has that many patches;
/// Error(kUnsupported) for videos if the model takes none.
[[nodiscard]] FOVEA_API TowerTiming time_tower(Engine& engine, const TowerLoad& load, int warmups,
                                               int repetitions, const CallBounds& bounds = {});

/// Mean power of the GPUs of an engine over some time.
struct PowerReading {
  double watts = 0;        ///< of all of them together
  double uncertainty = 0;  ///< relative: 0.02 for 2 %, by the steps of the driver's counter alone
};

/// Watches the energy that the GPUs of an engine take, whoever uses them, from construction to
/// stop(). The driver counts energy in steps of 20 to 100 ms, so less than 0.3 to 1.1 s give no
/// reading. Not thread-safe; the engine outlives it.
class FOVEA_API EnergyWatch {
 public:
  /// Starts a thread that reads the counters, unless there is none.
  /// @throws Error(kIo) if it cannot start, Error(kOutOfMemory).
  explicit EnergyWatch(const Engine& engine);
  ~EnergyWatch();
  EnergyWatch(const EnergyWatch&) = delete;
  EnergyWatch& operator=(const EnergyWatch&) = delete;

  /// Ends the watch. @return absent on a CPU, if a GPU has no counter, and if its steps leave more
  /// than a tenth of the power open.
  [[nodiscard]] std::optional<PowerReading> stop();

 private:
  struct Impl;

  std::unique_ptr<Impl> impl_;
};

/// What the tower takes in runs without a pause.
struct TowerEnergy {
  std::int64_t runs = 0;
  double run_ms = 0;       ///< mean, at the clock that the power limit leaves
  double watts = 0;        ///< of all GPUs of the engine, idle ones too
  double uncertainty = 0;  ///< relative, of watts, as PowerReading::uncertainty

  /// Of a run with all its images or videos.
  [[nodiscard]] double joules() const noexcept { return watts * run_ms / 1000; }
};

/// Runs the tower on what time_tower does, one run after the other as encode() would run them,
/// for about `seconds`, and measures the energy. Calls of other threads meanwhile are part of it.
/// @return absent as EnergyWatch::stop; without a counter at once.
/// @throws Error as time_tower, and kInvalidArgument for seconds that are not positive.
[[nodiscard]] FOVEA_API std::optional<TowerEnergy> measure_tower_energy(
    Engine& engine, const TowerLoad& load, double seconds, const CallBounds& bounds = {});

}  // namespace fovea
