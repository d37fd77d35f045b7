#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/row_cache.h"
#include "engine/tiers/row_arena.h"
#include "fovea/embedding.h"
#include "fovea/error.h"
#include "fovea/stats.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// The rows of items by their keys, as a tower leaves them, in memory of the devices that computed
/// them and in pinned host memory. As in RowCache, of those who ask for a key at the same time one
/// encodes and the others get its rows. Copies to and from the memory are ordered by the queues
/// that make them: the host waits for none, and what a copy still reads is not overwritten.
///
/// Rows that have to leave a device go to the host, and from there for good: first those that were
/// asked for longest ago, none that somebody has a claim to. Thread-safe.
class TierCache {
 public:
  using Turn = RowCache::Turn;
  class Claim;

  /// Allocates the memory.
  /// @param devices must outlive the cache. @param device_bytes of each of them.
  /// @throws Error(kOutOfMemory).
  TierCache(std::span<Device* const> devices, std::int64_t device_bytes, std::int64_t host_bytes);
  TierCache(const TierCache&) = delete;
  TierCache& operator=(const TierCache&) = delete;
  /// Waits for rows on their way to the host.
  ~TierCache();

  /// The claim of a caller to the rows of a key. The cache must outlive it.
  [[nodiscard]] Claim claim(const std::string& key);
  [[nodiscard]] EncoderCacheStats stats() const;

 private:
  /// Rows as a tower leaves them, and what else is known of their item.
  struct Rows {
    Embedding facts;  // without name, times and data
    DType dtype = DType::kF32;
    Shape shape;
    std::shared_ptr<RowSlot> slot;

    [[nodiscard]] TensorView view() const { return {slot->data(), dtype, shape}; }
  };
  /// One memory. `order`: its keys, from the one asked for longest ago.
  struct Tier {
    Tier(Device& device, bool is_host, std::int64_t bytes);

    RowArena arena;
    RowMarks marks;
    std::unique_ptr<Stream> leaving;  // of a device: its queue to the host
    std::list<std::string> order;
    CacheTierStats counts;
  };
  struct Entry {
    Rows rows;
    Tier* tier = nullptr;
    std::list<std::string>::iterator place;  // in its order
  };
  /// A key that somebody encodes, or that one of those who wait is to encode.
  struct Flight {
    bool is_encoded = false;  // by one of its claims
    bool is_over = false;     // there are rows or an error
    std::int64_t waiting = 0;
    std::optional<Rows> rows;
    std::optional<Error> error;
    std::condition_variable changed;
  };

  // All of these under the mutex.
  [[nodiscard]] Tier& tier_of(const Device& device);
  /// A slot, for which others may have to leave; null if all leaving would not do.
  [[nodiscard]] std::shared_ptr<RowSlot> make_room(Tier& tier, std::size_t bytes);
  [[nodiscard]] bool has_room(const Tier& tier, std::size_t bytes) const;
  /// Whether nobody has a claim to the entry of a key.
  [[nodiscard]] bool is_freeable(const std::string& key) const;
  /// Takes an entry out of its tier: to the host, if it is on a device and there is room.
  void evict(const std::string& key);
  /// Copies an entry into a slot of another tier, on a queue of the device that has `marks`.
  static void move(Entry& entry, Tier& to, const std::shared_ptr<RowSlot>& slot, Stream& queue,
                   RowMarks& marks);
  void keep(const std::string& key, const Rows& rows, Tier& tier);
  void end(const std::string& key, Flight& flight);

  mutable std::mutex mutex_;
  std::list<Tier> devices_;
  std::optional<Tier> host_;
  std::unordered_map<std::string, Entry> entries_;
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;
  EncoderCacheStats counts_;
};

/// Ends with its caller's interest: what it was to encode and did not is left to one who waits. One
/// thread at a time may use it.
class TierCache::Claim {
 public:
  Claim(Claim&& other) noexcept;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim() { end(); }

  [[nodiscard]] Turn turn() const noexcept { return turn_; }

  /// kWait: as RowCache::Claim::wait. @param same_call it is this call that encodes the item.
  void wait(bool same_call);
  /// kFailed: why.
  [[nodiscard]] const Error& error() const { return *error_; }

  /// kEncode: what store() notes beside the rows.
  void describe(const Embedding& item);
  /// kEncode: copies rows of a device into a slot of it, or else of the host, behind what `queue`
  /// holds; then they are there for others. Without room nothing is kept, and one who waits encodes
  /// the item. Ends the claim. @param rows of the item that was described.
  void store(Device& device, Stream& queue, const TensorView& rows);
  /// kEncode: whether store() has kept rows.
  [[nodiscard]] bool is_kept() const noexcept { return is_kept_; }
  /// kEncode: tells those who wait that the item has failed; the next one who asks encodes it anew.
  /// Nothing after store().
  void fail(const Error& error);

  /// kRead: the item without name, times and data, and where its rows are. They stay there until
  /// the claim ends.
  [[nodiscard]] const Embedding& facts() const { return rows_->facts; }
  [[nodiscard]] TensorView rows() const { return rows_->view(); }
  [[nodiscard]] RowSlot& slot() const { return *rows_->slot; }
  /// kRead: brings rows from the host to a device, if there is room, behind what `queue` holds.
  void restore(Device& device, Stream& queue);
  /// Where a queue of a device is now, for RowSlot::end_read.
  [[nodiscard]] RowMark mark(const Device& device, Stream& queue) const;

 private:
  friend TierCache;
  Claim(TierCache& cache, std::string key) : cache_(&cache), key_(std::move(key)) {}
  /// A slot for rows of a device, and the memory that it is in; null: there is no room.
  [[nodiscard]] Tier* reserve(Device& device, std::size_t bytes);
  void end() noexcept;

  TierCache* cache_;  // null: the claim has ended
  std::string key_;
  Turn turn_ = Turn::kEncode;
  std::shared_ptr<Flight> flight_;  // until it is over
  std::optional<Rows> rows_;
  std::optional<Error> error_;
  bool is_kept_ = false;
};

}  // namespace fovea
