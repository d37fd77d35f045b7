// Worked cases: rows of a batch, and where they go in text embeddings.
#include "fovea/cached_rows.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <numeric>

#include "cache/requests.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the helpers are written for these tests
using Floats = std::vector<float>;

RowsView view_of(const Floats& values, std::int64_t width) {
  return {.data = reinterpret_cast<const std::byte*>(values.data()),
          .rows = std::ssize(values) / width,
          .width = width};
}

EmbeddingsView target_of(Floats& values, std::int64_t hidden) {
  return {.data = reinterpret_cast<std::byte*>(values.data()),
          .positions = std::ssize(values) / hidden,
          .hidden = hidden};
}

/// The values of all rows, one after the other. Rows are one element wide.
Floats values_of(const GatheredRows& gathered) {
  Floats values;
  for (const RowsView& rows : gathered.rows) {
    const auto* const data = reinterpret_cast<const float*>(rows.data);
    values.insert(values.end(), data, data + rows.rows);
  }
  return values;
}

class GatherRows : public ::testing::Test {
 protected:
  [[nodiscard]] GatheredRows gather(std::int64_t begin, std::int64_t length,
                                    std::int64_t look_ahead = 0) const {
    const RequestWindow window{.request = &request_, .window = {begin, begin + length}};
    return gather_rows({&window, 1}, length, source_, look_ahead);
  }
  void expect(std::int64_t begin, std::int64_t length, const Floats& rows,
              const std::string& mask) const {
    const GatheredRows gathered = gather(begin, length);
    EXPECT_EQ(values_of(gathered), rows);
    EXPECT_EQ(text_of(gathered.is_embed), mask);
  }

  const CacheRequest request_{"r", {item_at("a", 1, 4), masked_item("b", 6, "10101")}};
  std::map<std::string, Floats> store_{{"a", {10, 11, 12, 13}}, {"b", {20, 21, 22}}};
  RowSource source_ = [this](const std::string& key) -> std::optional<RowsView> {
    const auto found = store_.find(key);
    if (found == store_.end()) return std::nullopt;
    return view_of(found->second, 1);
  };
};

TEST_F(GatherRows, TakesTheRowsOfTheWindow) {
  expect(0, 12, {10, 11, 12, 13, 20, 21, 22}, "011110101010");
  expect(3, 4, {12, 13, 20}, "1101");
  expect(6, 1, {20}, "1");
  expect(7, 1, {}, "0");
  expect(4, 5, {13, 20, 21}, "10101");
  expect(0, 1, {}, "0");
}

TEST_F(GatherRows, PutsWindowsOfABatchSideBySide) {
  const std::vector<RequestWindow> windows{
      {.request = &request_, .window = {6, 9}, .first_position = 2},
      {.request = &request_, .window = {0, 2}, .first_position = 5}};
  const GatheredRows gathered = gather_rows(windows, 8, source_);
  EXPECT_EQ(values_of(gathered), (Floats{20, 21, 10}));
  EXPECT_EQ(text_of(gathered.is_embed), "00101010");
}

TEST_F(GatherRows, NamesTheKeyThatIsMissing) {
  store_.erase("b");
  expect_error(ErrorCode::kNotFound, "no rows for b", [&] { (void)gather(0, 12); });
}

TEST_F(GatherRows, LetsRowsBeMissingThatOnlyADraftReads) {
  store_.erase("b");
  EXPECT_EQ(values_of(gather(4, 3, 1)), Floats{13});
  expect_error(ErrorCode::kNotFound, "no rows for b", [&] { (void)gather(4, 5, 1); });
}

TEST_F(GatherRows, RefusesRowsOfAnotherNumber) {
  store_["b"] = {20, 21};
  expect_error(ErrorCode::kInvalidArgument, "the placeholder of b takes 3 rows",
               [&] { (void)gather(0, 12); });
}

TEST_F(GatherRows, RefusesAWindowOutsideTheBatch) {
  const RequestWindow window{.request = &request_, .window = {0, 4}, .first_position = 5};
  expect_error(ErrorCode::kInvalidArgument, "leaves a batch of 8", [&] {
    (void)gather_rows({&window, 1}, 8, source_);
  });
}

TEST_F(GatherRows, RefusesWhatRefersToNothing) {
  const RequestWindow window{.window = {0, 4}};
  test::expect_error(ErrorCode::kInvalidArgument, "a window of no request", [&] {
    (void)gather_rows({&window, 1}, 4, source_);
  });
  source_ = [](const std::string&) { return RowsView{.rows = 4, .width = 1}; };
  test::expect_error(ErrorCode::kInvalidArgument, "request r: no memory for the rows of a",
                     [&] { (void)gather(0, 6); });
}

TEST(MergeRows, WritesNothingIfTheNumbersDiffer) {
  const Floats rows{1, 2, 3};
  Floats embeddings(4, 9.0f);
  expect_error(ErrorCode::kInvalidArgument, "3 rows do not fit 2 positions", [&] {
    merge_rows({.rows = {view_of(rows, 1)}, .is_embed = mask_of("0110")}, target_of(embeddings, 1));
  });
  EXPECT_EQ(embeddings, Floats(4, 9.0f));
}

