#pragma once

#include <functional>

#include "ops/cuda/gemm/gemm.h"

namespace fovea::cuda {

/// Measures ways to compute one product on random data of its sizes: zeros would draw less power
/// and run faster. Products run as they do in a tower, recorded and one after the other with a
/// small kernel of ours between; weights rotate through more memory than the L2 cache holds,
/// because every layer brings its own; activations stay, because their producer just wrote them.
class GemmStopwatch {
 public:
  /// Submits the product it is given to the stream of the stopwatch.
  using Way = std::function<void(const Gemm&)>;

  GemmStopwatch(CudaStream& stream, const Gemm& gemm);
  ~GemmStopwatch();
  GemmStopwatch(const GemmStopwatch&) = delete;
  GemmStopwatch& operator=(const GemmStopwatch&) = delete;

  /// False if memory was short; then nothing can be measured.
  [[nodiscard]] bool is_ready() const noexcept;
  /// Mean milliseconds of a product; infinity if the way fails. Blocks until measured.
  /// @param give_up_ms stop early if it is clearly slower than that.
  [[nodiscard]] float measure(const Way& way, float give_up_ms);

 private:
  struct Operands;
  std::unique_ptr<Operands> operands_;
  CudaStream& stream_;
  Gemm gemm_;
};

}  // namespace fovea::cuda
