#include "serve/routes/item_uses.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea::serve {
namespace {

std::shared_ptr<const Embedding> item(CacheUse cache, GraphUse graph) {
  const auto made = std::make_shared<Embedding>();
  made->cache = cache;
  made->graph = graph;
  return made;
}

TEST(ItemUses, CountsEveryItemOnce) {
  const std::vector items{
      item(CacheUse::kHit, GraphUse::kNone),   item(CacheUse::kHit, GraphUse::kNone),
      item(CacheUse::kJoin, GraphUse::kNone),  item(CacheUse::kMiss, GraphUse::kHit),
      item(CacheUse::kMiss, GraphUse::kHit),   item(CacheUse::kMiss, GraphUse::kPartial),
      item(CacheUse::kBypass, GraphUse::kMiss)};
  EXPECT_EQ(ItemUses(items).cache_text(), "hit=2,join=1,miss=3,bypass=1");
  EXPECT_EQ(ItemUses(items).graph_text(), "hit=2,partial=1,miss=1");
}

TEST(ItemUses, ItemsThatAskedNoCacheWentPastIt) {
  const std::vector items{item(CacheUse::kNotAsked, GraphUse::kMiss)};
  EXPECT_EQ(ItemUses(items).cache_text(), "hit=0,join=0,miss=0,bypass=1");
  EXPECT_EQ(ItemUses({}).graph_text(), "hit=0,partial=0,miss=0");
}

}  // namespace
}  // namespace fovea::serve
