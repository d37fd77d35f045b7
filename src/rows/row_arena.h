#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "fovea/tower/device/device.h"

namespace fovea {

/// A point that a queue has come to, as a queue of its own that waits for it and does nothing else:
/// it is idle when the point has passed, and other queues, or the host, wait for it.
using RowMark = std::shared_ptr<Stream>;

/// Marks on the queues of one device. One that has passed and that nobody has any more is used
/// again. Thread-safe.
class RowMarks {
 public:
  /// `device` must outlive this object and its marks.
  explicit RowMarks(Device& device) noexcept : device_(device) {}

  /// Where `queue` is now: behind all that was submitted to it.
  [[nodiscard]] RowMark after(Stream& queue);

 private:
  Device& device_;
  std::mutex mutex_;
  std::vector<RowMark> all_;
};

class RowArena;

/// Memory for the rows of one item. It goes back to its arena with the last reference, even while
/// queues still read it: who gets it next writes behind them. Reads may begin and end on several
/// threads at the same time, after the write has ended.
class RowSlot {
 public:
  explicit RowSlot(RowArena& arena) noexcept : arena_(arena) {}
  RowSlot(const RowSlot&) = delete;
  RowSlot& operator=(const RowSlot&) = delete;
  ~RowSlot();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// The device whose memory this is; null: host memory.
  [[nodiscard]] Device* device() const noexcept;

  /// Makes a queue wait until nothing reads what was here before. Several may write, each its own
  /// bytes, also from several threads.
  void begin_write(Stream& queue);
  /// The rows are here when `mark` and those of all other writers have passed.
  void end_write(RowMark mark);
  /// Makes a queue, or the host, wait until the rows are here.
  void begin_read(Stream& queue) const;
  void wait_for_rows() const;
  /// Whether the rows are here, without waiting.
  [[nodiscard]] bool has_rows() const;
  /// What was submitted up to `mark` reads the rows.
  void end_read(RowMark mark);

 private:
  friend RowArena;

  RowArena& arena_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;         // of the rows
  std::vector<RowMark> earlier_;  // what uses the memory for others still
  std::mutex mutex_;
  std::vector<RowMark> written_;                // by each that has
  mutable std::atomic<bool> has_rows_ = false;  // as somebody has seen, who need not look again
  std::vector<RowMark> readers_;
};

/// One piece of memory, cut into slots. Where no hole is large enough there is none, however many
/// there are: who evicts goes on until one is. Thread-safe.
class RowArena {
 public:
  /// Slots begin at multiples of this, and take as many bytes.
  static constexpr std::size_t kAlignment = 256;
  [[nodiscard]] static constexpr std::size_t rounded(std::size_t bytes) noexcept {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  /// @param device whose memory it is; null: host memory.
  RowArena(Device* device, Buffer memory);
  RowArena(const RowArena&) = delete;
  RowArena& operator=(const RowArena&) = delete;
  /// Waits for what still uses slots that have gone back; the others must have.
  ~RowArena();

  /// A slot in the smallest hole that holds it; null: there is none. @param bytes at least 1.
  [[nodiscard]] std::shared_ptr<RowSlot> allocate(std::size_t bytes);

  [[nodiscard]] Device* device() const noexcept { return device_; }
  [[nodiscard]] const Buffer& memory() const noexcept { return memory_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return memory_.bytes(); }
  /// Of all holes together.
  [[nodiscard]] std::size_t free_bytes() const;

 private:
  friend RowSlot;
  struct Hole {
    std::size_t bytes = 0;
    std::vector<RowMark> marks;  // of what may use it still
  };
  using Holes = std::map<std::size_t, Hole>;  // by where they begin

  void release(std::size_t begin, Hole hole);
  /// Joins a hole with the one behind it, if nothing lies between them.
  void join_with_next(Holes::iterator hole);

  Device* device_;
  Buffer memory_;
  mutable std::mutex mutex_;
  Holes holes_;
};

/// A slot in host memory that is its own, and goes with its last reference.
/// @param memory of at least `bytes`, rounded.
[[nodiscard]] std::shared_ptr<RowSlot> slot_of_its_own(Buffer memory, std::size_t bytes);

}  // namespace fovea
