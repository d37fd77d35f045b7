// Calls of several ranks: the rows of one, whatever the family, and the same failure for all.
#include "fovea/encode_on_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <new>

#include "ranks/golden_engine.h"
#include "ranks/mixed_items.h"
#include "ranks/rank_programs.h"
#include "ranks/thread_group.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using test::affordable_items;
using test::golden_qwen;
using test::load_on_cpu;
using test::mixed_items;
using test::on_ranks;
using test::texts_of;

/// Calls encode_on_ranks on threads, whose ranks share an engine, and expects the rows of one call.
void expect_rows_of_one(Engine& engine, std::initializer_list<int> sizes,
                        const std::vector<MediaItem>& items, const EncodeOptions& options = {}) {
  const std::vector<std::string> expected = texts_of(engine.encode(items, options));
  for (const int size : sizes) {
    SCOPED_TRACE(cat(size, " ranks, ", items.size(), " items"));
    const auto group = connect_threads(size);
    const auto errors = on_ranks(group, [&](Communicator& ranks) {
      EXPECT_EQ(texts_of(encode_on_ranks(engine, ranks, items, options)), expected);
    });
    for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
  }
}

/// The checkpoint of a family.
class EncodeOnRanksOf : public ::testing::TestWithParam<std::string> {};

TEST_P(EncodeOnRanksOf, AnyNumberOfThreadsGivesTheRowsOfOne) {
  Engine engine = load_on_cpu(GetParam());
  const auto seed = static_cast<unsigned>(fnv1a(engine.report().family));
  const std::size_t count = affordable_items(engine, 6);
  expect_rows_of_one(engine, {1, 3, 8}, mixed_items(engine.report(), seed, count));
}

TEST_P(EncodeOnRanksOf, AnyNumberOfProcessesGivesTheRowsOfOne) {
  const test::TemporaryDirectory folder;
  Engine engine = load_on_cpu(GetParam());
  const std::size_t count = affordable_items(engine, 5);
  std::string expected;
  for (const std::string& text : texts_of(engine.encode(mixed_items(engine.report(), 7, count)))) {
    expected += text + '\n';
  }
  for (const int size : {2, 3, 8}) {  // the last with more ranks than items
    for (const test::RankOutcome& rank : test::run_rank_programs({.size = size,
                                         .rendezvous = "file://" + folder / "ranks",
                                         .model = GetParam(),
                                         .num_items = static_cast<int>(count)})) {
      EXPECT_EQ(rank.output, expected) << size;
    }
    EXPECT_EQ(folder.entries(), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, EncodeOnRanksOf, ::testing::ValuesIn(test::golden_models()),
                         [](const auto& model) {
                           return std::filesystem::path(model.param).filename().string();
                         });

TEST(EncodeOnRanks, LeavesRanksWithoutItems) {
  Engine engine = load_on_cpu(golden_qwen());
  for (const std::size_t count : {0, 1, 2}) {
    expect_rows_of_one(engine, {4}, mixed_items(engine.report(), 1, count));
  }
}

TEST(EncodeOnRanks, SpreadsItemsAsTheReferenceDoes) {
  Engine reference = load_on_cpu(golden_qwen());
  std::vector<MediaItem> items;
  // Patches in proportion to 7, 5, 4, 3 and 1. Source: docs/reference/encoder_graphs.md, "Load
  // balancing".
  for (const std::int64_t width : {7, 5, 4, 3, 1}) {
    items.push_back(
        image_rgb(std::vector<std::uint8_t>(static_cast<std::size_t>(width * 64 * 256 * 3)),
                  width * 64, 256, cat(width)));
  }
  const auto group = connect_threads(2);
  std::vector<Engine> engines;
  engines.push_back(load_on_cpu(golden_qwen()));
  engines.push_back(load_on_cpu(golden_qwen()));
  (void)on_ranks(group, [&](Communicator& ranks) {
    (void)encode_on_ranks(engines[static_cast<std::size_t>(ranks.rank())], ranks, items);
  });
  EXPECT_EQ(engines[0].stats().graph_hits + engines[0].stats().graph_misses, 2);  // 7 and 3
  EXPECT_EQ(engines[1].stats().graph_hits + engines[1].stats().graph_misses, 3);
}

TEST(EncodeOnRanks, TakesItemsOfUnknownSizeAndFinishedRows) {
  Engine engine = load_on_cpu(golden_qwen());
  std::vector<MediaItem> items = mixed_items(engine.report(), 3, 4);
  items.push_back(precomputed(engine.encode(items).front()));
  items.push_back(image_file("missing.jpg"));
  for (const RowDType dtype : {RowDType::kFloat32, RowDType::kBFloat16, RowDType::kFloat16}) {
    expect_rows_of_one(engine, {3}, items, {.dtype = dtype, .on_error = OnError::kSkip});
  }
}

TEST(EncodeOnRanks, KeepsWhatPruningRetained) {
  Engine engine =
      Engine::load(golden_qwen(), {.device = "cpu", .num_threads = 1, .video_pruning_rate = 0.5});
  std::vector<MediaItem> items;
  for (int i = 0; i < 3; ++i) {
    std::vector<std::uint8_t> rgb(std::size_t{6} * 96 * 96 * 3);
    for (std::size_t j = 0; j < rgb.size(); ++j) rgb[j] = static_cast<std::uint8_t>(j * j + j / 99);
    items.push_back(video_rgb(std::move(rgb), 6, 96, 96, 2.0, "clip"));
  }
  EXPECT_TRUE(engine.encode(items).front().retained);
  expect_rows_of_one(engine, {2}, items);
}

class FailingRanks : public ::testing::Test {
 protected:
  /// All ranks end with this error, and encode the next call as if nothing had been.
  void expect_for_all(const std::function<void(Communicator&)>& work, ErrorCode code,
                      const std::string& message) {
    for (const std::optional<Error>& error : on_ranks(group_, work)) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), code) << error->what();
      EXPECT_THAT(error->what(), ::testing::HasSubstr(message));
    }
    const std::vector<std::string> expected = texts_of(engine_.encode(items_));
    const auto after = on_ranks(group_, [&](Communicator& ranks) {
      EXPECT_EQ(texts_of(encode_on_ranks(engine_, ranks, items_)), expected);
    });
    for (const auto& error : after) EXPECT_FALSE(error) << error->what();
  }

  Engine engine_ = load_on_cpu(golden_qwen());
  std::vector<MediaItem> items_ = mixed_items(engine_.report(), 5, 6);
  std::vector<std::unique_ptr<Communicator>> group_ = connect_threads(3);
};

