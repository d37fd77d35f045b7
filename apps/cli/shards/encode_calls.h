#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <stop_token>
#include <vector>

#include "fovea/engine.h"
#include "shards/manifest.h"

namespace fovea::cli {

/// Encodes files of a list of any length, in calls of a bounded size. Two calls run at the same
/// time, so that files of the next one are decoded while the tower works on this one. Rows in
/// memory: those of three calls, or of one large item each. A video in a container, whose rows are
/// known when it has been opened, counts as a quarter of a call.
class EncodeCalls {
 public:
  /// Takes the rows of a call, or errors in their place, in the order of add(). Runs inside add()
  /// and finish().
  using Done = std::function<void(std::vector<ItemLine> files, std::vector<Embedding> rows)>;

  /// @param options of all calls; `progress` is called on threads of calls, with the number of
  /// items that are done since the beginning, and of all that were added.
  /// @param engine, as what `done` needs, outlives this.
  EncodeCalls(Engine& engine, const EncodeOptions& options, Done done);
  /// Ends what runs.
  ~EncodeCalls();
  EncodeCalls(const EncodeCalls&) = delete;
  EncodeCalls& operator=(const EncodeCalls&) = delete;

  /// @param file of which the name is known. @param item that it names.
  /// @throws what Engine::encode() throws as a whole, and what `done` throws.
  void add(ItemLine file, MediaItem item);
  /// Waits for all calls. @throws as add().
  void finish();

 private:
  struct Call {
    std::vector<ItemLine> files;
    std::vector<PlannedItem> items;
    std::future<std::vector<Embedding>> rows;
  };
  /// Takes the first files that are waiting as the next call, as many as fit.
  [[nodiscard]] Call take_call();
  [[nodiscard]] std::vector<Embedding> encode(const std::vector<PlannedItem>& items);
  void start();
  void wait_for_first();

  Engine& engine_;
  EncodeOptions options_;
  Done done_;
  std::atomic<std::int64_t> num_done_ = 0;
  std::atomic<std::int64_t> num_added_ = 0;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> forward_;  // the caller's wish to stop
  std::vector<ItemLine> waiting_;
  std::vector<MediaItem> unplanned_;  // the last of these
  std::vector<PlannedItem> planned_;  // the first of them
  std::deque<Call> running_;
};

}  // namespace fovea::cli
