#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "fovea/embedding.h"

namespace fovea::serve {

/// How many items of a reply came from the encoder cache, and from graphs.
class ItemUses {
 public:
  explicit ItemUses(std::span<const std::shared_ptr<const Embedding>> items) noexcept;

  /// The value of the header X-Fovea-Cache: "hit=1,join=0,miss=2,bypass=0". Items for which no
  /// cache was asked have gone past it.
  [[nodiscard]] std::string cache_text() const;
  /// The value of the header X-Fovea-Graph: "hit=2,partial=0,miss=0". Items without work for the
  /// tower are none of these.
  [[nodiscard]] std::string graph_text() const;

 private:
  std::int64_t hits_ = 0;
  std::int64_t joins_ = 0;
  std::int64_t misses_ = 0;
  std::int64_t bypasses_ = 0;
  std::int64_t graph_hits_ = 0;
  std::int64_t graph_partial_ = 0;
  std::int64_t graph_misses_ = 0;
};

}  // namespace fovea::serve
