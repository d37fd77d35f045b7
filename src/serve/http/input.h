#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace fovea::serve {

/// Bytes that have come and are not used up. Small while a connection is idle.
class Input {
 public:
  [[nodiscard]] std::string_view view() const noexcept {
    return {bytes_.data() + begin_, end_ - begin_};
  }
  void consume(std::size_t size) noexcept { begin_ += size; }

  /// Room for `size` bytes behind those that are there. Moves them.
  [[nodiscard]] std::span<char> prepare(std::size_t size) {
    const std::size_t held = end_ - begin_;
    if (begin_ > 0) std::memmove(bytes_.data(), bytes_.data() + begin_, held);
    begin_ = 0;
    end_ = held;
    if (bytes_.size() < held + size) bytes_.resize(held + size);
    return {bytes_.data() + held, size};
  }
  /// The first bytes of that room are filled.
  void commit(std::size_t size) noexcept { end_ += size; }

  /// Gives memory back that a large request has needed.
  void shrink() {
    if (view().empty() && bytes_.size() > kSmall) *this = Input();
  }

 private:
  static constexpr std::size_t kSmall = std::size_t{8} << 10;

  std::vector<char> bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace fovea::serve
