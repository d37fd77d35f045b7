#pragma once

#include <future>
#include <span>
#include <vector>

#include "engine/prepare.h"

namespace fovea {

/// The items of a call, prepared window by window (window_items). On a GPU the next window is
/// prepared on a thread of its own while the tower runs on the last; a CPU has no idle cores for
/// that. Not thread-safe.
class PreparedWindows {
 public:
  struct Source {
    const EncoderGraphModel& model;
    const MediaOptions& options;
    ThreadPool& pool;
    std::size_t num_replicas;
    bool on_host;
  };
  struct Window {
    std::span<const MediaItem> media;
    std::vector<PreparedMedia> prepared;  ///< of each
  };

  /// All of `source` and `media` must outlive this object, which waits for its thread at the end.
  PreparedWindows(const Source& source, std::span<const MediaItem> media);

  /// Whether next() has nothing left to return.
  [[nodiscard]] bool done() const noexcept { return begin_ == media_.size(); }
  /// Items of the windows returned so far.
  [[nodiscard]] std::size_t begin() const noexcept { return begin_; }
  /// The next window, in the order of the items; begins with the one after it.
  [[nodiscard]] Window next();

 private:
  [[nodiscard]] std::future<std::vector<PreparedMedia>> prepare(std::size_t begin) const;

  Source source_;
  std::span<const MediaItem> media_;
  std::size_t begin_ = 0;  // of the window that next() returns
  std::future<std::vector<PreparedMedia>> next_;
};

}  // namespace fovea
