#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/export.h"
#include "fovea/placeholder.h"

namespace fovea {

class LogSink;

/// An image or video of a request.
struct CacheItem {
  std::string key;               ///< names the encoder's rows: equal keys, equal rows
  PlaceholderRange placeholder;  ///< where they go in the prompt
};

/// What the cache has to know of a request of the host engine.
struct CacheRequest {
  std::string id;                ///< of the request, unique among those that live
  std::vector<CacheItem> items;  ///< by ascending offset
};

/// Which rows of an encoder are kept, for a scheduler that runs prompts window by window. The cache
/// counts rows, never positions of placeholders: separators and timestamps take no memory. It holds
/// no rows itself; the worker deletes those of drain_evicted().
///
/// An entry that a pair of request and item holds is never evicted. Entries that nobody holds stay
/// until their memory is needed, and then go in the order in which they were last released.
/// Items without rows are never entered.
///
/// A call that throws has changed nothing, but make_room() may have evicted and release_all()
/// released a part.
///
/// Not thread-safe. Source: vLLM pull requests 22711 and 30475, `EncoderCacheManager`; unlike
/// there, a request may hold the same key twice, and an entry knows its size.
class FOVEA_API EncoderCache {
 public:
  /// @throws Error(kInvalidArgument) for a negative capacity.
  explicit EncoderCache(std::int64_t capacity_rows);
  EncoderCache(EncoderCache&&) noexcept;
  EncoderCache& operator=(EncoderCache&&) noexcept;
  ~EncoderCache();

  /// Forgets all entries and evictions.
  void reset();

  /// Whether the rows of an item are here; then the item holds them.
  /// @throws Error(kInvalidArgument) if they are, in another number; nothing changes.
  bool lookup(const CacheRequest& request, std::size_t item);
  /// Rows of the entry of a key, held or not; absent if there is none.
  [[nodiscard]] std::optional<std::int64_t> find_rows(const std::string& key) const;
  /// Makes room for the rows of an item that is not here: evicts as many entries as needed, and
  /// none if that would not do.
  /// @param compute_budget rows that the encoder may compute in this step.
  /// @param promised rows of items that allocate() is still to be called for.
  /// @return whether the item fits into the budget and there is room. Source: `can_allocate`.
  bool make_room(const CacheRequest& request, std::size_t item, std::int64_t compute_budget,
                 std::int64_t promised = 0);
  /// Enters an item that make_room() has made room for; the item holds the entry. An entry that
  /// exists is looked up.
  /// @throws Error(kInternal) if there is no room.
  void allocate(const CacheRequest& request, std::size_t item);

  /// The item, or every item of the request, holds nothing any more. The entry stays until its
  /// memory is needed.
  void release(const CacheRequest& request, std::size_t item);
  void release_all(const CacheRequest& request);

  /// Indices of the items whose rows are here, held or not.
  [[nodiscard]] std::vector<std::size_t> cached_items(const CacheRequest& request) const;
  /// Keys evicted since the last call, in order. A key may have been entered anew since.
  [[nodiscard]] std::vector<std::string> drain_evicted();

  [[nodiscard]] std::int64_t capacity() const noexcept;
  /// Rows that no entry takes.
  [[nodiscard]] std::int64_t num_free() const noexcept;
  /// Rows that no entry takes or that nobody holds.
  [[nodiscard]] std::int64_t num_freeable() const noexcept;
  /// Keys of the entries that nobody holds, in the order in which they would be evicted.
  [[nodiscard]] std::vector<std::string> freeable_keys() const;

 private:
  struct Books;

