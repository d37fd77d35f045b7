#pragma once

#include <cstddef>

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"

namespace fovea {

/// Scratch memory for the intermediates of one forward pass: a bump allocator over memory that
/// somebody else owns. Views stay valid until the scope in which they were taken ends; the same
/// sequence of calls always gives the same addresses, which is what capture needs.
///
/// Without memory (`Arena::measuring()`) it hands out addresses that must not be touched, and only
/// high_water() is of interest: running a forward over counting kernels sizes the real arena.
/// Not thread-safe.
class FOVEA_API Arena {
 public:
  /// Alignment of every view, enough for any vector unit and for tensor maps.
  static constexpr std::size_t kAlignment = 256;

  /// @param memory of `bytes` bytes, aligned to kAlignment; outlives this object and its views.
  Arena(std::byte* memory, std::size_t bytes) noexcept : memory_(memory), capacity_(bytes) {}
  [[nodiscard]] static Arena measuring() noexcept;

  /// Uninitialised memory for a tensor (finite garbage: the memory under an arena starts zeroed).
  /// @throws Error(kInternal) if the arena is too small.
  [[nodiscard]] TensorView tensor(DType dtype, const Shape& shape);

  /// Most bytes ever in use.
  [[nodiscard]] std::size_t high_water() const noexcept { return high_water_; }

  /// Gives back, when it ends, everything taken since it began.
  class Scope {
   public:
    explicit Scope(Arena& arena) noexcept : arena_(arena), mark_(arena.used_) {}
    ~Scope() { arena_.used_ = mark_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    std::size_t mark_;
  };

 private:
  std::byte* memory_;
  std::size_t capacity_;
  std::size_t used_ = 0;
  std::size_t high_water_ = 0;
};

}  // namespace fovea
