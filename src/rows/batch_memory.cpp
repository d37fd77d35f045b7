// Memory for rows of a device, and who still reads it.
#include "rows/batch_memory.h"

namespace fovea {

BatchMemory::~BatchMemory() {
  try {
    wait();
  } catch (...) {  // NOLINT: a device that has failed reads nothing, and its next call says so
  }
}

void BatchMemory::wait() const {
  if (readers_ && !readers_->is_idle()) readers_->synchronize();
}

void BatchMemory::use(Device& device) {
  if (device_ == &device) return;
  wait();
  buffer_ = Buffer{};
  readers_.reset();
  device_ = &device;
}

Stream& BatchMemory::readers(Device& device) {
  use(device);
  if (!readers_) readers_ = device.create_copy_stream();
  return *readers_;
}

std::byte* BatchMemory::reserve(Device& device, std::size_t bytes, bool is_ordered) {
  use(device);
  recent_.add(bytes);
  const bool changes = buffer_.bytes() < bytes || recent_.is_far_below(buffer_.bytes());
  if (changes || !is_ordered) wait();
  if (changes) {
    buffer_ = Buffer{};  // release first: there may not be room for both
    buffer_ = device.allocate(recent_.largest());
  }
  return buffer_.data();
}

}  // namespace fovea
