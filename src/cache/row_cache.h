#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/row_store.h"
#include "fovea/embedding.h"
#include "fovea/encoder_cache.h"
#include "fovea/error.h"
#include "fovea/stats.h"

namespace fovea {

/// The rows of items by their keys, for callers on several threads: of those that ask for a key at
/// the same time one encodes and the others wait for its rows, which then stay for those to come,
/// as far as there is room. An EncoderCache keeps the books, in bytes. Rows that somebody reads are
/// never evicted; the others go in the order in which they were last read. Thread-safe.
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

  /// @param capacity_bytes of rows. @param store where they are kept.
  explicit RowCache(std::int64_t capacity_bytes, RowStore store = host_row_store());

  /// The claim of a caller to the rows of a key. The cache must outlive it.
  [[nodiscard]] Claim claim(const std::string& key);
  /// Counts items of a call whose rows another item of the call has: they make no claim.
  void count_repeats(std::int64_t items);
  [[nodiscard]] EncoderCacheStats stats() const;

 private:
  /// An item whose rows are here.
  struct Entry {
    Embedding item;  // without name, times and data
    std::int64_t bytes = 0;
    StoredRows rows;
  };
  /// A key that somebody encodes, or that one of those who wait is to encode.
  struct Flight {
    bool is_encoded = false;           // by one of its claims
    bool is_over = false;              // there is an entry or an error
    bool is_kept = false;              // the entry is in the books, held by those who wait
    std::vector<std::string> waiting;  // ids of claims that do not know yet how it ended
    std::shared_ptr<const Entry> entry;
    std::optional<Error> error;
    std::condition_variable changed;
  };

  /// The request that stands for a claim in the books.
  static CacheRequest request_of(const std::string& id, const std::string& key, std::int64_t bytes);
  /// Room in the books, held by a claim; evicts what has to go for it.
  [[nodiscard]] bool reserve(const CacheRequest& claim, std::int64_t bytes);
  /// Makes an entry of rows that have room, held by those who wait instead of the claim.
  void keep(const CacheRequest& claim, Flight& flight);
  void end(const std::string& key, Flight& flight);

  RowStore store_;
  mutable std::mutex mutex_;
  EncoderCache books_;
  std::unordered_map<std::string, std::shared_ptr<const Entry>> entries_;
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;
  std::atomic<std::uint64_t> num_claims_{0};
  EncoderCacheStats counts_;
};

/// Ends with its caller's interest: what it was to encode and did not is left to one who waits.
class RowCache::Claim {
 public:
  Claim(Claim&& other) noexcept;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim();

  [[nodiscard]] Turn turn() const noexcept { return turn_; }

  /// kWait: waits until the turn is another one: kRead, kFailed, or kEncode if the one who encoded
  /// gave up. A caller that is to encode several keys does so before it waits for others.
  /// @throws as check_interrupt.
  void wait();
  /// kRead: copies the item into `out`, all but name and times. The rows are not held any longer.
  /// @throws std::bad_alloc.
  void read(Embedding& out);
  /// kFailed: why.
  [[nodiscard]] const Error& error() const { return *flight_->error; }
  /// kEncode: hands the item to those who wait, and keeps it if there is room. Ends the claim.
  /// @return whether it is kept.
  /// @throws std::bad_alloc or Error(kOutOfMemory); then those who wait encode it themselves.
  bool publish(const Embedding& item);
  /// kEncode: tells those who wait that the item has failed; the next one who asks encodes it anew.
  void fail(const Error& error);

 private:
  friend RowCache;
  Claim(RowCache& cache, std::string key);
  void end() noexcept;

  RowCache* cache_;  // null: the claim has ended
  std::string key_;
  std::string id_;
  Turn turn_ = Turn::kEncode;
  std::optional<CacheRequest> holder_;  // of the entry, in the books
  std::shared_ptr<Flight> flight_;      // unless the rows were here
  std::shared_ptr<const Entry> entry_;
};

}  // namespace fovea
