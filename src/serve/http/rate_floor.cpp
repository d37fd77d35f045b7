#include "serve/http/rate_floor.h"

#include <algorithm>

namespace fovea::serve {

RateFloor::RateFloor(std::int64_t bytes_per_second, std::chrono::milliseconds grace,
                     std::chrono::milliseconds window, Clock::time_point start)
    : required_(bytes_per_second * window.count() / 1000),
      slot_(std::max<Clock::duration>(window, std::chrono::milliseconds(kSlots)) / kSlots),
      start_(start + grace) {}

void RateFloor::advance(Clock::time_point now) {
  if (required_ <= 0 || now < start_) return;
  const std::int64_t over = (now - start_) / slot_;
  for (; ended_ < over && !broken_; ++ended_) {
    // The slots of a window are full once kSlots have ended; the oldest then makes room.
    if (ended_ + 1 >= kSlots && sum_ < required_) broken_ = true;
    std::int64_t& oldest = bytes_[static_cast<std::size_t>((ended_ + 1) % kSlots)];
    sum_ -= oldest;
    oldest = 0;
  }
}

void RateFloor::add(std::size_t bytes, Clock::time_point now) {
  advance(now);
  if (required_ <= 0 || now < start_) return;
  bytes_[static_cast<std::size_t>(ended_ % kSlots)] += static_cast<std::int64_t>(bytes);
  sum_ += static_cast<std::int64_t>(bytes);
}

bool RateFloor::is_broken(Clock::time_point now) {
  advance(now);
  return broken_;
}

Clock::time_point RateFloor::next_check() const {
  if (required_ <= 0) return Clock::time_point::max();
  return start_ + slot_ * std::max(ended_ + 1, kSlots);
}

}  // namespace fovea::serve
