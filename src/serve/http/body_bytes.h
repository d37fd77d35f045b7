#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>

namespace fovea::serve {

/// The bytes of a body, which grow at their end. Their memory grows by realloc(): the C library has
/// the system move the pages of a large body, where a vector would copy it, on a thread that serves
/// other connections, too. Not thread-safe while it grows.
class BodyBytes {
 public:
  BodyBytes() = default;
  explicit BodyBytes(std::string_view bytes) { append(bytes); }

  [[nodiscard]] const std::uint8_t* data() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] const std::uint8_t* begin() const noexcept { return data(); }
  [[nodiscard]] const std::uint8_t* end() const noexcept { return data() + size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  /// Makes room for so many bytes in all. @throws std::bad_alloc, and then nothing has changed.
  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    auto* const grown = static_cast<std::uint8_t*>(std::realloc(memory_.get(), capacity));
    if (grown == nullptr) throw std::bad_alloc();
    (void)memory_.release();
    memory_.reset(grown);
    capacity_ = capacity;
  }
  /// The room behind the bytes that are there, with anything in it.
  [[nodiscard]] std::span<std::uint8_t> room() noexcept {
    return {memory_.get() + size_, capacity_ - size_};
  }
  /// The first bytes of that room are filled.
  void commit(std::size_t size) noexcept { size_ += size; }
  /// @throws std::bad_alloc.
  void append(std::string_view bytes) {
    if (bytes.empty()) return;
    reserve(size_ + bytes.size());
    std::memcpy(room().data(), bytes.data(), bytes.size());
    commit(bytes.size());
  }

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const noexcept { std::free(memory); }  // NOLINT
  };
  std::unique_ptr<std::uint8_t, Free> memory_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace fovea::serve
