#pragma once

#include <functional>

#include "ops/cuda/gemm/gemm.h"

namespace fovea::cuda {

/// Measures ways to compute one GEMM on random data of its sizes: zeros would draw less power
/// and run faster. GEMMs run as they do in a tower, recorded and one after the other with a
/// small kernel of ours between; weights rotate through more memory than the L2 cache holds,
/// because every layer has its own; activations stay, because their producer just wrote them.
class GemmStopwatch {
 public:
  /// Submits the GEMM it is given to the stream of the stopwatch.
  using Way = std::function<void(const Gemm&)>;

  GemmStopwatch(CudaStream& stream, const Gemm& gemm);
  ~GemmStopwatch();
  GemmStopwatch(const GemmStopwatch&) = delete;
  GemmStopwatch& operator=(const GemmStopwatch&) = delete;

  /// False if memory was short; then nothing can be measured.
  [[nodiscard]] bool is_ready() const noexcept;
  /// Milliseconds of a GEMM in the best of a few short bursts; infinity if the way fails. Blocks
  /// until measured.
  /// @param give_up_ms stop early if it is clearly slower than that.
  [[nodiscard]] float glance(const Way& way, float give_up_ms);

  /// A few GEMMs in a row by a way that glance() has shown to work.
  [[nodiscard]] std::unique_ptr<RecordedGraph> record(const Way& way) {
    return record(way, kRunsOfLoop);
  }
  /// Mean milliseconds of a GEMM in a loop of such a recording, which is long enough, for long
  /// GEMMs, to meet the power limit: the fastest way at full clock is not always the fastest there.
  [[nodiscard]] float measure(const RecordedGraph& recorded);

 private:
  static constexpr int kRunsOfLoop = 10;
  struct Operands;

  /// Makes all rows live.
  void place_live();
  /// Gives an E4M3 GEMM scales.
  void place_scales();
  [[nodiscard]] std::unique_ptr<RecordedGraph> record(const Way& way, int runs);
  /// Milliseconds of so many replays, one after the other.
  [[nodiscard]] float replay_ms(const RecordedGraph& graph, int replays);

  std::unique_ptr<Operands> operands_;
  CudaStream& stream_;
  Gemm gemm_;
};

}  // namespace fovea::cuda