TEST_F(FailingRanks, AgreeOnABadItem) {
  std::vector<MediaItem> items = items_;
  items.push_back(image_file("missing.jpg"));
  expect_for_all([&](Communicator& ranks) { (void)encode_on_ranks(engine_, ranks, items); },
                 ErrorCode::kNotFound, "missing.jpg");
}

TEST_F(FailingRanks, AreNamed) {
  std::vector<MediaItem> items{items_[1]};  // the largest goes to rank 0
  items.push_back(image_bytes({1, 2, 3}, "broken.png"));
  const auto errors =
      on_ranks(group_, [&](Communicator& ranks) { (void)encode_on_ranks(engine_, ranks, items); });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_THAT(error->what(), ::testing::StartsWith("rank 1: "));
  }
}

TEST_F(FailingRanks, StopTheOthers) {
  std::vector<MediaItem> items(200, items_[0]);  // two windows of each rank
  items.push_back(image_file("missing.jpg"));
  std::atomic<int> windows{0};
  const auto work = [&](Communicator& ranks) {
    const auto wait_for_failure = [&](std::int64_t, std::int64_t) {
      ++windows;
      while (!ranks.raised().stop_requested()) std::this_thread::yield();
    };
    (void)encode_on_ranks(engine_, ranks, items, {.progress = wait_for_failure});
  };
  expect_for_all(work, ErrorCode::kNotFound, "missing.jpg");
  EXPECT_LE(windows, 2);  // of four
}

TEST_F(FailingRanks, AgreeOnTheBoundsOfOne) {
  std::stop_source stop;
  stop.request_stop();
  expect_for_all(
      [&](Communicator& ranks) {
        EncodeOptions options;
        if (ranks.rank() == 1) options.bounds.stop = stop.get_token();
        (void)encode_on_ranks(engine_, ranks, items_, options);
      },
      ErrorCode::kCancelled, "rank 1: ");
  expect_for_all(
      [&](Communicator& ranks) {
        EncodeOptions options;
        if (ranks.rank() == 2) options.bounds.deadline = std::chrono::steady_clock::now();
        (void)encode_on_ranks(engine_, ranks, items_, options);
      },
      ErrorCode::kDeadline, "rank 2: ");
}

TEST_F(FailingRanks, RefuseCallsThatDiffer) {
  for (const bool other_dtype : {false, true}) {
    expect_for_all(
        [&](Communicator& ranks) {
          std::vector<MediaItem> items = items_;
          EncodeOptions options;
          if (ranks.rank() == 2 && other_dtype) options.dtype = RowDType::kBFloat16;
          if (ranks.rank() == 2 && !other_dtype) std::swap(items[0], items[2]);
          (void)encode_on_ranks(engine_, ranks, items, options);
        },
        ErrorCode::kInvalidArgument, "rank 2 was called with other items or options than rank 0");
  }
}

TEST_F(FailingRanks, HandOnWhatACallerThrows) {
  int thrown = 0;
  const auto errors = on_ranks(group_, [&](Communicator& ranks) {
    EncodeOptions options;
    if (ranks.rank() == 1) options.progress = [](std::int64_t, std::int64_t) { throw 7; };
    try {
      (void)encode_on_ranks(engine_, ranks, items_, options);
    } catch (int value) {
      thrown = value;
    }
  });
  EXPECT_EQ(thrown, 7);
  EXPECT_FALSE(errors[1]);
  for (const std::size_t other : {std::size_t{0}, std::size_t{2}}) {
    ASSERT_TRUE(errors[other]);
    EXPECT_STREQ(errors[other]->what(), "rank 1: a function of the caller has thrown an exception");
  }
}

// It is the caller's memory that has run out, not that of the group.
TEST_F(FailingRanks, GoOnAfterACallerRanOutOfMemory) {
  std::atomic<int> thrown = 0;
  const auto errors = on_ranks(group_, [&](Communicator& ranks) {
    EncodeOptions options;
    const auto fail = [](std::int64_t, std::int64_t) { throw std::bad_alloc(); };
    if (ranks.rank() == 1) options.progress = fail;
    try {
      (void)encode_on_ranks(engine_, ranks, items_, options);
    } catch (const std::bad_alloc&) {
      ++thrown;
    }
  });
  EXPECT_EQ(thrown, 1);
  EXPECT_FALSE(errors[1]);
  for (const auto& error : on_ranks(
           group_, [&](Communicator& ranks) { (void)encode_on_ranks(engine_, ranks, items_); })) {
    EXPECT_FALSE(error) << error->what();
  }
}

}  // namespace
}  // namespace fovea