TEST(MergeRows, SplitsRowsIntoTheirDeepstackLevels) {
  Floats rows{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18};
  Floats embeddings(12, -1.0f);
  Floats levels(24, -1.0f);
  EmbeddingsView target = target_of(embeddings, 3);
  target.deepstack = reinterpret_cast<std::byte*>(levels.data());
  target.levels = 2;
  merge_rows({.rows = {view_of(rows, 9)}, .is_embed = mask_of("0110")}, target);
  EXPECT_EQ(embeddings, (Floats{-1, -1, -1, 0, 1, 2, 10, 11, 12, -1, -1, -1}));
  EXPECT_EQ(levels, (Floats{0, 0, 0, 3, 4, 5, 13, 14, 15, 0, 0, 0,  //
                            0, 0, 0, 6, 7, 8, 16, 17, 18, 0, 0, 0}));
}

TEST(MergeRows, ConvertsToTheDtypeOfTheEmbeddings) {
  const Floats rows{1, 2};
  std::vector<std::uint16_t> embeddings(3, 0x4040);  // 3 in bfloat16
  merge_rows({.rows = {view_of(rows, 1)}, .is_embed = mask_of("101")},
             {.data = reinterpret_cast<std::byte*>(embeddings.data()),
              .positions = 3,
              .hidden = 1,
              .dtype = RowDType::kBFloat16});
  EXPECT_EQ(embeddings, (std::vector<std::uint16_t>{0x3f80, 0x4040, 0x4000}));
}

TEST(MergeRows, RefusesRowsOfAnotherWidth) {
  const Floats rows{1, 2, 3};
  Floats embeddings(4);
  expect_error(ErrorCode::kInvalidArgument, "rows of 3 elements do not fit embeddings of 2", [&] {
    merge_rows({.rows = {view_of(rows, 3)}, .is_embed = mask_of("10")}, target_of(embeddings, 2));
  });
}

TEST(MergeRows, RefusesSizesBelowNothing) {
  const Floats rows{1, 2, 3};
  Floats memory(8, 9.0f);
  EmbeddingsView target = target_of(memory, 2);
  target.deepstack = target.data;
  target.levels = -2;
  target.hidden = -3;  // -3 x (1 - 2) elements are 3
  expect_error(ErrorCode::kInvalidArgument, "embeddings of -3 with -2 deepstack levels", [&] {
    merge_rows({.rows = {view_of(rows, 3)}, .is_embed = mask_of("0100")}, target);
  });
  target.hidden = 2;
  expect_error(ErrorCode::kInvalidArgument, "embeddings of 2 with -2 deepstack levels",
               [&] { merge_rows({.rows = {}, .is_embed = mask_of("0000")}, target); });
  EXPECT_EQ(memory, Floats(8, 9.0f));
}

TEST(MergeRows, RefusesWhatHasNoMemoryAndRowsThatOnlyAddUp) {
  Floats values(4, 1);
  Floats target(4, 0);
  auto* const data = reinterpret_cast<std::byte*>(target.data());
  const auto refuse = [&](const std::vector<RowsView>& rows, const EmbeddingsView& to,
                          const std::string& message) {
    test::expect_error(ErrorCode::kInvalidArgument, message, [&] {
      merge_rows({.rows = rows, .is_embed = std::vector<bool>(4, true)}, to);
    });
    EXPECT_EQ(target, Floats(4, 0));
  };
  const RowsView all = view_of(values, 1);
  const EmbeddingsView to{.data = data, .positions = 4, .hidden = 1};
  refuse({all}, {.positions = 4, .hidden = 1}, "no memory for embeddings of 4 positions");
  refuse({{.rows = 4, .width = 1}}, to, "no memory for 4 rows");
  RowsView less = all;
  less.rows = -1;
  RowsView more = all;
  more.rows = 5;
  refuse({less, more}, to, "-1 rows do not fit a mask of 4 positions");
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  refuse({all}, {.data = data, .positions = 4, .hidden = 2, .levels = largest},
         "rows do not fit embeddings of 2 with 9223372036854775807 deepstack levels");
}

TEST(ScatterRows, IsUndoneByCompactRows) {
  for (const std::string mask : {"01011", "1111", "000", "1", ""}) {
    const PlaceholderRange placeholder(3, std::ssize(mask), mask_of(mask));
    Floats rows(static_cast<std::size_t>(placeholder.num_embeds()) * 2);
    std::iota(rows.begin(), rows.end(), 1.0f);
    Floats scattered(mask.size() * 2, -1.0f);
    scatter_rows(view_of(rows, 2), placeholder, std::as_writable_bytes(std::span(scattered)));
    for (std::size_t i = 0; i < mask.size(); ++i) {
      EXPECT_EQ(scattered[2 * i] != 0.0f, mask[i] == '1') << mask;
    }
    Floats compact(rows.size());
    compact_rows(view_of(scattered, 2), placeholder, std::as_writable_bytes(std::span(compact)));
    EXPECT_EQ(compact, rows) << mask;
  }
}

TEST(ScatterRows, RefusesWhatDoesNotFit) {
  const PlaceholderRange placeholder(0, 3, mask_of("101"));
  const Floats rows{1, 2};
  Floats out(3);
  const auto bytes = std::as_writable_bytes(std::span(out));
  expect_error(ErrorCode::kInvalidArgument, "needs 2 rows, got 1",
               [&] { scatter_rows(view_of({1}, 1), placeholder, bytes); });
  expect_error(ErrorCode::kInvalidArgument, "expected 12 bytes",
               [&] { scatter_rows(view_of(rows, 1), placeholder, bytes.first(8)); });
  expect_error(ErrorCode::kInvalidArgument, "no memory for 2 rows of 1 elements",
               [&] { scatter_rows({.rows = 2, .width = 1}, placeholder, bytes); });
}

}  // namespace
}  // namespace fovea
