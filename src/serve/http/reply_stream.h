#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace fovea::serve {

/// The body of a reply that comes piece by piece: a bounded pipe from the thread that has the bytes
/// to that of the connection. Thread-safe.
class ReplyStream {
 public:
  static constexpr std::size_t kCapacity = std::size_t{256} << 10;

  /// @param told called with true when there is room again where put() found none, and with false
  /// when the reader wants no more and the end is not there; on any thread. Must not wait or throw.
  explicit ReplyStream(std::function<void(bool wants_more)> told, std::size_t capacity = kCapacity)
      : told_(std::move(told)), capacity_(capacity) {}

  // For who has the bytes.

  /// Takes all of the bytes; none if it holds as many as its capacity, or nobody reads.
  /// @return whether it took them. @throws std::bad_alloc.
  [[nodiscard]] bool put(std::string_view bytes);
  /// Takes a few bytes more before end(), however many it holds. @return false if the reader wants
  /// no more. @throws std::bad_alloc.
  [[nodiscard]] bool put_last(std::string_view bytes);
  /// Whether the reader wants no more.
  [[nodiscard]] bool is_closed() const noexcept;
  /// No more comes. @param is_whole false: the body has broken off, and the reader has to know.
  void end(bool is_whole) noexcept;

  // For the connection.

  /// What holds the stream for a reply: the stream is closed when the last copy of this goes, so
  /// that nobody fills a body that is never sent.
  [[nodiscard]] static std::shared_ptr<ReplyStream> reading_end(
      const std::shared_ptr<ReplyStream>& stream);
  /// @param changed called from now on when there is something to take, on any thread, under a
  /// lock: must not come back here, wait or throw. Not after close().
  void on_change(std::function<void()> changed);

  struct Piece {
    std::string bytes;
    bool has_ended = false;  ///< these were the last
    bool is_whole = false;   ///< and all there are
  };
  /// All that is there.
  [[nodiscard]] Piece take();
  /// Wants no more.
  void close() noexcept;

 private:
  const std::function<void(bool)> told_;
  const std::size_t capacity_;
  mutable std::mutex mutex_;  // guards what follows
  std::function<void()> changed_;
  std::string bytes_;
  bool was_full_ = false;  // for put(), since the last take()
  bool has_ended_ = false;
  bool is_whole_ = false;
  bool is_closed_ = false;
};

}  // namespace fovea::serve
