// Greedy packing against plans that vLLM's own code made of random items, and its worked cases.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "graph/budgets.h"
#include "graph/packing.h"

namespace fovea {
namespace {

/// Every path's own limit is in the vectors; sequences are no part of the reference's rule.
constexpr std::int64_t kAnyFrames = 1'000'000;

/// A sub-batch: its items in packed order, and the budget per path (0: not run, absent: eager).
struct Expected {
  std::vector<std::int64_t> items;
  std::vector<std::optional<std::int64_t>> budgets;
  friend bool operator==(const Expected&, const Expected&) = default;
};

void PrintTo(const Expected& batch, std::ostream* out) {  // NOLINT: GoogleTest looks for it
  *out << list_text(batch.items) << " at";
  for (const auto& budget : batch.budgets) *out << ' ' << (budget ? *budget : -1);
}

std::vector<std::int64_t> ints_of(const JsonView& list) {
  std::vector<std::int64_t> values;
  for (const JsonView& value : list.elements()) values.push_back(value.as_int());
  return values;
}

/// What one case of the file asks.
struct Question {
  explicit Question(const JsonView& from) : max_items(from.at("max_items").as_int()) {
    const JsonView budgets = from.at("budgets");
    for (const std::string_view path : budgets.keys()) {
      paths.emplace_back(path);
      lists.push_back(ints_of(budgets.at(path)));
    }
    for (const JsonView& item : from.at("items").elements()) {
      ItemSpec& spec = items.emplace_back();
      for (std::size_t path = 0; path < paths.size(); ++path) {
        spec.path_tokens[path] = item.at(paths[path]).as_int();
      }
    }
  }

  [[nodiscard]] std::vector<Expected> plan(PackingPolicy policy) const {
    Packing packing;
    pack_greedy(items, {.path_budgets = lists, .max_items = max_items, .max_frames = kAnyFrames},
                packing, policy);
    std::vector<Expected> batches;
    for (const SubBatch& batch : packing.batches) {
      Expected& planned = batches.emplace_back();
      for (const PackedItem& packed : packing.items(batch)) planned.items.push_back(packed.item);
      planned.budgets = {batch.budgets.begin(), batch.budgets.begin() + std::ssize(paths)};
    }
    return batches;
  }

  [[nodiscard]] std::vector<Expected> answer(const JsonView& sub_batches) const {
    std::vector<Expected> batches;
    for (const JsonView& batch : sub_batches.elements()) {
      Expected& expected = batches.emplace_back(Expected{.items = ints_of(batch.at("items"))});
      const JsonView budgets = batch.at("budgets");
      for (const std::string& path : paths) {
        const auto budget = budgets.find(path);
        expected.budgets.push_back(budget ? std::optional(budget->as_int()) : std::nullopt);
      }
    }
    return batches;
  }

  std::int64_t max_items;
  std::vector<std::string> paths;
  std::vector<std::vector<std::int64_t>> lists;
  std::vector<ItemSpec> items;
};

class PackingVectors : public ::testing::Test {
 protected:
  const JsonDocument file_ =
      JsonDocument::read(FOVEA_TEST_SOURCE_DIR "/tests/graph/packing_vectors.json");
};

TEST_F(PackingVectors, GreedyPacksAsTheReferenceSince032) {
  int cases = 0;
  int differ_from_filling = 0;
  for (const JsonView& from : file_.root().at("cases").elements()) {
    const Question question(from);
    const auto plan = question.plan(PackingPolicy::kGreedy);
    EXPECT_EQ(plan, question.answer(from.at("sub_batches"))) << "case " << cases;
    const bool as_filled = plan == question.plan(PackingPolicy::kGreedyFill);
    EXPECT_EQ(as_filled, from.at("as_until_0_31").as_bool()) << "case " << cases;
    differ_from_filling += as_filled ? 0 : 1;
    ++cases;
  }
  EXPECT_EQ(cases, 300);
  EXPECT_EQ(differ_from_filling, 140);
}

TEST_F(PackingVectors, WorkedCasesHoldForBothRules) {
  for (const JsonView& from : file_.root().at("worked").elements()) {
    const Question question(from);
    const std::string name = from.at("name").as_string();
    EXPECT_EQ(question.plan(PackingPolicy::kGreedy), question.answer(from.at("sub_batches")))
        << name;
    std::vector<std::vector<std::int64_t>> filled;
    for (const Expected& batch : question.plan(PackingPolicy::kGreedyFill)) {
      filled.push_back(batch.items);
    }
    std::vector<std::vector<std::int64_t>> until_0_31;
    for (const JsonView& batch : from.at("until_0_31").elements()) {
      until_0_31.push_back(ints_of(batch));
    }
    EXPECT_EQ(filled, until_0_31) << name;
  }
}

}  // namespace
}  // namespace fovea
