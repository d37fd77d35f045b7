#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/lru.h"
#include "fovea/embedding.h"
#include "fovea/error.h"
#include "fovea/stats.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/device/device.h"
#include "rows/row_arena.h"

namespace fovea {

/// The rows of items by their keys, as a tower leaves them, for callers on several threads: of
/// those that ask for a key at the same time one encodes and the others get its rows, which then
/// stay for those to come. They lie in tiers: memory of the devices that computed them, and memory
/// of the host. Copies to and from the tiers are ordered by the queues that make them: the host
/// waits for none, and what a copy still reads is not overwritten.
///
/// Rows that have to leave a device go to the host, and from there for good: first those that were
/// asked for longest ago, none that somebody has a claim to. Thread-safe.
class RowCache {
 public:
  /// What a caller does about a key.
  enum class Turn : std::uint8_t {
    kRead,    ///< the rows are here
    kEncode,  ///< nobody has them, and others may wait for this caller
    kWait,    ///< another caller encodes them
    kFailed,  ///< the one who encoded them failed
  };
  class Claim;

  /// Allocates the memory. That of the host is pinned for a GPU, and for a CPU comes from the
  /// system as it is written to.
  /// @param devices that compute rows, at least one; must outlive the cache. @param device_bytes of
  /// each of them, @param host_bytes of the host; 0: no rows are kept there.
  /// @throws Error(kOutOfMemory).
  RowCache(std::span<Device* const> devices, std::int64_t device_bytes, std::int64_t host_bytes);
  RowCache(const RowCache&) = delete;
  RowCache& operator=(const RowCache&) = delete;

  /// The claim of a caller to the rows of a key. The cache must outlive it.
  /// @param call what claims of one call have in common; null: this one has nothing.
  [[nodiscard]] Claim claim(const std::string& key, const void* call = nullptr);
  /// A claim to rows that are here, to read them; nothing if they are not. Counts as no query.
  [[nodiscard]] std::optional<Claim> find(const std::string& key);
  [[nodiscard]] EncoderCacheStats stats() const;

  /// All that the cache has of a device.
  struct DeviceMemory {
    Device* device;
    const Buffer* memory;  ///< of the cache
  };
  /// Of each device, in their order.
  [[nodiscard]] std::vector<DeviceMemory> device_memories() const;

 private:
  /// Rows as a tower leaves them, and what else is known of their item.
  struct Rows {
    Embedding facts;  // without name, times and data
    DType dtype = DType::kF32;
    std::shared_ptr<RowSlot> slot;

    [[nodiscard]] TensorView view() const {
      return {slot->data(), dtype, {facts.rows, facts.width}};
    }
  };
  using Entries = Lru<std::string, Rows>;
  /// Memory of a device, or of the host, and what copies rows of the device. One of no bytes has
  /// room for nothing. Claims pin the entries that they read.
  struct Tier {
    Tier(Device* device, Buffer memory);

    std::optional<RowMarks> marks;    // on queues of the device; absent: it is the host's
    std::unique_ptr<Stream> leaving;  // the queue of evicted rows to the host; likewise
    RowArena arena;                   // waits for its marks at the end
    Entries entries;
    CacheTierStats counts;
  };
  /// A slot, and the tier that it is in.
  struct Place {
    Tier* tier = nullptr;  // null: the slot is in none
    std::shared_ptr<RowSlot> slot;
  };
  /// A key that somebody encodes, or that one of those who wait is to encode.
  struct Flight {
    bool is_encoded = false;     // by one of its claims
    const void* call = nullptr;  // of that claim
    bool is_kept = false;        // the rows are in a tier, with a pin of each of those who wait
    std::int64_t waiting = 0;
    std::optional<Rows> rows;  // there are these, or an error: it is over
    std::optional<Error> error;
    std::condition_variable changed;

    [[nodiscard]] bool is_over() const noexcept { return rows || error; }
  };

  [[nodiscard]] Tier& host() noexcept { return tiers_.back(); }
  /// What a slot for so many bytes takes of its tier.
  [[nodiscard]] static std::int64_t cost_of(std::size_t bytes);
  [[nodiscard]] Tier& tier_of(const Device& device);
  /// A slot in the first of some tiers that has room; null if none has.
  [[nodiscard]] Place reserve(std::initializer_list<Tier*> tiers, std::size_t bytes);