  std::unique_ptr<Books> books_;
};

/// What bounds the items that a window may have encoded.
struct WindowLimits {
  std::int64_t compute_budget = 0;  ///< rows left in this step, for all requests
  /// Tokens behind the window that a draft model reads. Their rows are planned, too.
  std::int64_t look_ahead = 0;
  bool no_split = false;  ///< a window that begins in front of a placeholder holds it whole
  /// Of the request. Where it is given, a window that would end within look_ahead of that end, but
  /// not at it, ends look_ahead in front of it.
  std::optional<std::int64_t> num_tokens = {};
  /// Whether another store has the rows: they take room here, but no computation. May be empty.
  /// What it throws leaves plan_window() as it is.
  std::function<bool(const std::string& key)> is_remote = {};
};

/// What to encode before a window of a prompt runs.
struct WindowPlan {
  std::vector<std::size_t> local;   ///< items to encode
  std::vector<std::size_t> remote;  ///< items to fetch
  /// Items whose key is that of one in `local` or `remote`.
  std::vector<std::size_t> duplicates;
  std::int64_t length = 0;          ///< tokens of the window; fewer than asked for where room lacks
  std::int64_t compute_budget = 0;  ///< rows left
  std::int64_t rows_waited_for = 0;  ///< of the item that there was no room for; 0: none
  /// An item with another number of rows than an equal key has, in the cache or in this plan. The
  /// request cannot run: nothing is planned, length is 0.
  std::optional<std::size_t> conflict;
};

/// Chooses the items of which a window, or the draft model behind it, needs a row first, and makes
/// room for them. Items are encoded whole. The caller then calls allocate() for those of `local`
/// and `remote` and after them for `duplicates`, or, if it cannot run the window, release_all(): a
/// request that waits must hold nothing.
/// @param window prompt positions from the first that is not computed.
/// @throws Error(kInvalidArgument) for a window that begins below 0 or behind its end, or a
/// look_ahead below 0.
/// Source: vLLM 0.33, `Scheduler._try_schedule_encoder_inputs` and `_reserve_prefill_lookahead`.
[[nodiscard]] FOVEA_API WindowPlan plan_window(EncoderCache& cache, const CacheRequest& request,
                                               IndexRange window, const WindowLimits& limits);

/// Releases the items of a running request whose positions are all computed.
/// @param computed tokens of the request whose key-value pairs the host engine keeps, so without
/// drafted ones that may still be rejected.
FOVEA_API void release_consumed(EncoderCache& cache, const CacheRequest& request,
                                std::int64_t computed);

/// Why a step moved nobody.
struct CacheDeadlock {
  std::int64_t rows_needed = 0;    ///< the fewest that a request waits for
  std::int64_t rows_freeable = 0;  ///< that nobody holds
};

/// Looks whether no request of a step moved while one waits for room; then the host engine has to
/// release what a waiting request holds, or to fail it.
/// @param plans of all requests of the step.
[[nodiscard]] FOVEA_API std::optional<CacheDeadlock> find_deadlock(
    const EncoderCache& cache, std::span<const WindowPlan> plans);

/// Sizes of a cache and of a step, in rows.
struct CacheBudgets {
  std::int64_t compute_rows = 0;   ///< that a step may encode
  std::int64_t capacity_rows = 0;  ///< of the cache
};

/// What a host engine configures.
struct CacheSettings {
  std::int64_t max_num_batched_tokens = 8192;            ///< of a step
  std::int64_t max_item_rows = 0;                        ///< largest item of any modality
  std::optional<std::int64_t> max_batched_encoder_rows;  ///< absent: as the tokens
  std::optional<std::int64_t> encoder_cache_size;        ///< rows; absent: as the line above
  bool no_split = false;                                 ///< as WindowLimits::no_split
};

/// The budgets that follow: each at least the largest item, with a warning where that raises a
/// setting. Both 0 if there is no item.
/// @param log where warnings go; may be null.
/// @throws Error(kInvalidArgument) for negative settings, and if items must not be split and the
/// largest is larger than a step. Source: vLLM, `compute_mm_encoder_budget`.
[[nodiscard]] FOVEA_API CacheBudgets cache_budgets(const CacheSettings& settings,
                                                   LogSink* log = nullptr);

/// The items of one modality, as far as memory is reserved for them.
struct ModalityBounds {
  std::string name;
  std::int64_t max_item_rows = 0;
  std::int64_t max_per_prompt = 1;
};

/// How many items a host engine may run at once.
struct ProfileSettings {
  CacheBudgets budgets;
  std::int64_t max_model_len = 0;  ///< tokens of a prompt
  std::int64_t max_num_seqs = 256;
  std::int64_t max_num_batched_tokens = 8192;
  bool chunked_prefill = true;
};

/// The largest batch of an encoder, for which a host engine reserves memory besides the cache.
struct ProfileCounts {
  std::string modality;  ///< the one with the largest item; of several the last by name
  std::int64_t items_per_prompt = 0;
  std::int64_t items_per_batch = 0;
};

/// The batch to measure before the cache is given its memory; absent without modalities that have
/// rows. @throws Error(kInvalidArgument) for negative settings.
/// Source: vLLM, `MultiModalBudget.get_max_items`.
[[nodiscard]] FOVEA_API std::optional<ProfileCounts> profile_counts(
    std::span<const ModalityBounds> modalities, const ProfileSettings& settings);

}  // namespace fovea
