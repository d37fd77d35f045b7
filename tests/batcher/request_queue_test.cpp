// Which requests run together.
#include "batcher/request_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "support/property.h"

namespace fovea::batching {
namespace {

BatcherOptions bounds(std::int64_t items, std::int64_t rows) {
  return {.max_batch_rows = rows, .max_batch_items = items};
}

RequestPtr request(std::uint64_t number, std::int64_t items, std::int64_t rows,
                   const EncodeOptions& how = {}) {
  auto made = std::make_shared<Request>();
  made->number = number;
  made->load = {.items = items, .rows = rows};
  made->how = how;
  return made;
}

std::vector<std::uint64_t> take(RequestQueue& queue) {
  std::vector<std::uint64_t> numbers;
  std::vector<RequestPtr> batch;
  queue.take_batch(batch);
  numbers.reserve(batch.size());
  for (const RequestPtr& one : batch) numbers.push_back(one->number);
  return numbers;
}

using Numbers = std::vector<std::uint64_t>;

TEST(RequestQueue, FillsABatchWithRowsOfSeveralRequests) {
  RequestQueue queue(bounds(10, 100));
  for (const std::uint64_t number : {1, 2, 3, 4}) queue.push(request(number, 1, 30));
  EXPECT_EQ(take(queue), (Numbers{1, 2, 3}));
  EXPECT_EQ(take(queue), (Numbers{4}));
  EXPECT_TRUE(queue.empty());
}

TEST(RequestQueue, PutsInWhoFitsBehindOneWhoDoesNot) {
  RequestQueue queue(bounds(10, 100));
  queue.push(request(1, 1, 60));
  queue.push(request(2, 1, 50));
  queue.push(request(3, 1, 40));
  EXPECT_EQ(take(queue), (Numbers{1, 3}));
  EXPECT_EQ(take(queue), (Numbers{2}));
}

TEST(RequestQueue, KeepsToTheMostItems) {
  RequestQueue queue(bounds(4, 100));
  for (const std::uint64_t number : {1, 2, 3}) queue.push(request(number, 2, 1));
  EXPECT_EQ(take(queue), (Numbers{1, 2}));
}

TEST(RequestQueue, BoundsWithoutEndNeedNoMemoryWithoutEnd) {
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  RequestQueue queue({.max_items = largest, .max_batch_rows = largest, .max_batch_items = largest});
  const std::size_t most = queue.most_requests();
  ASSERT_EQ(most, 65'536u);
  for (std::size_t i = 0; i <= most; ++i) queue.push(request(i, 1, 1));
  EXPECT_TRUE(queue.has_full_batch());
  EXPECT_EQ(take(queue).size(), most);
  EXPECT_EQ(take(queue).size(), 1u);
}

TEST(RequestQueue, KeepsRequestsOfOtherOptionsApart) {
  RequestQueue queue(bounds(10, 100));
  queue.push(request(1, 1, 1));
  queue.push(request(2, 1, 1, {.dtype = RowDType::kBFloat16}));
  queue.push(request(3, 1, 1, {.enforce_eager = true}));
  queue.push(request(4, 1, 1, {.use_cache = false}));
  queue.push(request(5, 1, 1, {.on_error = OnError::kSkip}));
  const EncodeOptions asks{.has_room = [](const MediaItem&, std::int64_t) { return true; }};
  queue.push(request(6, 1, 1, asks));
  queue.push(request(7, 1, 1, asks));
  EXPECT_EQ(take(queue), (Numbers{1, 5}));
  for (const std::uint64_t alone : {2, 3, 4, 6, 7}) EXPECT_EQ(take(queue), Numbers{alone});
}

TEST(RequestQueue, KnowsABatchThatCannotGrow) {
  RequestQueue queue(bounds(3, 100));
  queue.push(request(1, 1, 99));
  EXPECT_FALSE(queue.has_full_batch());
  queue.push(request(2, 1, 1));
  EXPECT_TRUE(queue.has_full_batch()) << "no more rows";
  (void)take(queue);
  queue.push(request(3, 3, 1));
  EXPECT_TRUE(queue.has_full_batch()) << "no more items";
  (void)take(queue);
  queue.push(request(4, 1, 60));
  queue.push(request(5, 1, 60));
  EXPECT_TRUE(queue.has_full_batch()) << "somebody waits for the next";
}

TEST(RequestQueue, RemovesOne) {
  RequestQueue queue(bounds(10, 100));
  const RequestPtr gone = request(2, 1, 1);
  queue.push(request(1, 1, 1));
  queue.push(gone);
  queue.push(request(3, 1, 1));
  queue.remove(*gone);
  EXPECT_EQ(take(queue), (Numbers{1, 3}));
}

TEST(RequestQueue, LosesNobodyAndLetsTheFirstGoFirst) {
  test::for_all(200, [](std::mt19937_64& random) {
    const BatcherOptions options = bounds(8, 100);
    RequestQueue queue(options);
    Numbers waiting;
    const auto count = static_cast<std::uint64_t>(test::uniform(random, 1, 40));
    for (std::uint64_t number = 1; number <= count; ++number) {
      queue.push(request(number, test::uniform(random, 1, 10), test::uniform(random, 0, 130)));
      waiting.push_back(number);
    }
    while (!queue.empty()) {
      std::vector<RequestPtr> batch;
      queue.take_batch(batch);
      ASSERT_FALSE(batch.empty());
      EXPECT_EQ(batch.front()->number, waiting.front());
      Load sum;
      for (const RequestPtr& one : batch) {
        sum.items += one->load.items;
        sum.rows += one->load.rows;
        EXPECT_EQ(std::erase(waiting, one->number), 1u);
      }
      EXPECT_LE(batch.size(), queue.most_requests());
      EXPECT_TRUE(batch.size() == 1 || !RequestQueue::is_large(sum, options));
    }
    EXPECT_TRUE(waiting.empty());
  });
}

}  // namespace
}  // namespace fovea::batching
