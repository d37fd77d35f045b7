// Packing against the worked tables of docs/reference/encoder_graphs.md, "Greedy packing".
#include "graph/packing.h"

#include <gtest/gtest.h>

#include <sstream>

#include "graph/budgets.h"

namespace fovea {
namespace {

using List = std::vector<std::int64_t>;
using Lists = std::vector<List>;
using Items = std::vector<ItemSpec>;

constexpr std::int64_t kNoFrameLimit = 1'000'000;

ItemSpec item(std::int64_t tokens, std::int64_t seqs = 1) {
  return {.input_rows = 4 * tokens, .out_rows = tokens, .num_seqs = seqs, .path_tokens = {tokens}};
}

ItemSpec two_path_item(std::int64_t global, std::int64_t local) {
  return {
      .input_rows = 0, .out_rows = global + local, .num_seqs = 1, .path_tokens = {global, local}};
}

/// An image of w x h tiles: 272 tokens of the page, 100 per tile if there is more than one.
ItemSpec crop(std::int64_t w, std::int64_t h) {
  return two_path_item(272, w * h > 1 ? 100 * w * h : 0);
}

Items items_of(const List& tokens) {
  Items items;
  for (const std::int64_t count : tokens) items.push_back(item(count));
  return items;
}

/// As the tables write it: "[1,4] 60->64; [3] 81->none", paths separated by "|".
std::string to_text(const Packing& packing, std::size_t num_paths) {
  std::ostringstream text;
  for (std::size_t b = 0; b < packing.batches.size(); ++b) {
    const SubBatch& batch = packing.batches[b];
    const auto members = packing.items(batch);
    text << (b == 0 ? "[" : "; [");
    for (std::size_t i = 0; i < members.size(); ++i) text << (i == 0 ? "" : ",") << members[i].item;
    text << ']';
    for (std::size_t path = 0; path < num_paths; ++path) {
      text << (path == 0 ? " " : "|") << batch.load[path] << "->";
      if (!batch.budgets[path]) {
        text << "none";
      } else if (batch.load[path] == 0) {
        text << "skip";
      } else {
        text << *batch.budgets[path];
      }
    }
  }
  return std::move(text).str();
}

std::string greedy(const Items& items, const Lists& budgets, std::int64_t max_items,
                   std::int64_t max_frames = kNoFrameLimit) {
  Packing packing;
  pack_greedy(items, {.path_budgets = budgets, .max_items = max_items, .max_frames = max_frames},
              packing);
  return to_text(packing, budgets.size());
}

struct SingleRow {
  List tokens;
  std::string expected;
};

TEST(Packing, SmallestItemsFirstUntilAReplayIsFull) {
  const SingleRow rows[] = {
      {{4, 4, 4, 4, 4, 4, 4, 4}, "[0,1,2,3] 16->16; [4,5,6,7] 16->16"},
      {{81}, "[0] 81->none"},
      {{30, 4, 16, 81, 10}, "[1,4] 14->16; [2,0] 46->64; [3] 81->none"},
      {{60, 4, 1, 64}, "[2,1] 5->16; [0] 60->64; [3] 64->64"},
      {{5, 5, 5}, "[0,1,2] 15->16"},
      {{0, 0, 5}, "[0,1,2] 5->16"},
      {{0}, "[0] 0->skip"},
      {{}, ""},
  };
  for (const SingleRow& row : rows) {
    EXPECT_EQ(greedy(items_of(row.tokens), {{16, 64}}, 4), row.expected) << list_text(row.tokens);
  }
}

TEST(Packing, ASubBatchTakesTheSmallestBudgetThatHoldsIt) {
  EXPECT_EQ(
      greedy(items_of({1196, 64, 256, 256, 64, 4096, 1024}), {generate_budgets(64, 4096)}, 64),
      "[1,4] 128->128; [2,3] 512->512; [6] 1024->1024; [0] 1196->2048; [5] 4096->4096");
  const List steps{512, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 4864};
  EXPECT_EQ(greedy(items_of(List(20, 144)), {steps}, 8),
            "[0,1,2,3,4,5,6,7] 1152->1536; [8,9,10,11,12,13,14,15] 1152->1536; "
            "[16,17,18,19] 576->1024");
  EXPECT_EQ(greedy(items_of(List(5, 144)), {steps}, 8), "[0,1,2,3,4] 720->1024");
}

TEST(Packing, AnyPathThatIsFullClosesASubBatch) {
  const Lists lists{generate_budgets(272, 13824),
                    {0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 13824}};
  EXPECT_EQ(greedy({crop(1, 1)}, lists, 50), "[0] 272->272|0->skip");
  EXPECT_EQ(greedy({crop(2, 3)}, lists, 50), "[0] 272->272|600->800");
  EXPECT_EQ(greedy({crop(1, 1), crop(2, 3), crop(1, 1)}, lists, 50), "[0,2,1] 816->1088|600->800");
  EXPECT_EQ(greedy(Items(4, crop(2, 2)), lists, 3),
            "[0,1,2] 816->1088|1200->1600; [3] 272->272|400->400");
  EXPECT_EQ(greedy(Items(20, crop(3, 3)), lists, 50),
            "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14] 4080->4352|13500->13824; "
            "[15,16,17,18,19] 1360->2176|4500->6400");
  EXPECT_EQ(greedy({two_path_item(272, 13900)}, lists, 50), "[0] 272->272|13900->none");
}

TEST(Packing, ALowerTopOfOnePathClosesASubBatchSooner) {
  const Lists lists{generate_budgets(272, 13824), {0, 100, 200, 400, 800, 1600, 3200, 6400, 12800}};
  EXPECT_EQ(greedy(Items(20, crop(3, 3)), lists, 50),
            "[0,1,2,3,4,5,6,7,8,9,10,11,12,13] 3808->4352|12600->12800; "
            "[14,15,16,17,18,19] 1632->2176|5400->6400");
}

TEST(Packing, EveryPathTakesItsOwnBudgetOrNone) {
  const Lists lists{{272, 544}, {0, 100, 200, 400}};
  const auto pack = [&](const Items& items) { return greedy(items, lists, 8); };
  EXPECT_EQ(pack(Items(3, two_path_item(272, 0))), "[0,1] 544->544|0->skip; [2] 272->272|0->skip");
  EXPECT_EQ(pack({two_path_item(272, 600)}), "[0] 272->272|600->none");
  EXPECT_EQ(pack({two_path_item(272, 0), two_path_item(272, 200), two_path_item(272, 400),
                  two_path_item(272, 300)}),
            "[0,1] 544->544|200->200; [3] 272->272|300->400; [2] 272->272|400->400");
  EXPECT_EQ(pack({two_path_item(600, 0)}), "[0] 600->none|0->skip");
  EXPECT_EQ(pack({two_path_item(600, 300)}), "[0] 600->none|300->400");
  EXPECT_EQ(pack({two_path_item(600, 500)}), "[0] 600->none|500->none");
}

TEST(Packing, EqualItemsKeepTheirOrder) {
  EXPECT_EQ(greedy(items_of({5, 5, 5}), {{16, 64}}, 2), "[0,1] 10->16; [2] 5->16");
}

TEST(Packing, ItemsWithoutTokensJoinOthers) {
  EXPECT_EQ(greedy(items_of({0, 0, 5}), {{16, 64}}, 4), "[0,1,2] 5->16");
}

TEST(Packing, ItemsWithoutTokensAloneSkipTheReplay) {
  EXPECT_EQ(greedy(items_of({0}), {{16, 64}}, 4), "[0] 0->skip");
}

TEST(Packing, SequencesLimitASubBatch) {
  const Items items{item(8, 2), item(4, 1), item(24, 6), item(12, 3)};
  EXPECT_EQ(greedy(items, {{16, 64}}, 4, 8), "[1,0] 12->16; [3] 12->16; [2] 24->64");

  Packing packing;
  const Lists lists{{16, 64}};
  pack_greedy(Items{item(36, 9)}, {.path_budgets = lists, .max_items = 4, .max_frames = 8},
              packing);
  ASSERT_EQ(packing.batches.size(), 1u);
  EXPECT_TRUE(packing.batches[0].too_many_seqs);
}

TEST(Packing, ImagesAreLimitedByItemsAlone) {
  EXPECT_EQ(greedy(items_of({4, 4, 4, 4, 4}), {{16, 64}}, 4, 2), "[0,1,2,3] 16->16; [4] 4->16");
  EXPECT_EQ(greedy(items_of({4, 4}), {{16, 64}}, 4, 0), "[0,1] 8->16");
}

TEST(Packing, ImagesBesideAVideoCountAsSequences) {
  const Items items{item(4), item(4), item(8, 2), item(9, 2)};
  EXPECT_EQ(greedy(items, {{16, 64}}, 8, 4), "[0,1,2] 16->16; [3] 9->16");
  EXPECT_EQ(greedy(items, {{16, 64}}, 8, 3), "[0,1] 8->16; [2] 8->16; [3] 9->16");
}

TEST(Packing, NothingJoinsAnItemThatFitsNowhere) {
  EXPECT_EQ(greedy({item(4, 9), item(5, 1)}, {{16, 64}}, 4, 8), "[0] 4->16; [1] 5->16");
}

TEST(Packing, ReusesTheMemoryOfThePlan) {
  const Lists lists{{16, 64}};
  const PackingLimits limits{.path_budgets = lists, .max_items = 4, .max_frames = 8};
  const Items items = items_of({4, 9, 1, 60});
  Packing packing;
  pack_greedy(items, limits, packing);
  const auto* const order = packing.order.data();
  const auto* const batches = packing.batches.data();
  pack_greedy(items, limits, packing);
  EXPECT_EQ(packing.order.data(), order);
  EXPECT_EQ(packing.batches.data(), batches);
}

}  // namespace
}  // namespace fovea