  // All of these under the mutex.
  /// Has a claim read the rows of its key. @return the tier that they are in; null: in none.
  [[nodiscard]] Tier* find_for(Claim& claim);
  /// A slot, for which others may have to leave; null if all leaving would not do.
  [[nodiscard]] std::shared_ptr<RowSlot> make_room(Tier& tier, std::size_t bytes);
  /// Takes an entry out of its tier: to the host, if it is on a device and there is room.
  void evict(Tier& from, const std::string& key);
  /// Copies an entry into a slot of another tier, on a queue of the device that has `marks`.
  static void move(const std::string& key, Tier& from, const Place& to, Stream& queue,
                   RowMarks& marks);
  /// Tells those who wait that the flight is over.
  void end(const std::string& key, Flight& flight);

  mutable std::mutex mutex_;
  std::list<Tier> tiers_;  // of the devices, in their order, then of the host
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;
  EncoderCacheStats counts_;
};

/// Ends with its caller's interest: what it was to encode and did not is left to one who waits. One
/// thread at a time may use it.
class RowCache::Claim {
 public:
  Claim(Claim&& other) noexcept;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim() { end(); }

  [[nodiscard]] Turn turn() const noexcept { return turn_; }

  /// kWait: waits until the turn is another one: kRead, kFailed, or kEncode if the one who encoded
  /// gave up. A caller that is to encode several keys does so before it waits for others.
  /// @throws as check_interrupt.
  void wait();
  /// Where the rows come from, or what has become of those that were to be encoded.
  [[nodiscard]] CacheUse use() const noexcept { return use_; }
  /// kFailed: why.
  [[nodiscard]] const Error& error() const { return *error_; }

  /// kEncode: what store() notes beside the rows.
  void describe(const Embedding& item);
  /// kEncode: copies rows of a device into a slot of it, or else of the host, behind what `queue`
  /// holds; then they are there for others. Rows that no tier has room for are kept for those who
  /// wait, if host memory is to be had, and else are left to one of these to encode. Ends the
  /// claim. @param rows of the item that was described.
  void store(Device& device, Stream& queue, const TensorView& rows);
  /// kEncode: whether rows are kept in host memory alone, where several devices may store them.
  [[nodiscard]] bool stores_on_host() const noexcept;
  /// As store() for rows that come in parts: first room for all, then each part, from any thread,
  /// then the end, when they are there for others. @param device any of those that will store.
  void begin_store(Device& device, std::int64_t rows, std::int64_t width, DType dtype);
  /// @param rows some of those that begin_store has made room for. @param first of them.
  void store_part(Device& device, Stream& queue, const ConstTensorView& rows,
                  std::int64_t first) const;
  void end_store();
  /// kEncode: puts rows that somebody else has encoded into host memory, or that of a device where
  /// there is none: then they are there for others, and the turn is kRead. Waits until they are
  /// copied, behind what `queue` holds. @param item what is known of it. @param rows in host
  /// memory. @return false if no tier has room: then nothing has changed.
  [[nodiscard]] bool fill(Device& device, Stream& queue, const Embedding& item,
                          const ConstTensorView& rows);
  /// kEncode: tells those who wait that the item has failed; the next one who asks encodes it anew.
  /// Nothing after store().
  void fail(const Error& error);

  /// kEncode: the caller encodes the item and keeps no rows of it, which is left to one of those
  /// who wait. Nothing after store().
  void bypass();

  /// kRead: the item without name, times and data, and where its rows are. They stay there until
  /// the claim ends.
  [[nodiscard]] const Embedding& facts() const { return rows_->facts; }
  [[nodiscard]] TensorView rows() const { return rows_->view(); }
  [[nodiscard]] RowSlot& slot() const { return *rows_->slot; }
  /// kRead: brings rows from the host to the tier of a device, if there is room, behind what
  /// `queue` holds.
  void restore(Device& device, Stream& queue);
  /// Where a queue of a device is now, for RowSlot::end_read.
  [[nodiscard]] RowMark mark(const Device& device, Stream& queue) const;

 private:
  friend RowCache;
  Claim(RowCache& cache, std::string key, const void* call)
      : cache_(&cache), key_(std::move(key)), call_(call) {}
  /// A slot of its own for rows that others wait for; null: nobody does, or there is no memory.
  [[nodiscard]] std::shared_ptr<RowSlot> slot_for_others(Device& device, std::size_t bytes) const;
  void end() noexcept;

  RowCache* cache_;  // null: the claim has ended
  std::string key_;
  const void* call_;
  Turn turn_ = Turn::kEncode;
  CacheUse use_ = CacheUse::kBypass;
  std::shared_ptr<Flight> flight_;  // until its rows are here, or its error
  std::optional<Rows> rows_;
  Place place_;  // of rows that are being stored
  std::optional<Error> error_;
  bool is_pinned_ = false;  // the entry of the key has a pin of this claim
};

}  // namespace fovea
