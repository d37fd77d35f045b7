#pragma once

#include <array>
#include <cstdint>

#include "serve/http/message.h"

namespace fovea::serve {

/// Notices a peer that is too slow over a while, however often it sends a byte. Counts in a tenth
/// of a window: an excess of an older tenth makes up for nothing.
class RateFloor {
 public:
  /// @param bytes_per_second over any window that begins `grace` after `start` or later; 0: any.
  RateFloor(std::int64_t bytes_per_second, std::chrono::milliseconds grace,
            std::chrono::milliseconds window, Clock::time_point start);

  /// Counts bytes that went by at `now`, which never goes back.
  void add(std::size_t bytes, Clock::time_point now);
  /// Whether a window that has ended was too slow.
  [[nodiscard]] bool is_broken(Clock::time_point now);
  /// When the next window ends.
  [[nodiscard]] Clock::time_point next_check() const;

 private:
  static constexpr std::int64_t kSlots = 10;
  /// Ends the slots that are over.
  void advance(Clock::time_point now);

  std::int64_t required_;  ///< bytes in a window
  Clock::duration slot_;
  Clock::time_point start_;  ///< of the first window
  std::int64_t ended_ = 0;   ///< slots that are over
  std::array<std::int64_t, kSlots> bytes_{};
  std::int64_t sum_ = 0;  ///< of bytes_
  bool broken_ = false;
};

}  // namespace fovea::serve
