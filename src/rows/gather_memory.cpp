#include "rows/gather_memory.h"

namespace fovea {

std::byte* GatherMemory::reserve(Device& device, std::size_t bytes, Stream& stream) {
  recent_.add(bytes);
  const bool changes =
      device_ != &device || buffer_.bytes() < bytes || recent_.is_far_below(buffer_.bytes());
  if (changes) {
    wait();
    buffer_ = Buffer{};  // release first: there may not be room for both
    uses_.reset();
    device_ = &device;
    uses_ = device.create_copy_stream();
    buffer_ = device.allocate(recent_.largest());
  } else {
    stream.wait_for(*uses_);
  }
  return buffer_.data();
}

void GatherMemory::add_uses(Stream& stream) noexcept {
  try {
    if (uses_) uses_->wait_for(stream);
  } catch (...) {  // NOLINT: a device that has failed uses nothing, and its next call says so
  }
}

void GatherMemory::wait() noexcept {
  try {
    if (uses_ && !uses_->is_idle()) uses_->synchronize();
  } catch (...) {  // NOLINT: as above
  }
}

}  // namespace fovea
