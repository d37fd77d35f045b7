#include "serve/routes/item_uses.h"

namespace fovea::serve {

ItemUses::ItemUses(std::span<const std::shared_ptr<const Embedding>> items) noexcept {
  for (const std::shared_ptr<const Embedding>& item : items) {
    switch (item->cache) {
      case CacheUse::kHit: ++hits_; break;
      case CacheUse::kJoin: ++joins_; break;
      case CacheUse::kMiss: ++misses_; break;
      case CacheUse::kBypass:
      case CacheUse::kNotAsked: ++bypasses_; break;
    }
    switch (item->graph) {
      case GraphUse::kHit: ++graph_hits_; break;
      case GraphUse::kPartial: ++graph_partial_; break;
      case GraphUse::kMiss: ++graph_misses_; break;
      case GraphUse::kNone: break;
    }
  }
}

std::string ItemUses::cache_text() const {
  return "hit=" + std::to_string(hits_) + ",join=" + std::to_string(joins_) +
         ",miss=" + std::to_string(misses_) + ",bypass=" + std::to_string(bypasses_);
}

std::string ItemUses::graph_text() const {
  return "hit=" + std::to_string(graph_hits_) + ",partial=" + std::to_string(graph_partial_) +
         ",miss=" + std::to_string(graph_misses_);
}

}  // namespace fovea::serve
