// Calls of several ranks into memory of the caller: the rows of one engine on every rank, and
// nothing else written there, whether rows pass through the host or stay where they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/rows/host_room.h"
#include "fovea/encode_on_ranks.h"
#include "ranks/golden_engine.h"
#include "ranks/memory_gathers.h"
#include "ranks/mixed_items.h"
#include "ranks/thread_group.h"

namespace fovea {
namespace {

using test::golden_qwen;
using test::HostRoom;
using test::load_on_cpu;
using test::MemoryGathers;
using test::mixed_items;

/// How a group takes rows from rank to rank.
enum class Way { kHost, kDevice };

/// Threads that encode together with one engine.
class Group {
 public:
  Group(int size, Way way) : threads_(connect_threads(size)) {
    for (auto& ranks : threads_) {
      gathers_.push_back(std::make_unique<MemoryGathers>(*ranks, num_gathers_));
    }
    way_ = way;
  }

  [[nodiscard]] std::size_t size() const { return threads_.size(); }
  /// Gathers of device memory, those of all ranks added up.
  [[nodiscard]] int num_gathers() const { return num_gathers_; }
  [[nodiscard]] std::vector<std::optional<Error>> run(
      const std::function<void(Communicator&)>& work) {
    return test::on_ranks(threads_, [&](Communicator& ranks) {
      const auto rank = static_cast<std::size_t>(ranks.rank());
      work(way_ == Way::kDevice ? *gathers_[rank] : ranks);
    });
  }

 private:
  std::vector<std::unique_ptr<Communicator>> threads_;
  std::vector<std::unique_ptr<Communicator>> gathers_;
  std::atomic<int> num_gathers_{0};
  Way way_;
};

/// Calls encode_on_ranks on threads, whose ranks share an engine, and expects these rows on each of
/// them.
void expect_rows(Engine& engine, Group& group, std::span<const MediaItem> items,
                 std::span<const Embedding> expected, RowDType dtype, std::int64_t gap) {
  const EncodeOptions options{.dtype = dtype, .on_error = OnError::kSkip};
  const auto errors = group.run([&](Communicator& ranks) {
    std::vector<HostRoom> rooms;
    for (const Embedding& item : expected) {
      rooms.emplace_back(item.rows + 2, engine.report().width, dtype, ranks.rank() == 1 ? 0 : gap);
    }
    const auto got = encode_on_ranks(engine, ranks, items, test::blocks_of(rooms), {}, options);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (expected[i].error) {
        ASSERT_TRUE(got[i].error);
        EXPECT_STREQ(got[i].error->what(), expected[i].error->what());
        EXPECT_TRUE(rooms[i].is_untouched());
        continue;
      }
      test::expect_described(got[i], expected[i]);
      EXPECT_EQ(got[i].dtype, dtype);
      rooms[i].expect_rows(expected[i]);
    }
  });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
}

/// As above, the rows of one call.
void expect_rows_of_one(Engine& engine, Group& group, std::span<const MediaItem> items,
                        RowDType dtype, std::int64_t gap) {
  const std::vector<Embedding> expected =
      engine.encode(items, {.dtype = dtype, .on_error = OnError::kSkip});
  expect_rows(engine, group, items, expected, dtype, gap);
}

class EncodeToBlocksOf : public ::testing::TestWithParam<std::string> {};

TEST_P(EncodeToBlocksOf, GivesEveryRankTheRowsOfOne) {
  Engine engine = load_on_cpu(GetParam());
  const auto seed = static_cast<unsigned>(fnv1a(engine.report().family));
  const std::vector<MediaItem> items =
      mixed_items(engine.report(), seed, test::affordable_items(engine, 6));
  const std::vector<Embedding> expected = engine.encode(items);
  for (const auto& [size, way] :
       {std::pair{1, Way::kDevice}, {2, Way::kDevice}, {3, Way::kHost}, {8, Way::kDevice}}) {
    SCOPED_TRACE(cat(size, " ranks, ", way == Way::kHost ? "host" : "device"));
    Group group(size, way);
    expect_rows(engine, group, items, expected, RowDType::kFloat32, 24);
    EXPECT_EQ(group.num_gathers(), way == Way::kDevice && size > 1 ? size : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, EncodeToBlocksOf, ::testing::ValuesIn(test::golden_models()),
                         [](const auto& model) {
                           return std::filesystem::path(model.param).filename().string();
                         });

class EncodeToBlocks : public ::testing::TestWithParam<Way> {
 protected:
  /// Rooms for the items of a rank.
  [[nodiscard]] std::vector<HostRoom> rooms() {
    return test::rooms_for(engine_.encode(items_), RowDType::kFloat32);
  }
  /// All ranks end with this error; and the group goes on, or has ended with the same.
  void expect_for_all(const std::function<void(Communicator&)>& work, ErrorCode code,
                      const std::string& message, bool goes_on = true) {
    for (const std::optional<Error>& error : group_.run(work)) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), code) << error->what();
      EXPECT_THAT(error->what(), ::testing::HasSubstr(message));
    }
    EXPECT_EQ(group_.num_gathers(), 0) << "a rank has begun to gather";
    if (goes_on) return expect_rows_of_one(engine_, group_, items_, RowDType::kFloat32, 0);
    for (const std::optional<Error>& error :
         group_.run([](Communicator& ranks) { ranks.all_gather({}, {}); })) {
      ASSERT_TRUE(error);
      EXPECT_THAT(error->what(), ::testing::HasSubstr(message));
    }
  }

  Engine engine_ = load_on_cpu(golden_qwen());
  std::vector<MediaItem> items_ = mixed_items(engine_.report(), 5, 6);
  Group group_{3, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Ways, EncodeToBlocks, ::testing::Values(Way::kHost, Way::kDevice),
                         [](const auto& way) {
                           return way.param == Way::kHost ? "Host" : "Device";
                         });

TEST_P(EncodeToBlocks, GivesEveryDtypeAndStride) {
  for (const auto& [dtype, gap] : {std::pair{RowDType::kBFloat16, std::int64_t{0}},
                                   {RowDType::kBFloat16, std::int64_t{6}},
                                   {RowDType::kFloat16, std::int64_t{2}}}) {
    expect_rows_of_one(engine_, group_, items_, dtype, gap);
  }
}

TEST_P(EncodeToBlocks, TakesADtypeForEachItem) {
  const std::vector<Embedding> narrow = engine_.encode(items_, {.dtype = RowDType::kBFloat16});
  const std::vector<Embedding> wide = engine_.encode(items_);
  const auto errors = group_.run([&](Communicator& ranks) {
    std::vector<HostRoom> rooms;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      rooms.emplace_back(wide[i].rows, wide[i].width,
                         i % 2 == 0 ? RowDType::kFloat32 : RowDType::kBFloat16);
    }
    (void)encode_on_ranks(engine_, ranks, items_, test::blocks_of(rooms), {});
    for (std::size_t i = 0; i < items_.size(); ++i) {
      rooms[i].expect_rows(i % 2 == 0 ? wide[i] : narrow[i]);
    }
  });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
}

TEST_P(EncodeToBlocks, LeavesRanksWithoutItems) {
  for (const std::size_t count : {0, 1, 2}) {
    expect_rows_of_one(engine_, group_, std::span(items_).first(count), RowDType::kFloat32, 0);
  }
}

TEST_P(EncodeToBlocks, TakesFinishedRowsAndItemsThatAreRefused) {
  items_.push_back(precomputed(engine_.encode(items_).front()));
  items_.push_back(image_file("missing.jpg"));
  expect_rows_of_one(engine_, group_, items_, RowDType::kFloat32, 8);
}

TEST_P(EncodeToBlocks, KeepsWhatPruningRetained) {
  Engine engine = load_on_cpu(golden_qwen(), {.video_pruning_rate = 0.5});
  std::vector<MediaItem> items;
  for (int i = 0; i < 3; ++i) {
    std::vector<std::uint8_t> rgb(std::size_t{6} * 96 * 96 * 3);
    for (std::size_t j = 0; j < rgb.size(); ++j) rgb[j] = static_cast<std::uint8_t>(j * j + j / 99);
    items.push_back(video_rgb(std::move(rgb), 6, 96, 96, 2.0, "clip"));
  }
  expect_rows_of_one(engine, group_, items, RowDType::kFloat32, 0);
}

TEST(EncodeToBlocksTwice, KeepsMemoryUntilTrim) {
  Engine engine = load_on_cpu(golden_qwen());
  const std::vector<MediaItem> items = mixed_items(engine.report(), 5, 6);
  const auto kept_by = [&](Way way) {
    Group group(3, way);
    expect_rows_of_one(engine, group, items, RowDType::kFloat32, 0);
    return engine.trim();
  };
  EXPECT_GT(kept_by(Way::kDevice), kept_by(Way::kHost));
}

TEST_P(EncodeToBlocks, RefusesWhatOneRankCannotWriteTo) {
  const std::vector<HostRoom> known = rooms();
  expect_for_all(
      [&](Communicator& ranks) {
        std::vector<HostRoom> rooms = known;
        std::vector<RowBlock> blocks = test::blocks_of(rooms);
        if (ranks.rank() == 1) blocks[2].data = nullptr;
        (void)encode_on_ranks(engine_, ranks, items_, blocks, {});
      },
      ErrorCode::kInvalidArgument, "rank 1: destination 2: no memory for");
}

TEST_P(EncodeToBlocks, RefusesRoomsThatDiffer) {
  const std::vector<HostRoom> known = rooms();
  expect_for_all(
      [&](Communicator& ranks) {
        std::vector<HostRoom> rooms = known;
        std::vector<RowBlock> blocks = test::blocks_of(rooms);
        if (ranks.rank() == 2) --blocks[0].rows;
        (void)encode_on_ranks(engine_, ranks, items_, blocks, {}, {.on_error = OnError::kSkip});
      },
      ErrorCode::kInvalidArgument, "rank 2 was called with other items or options than rank 0");
}

TEST_P(EncodeToBlocks, FailsItemsThatDoNotFit) {
  const std::vector<HostRoom> known = rooms();
  expect_for_all(
      [&](Communicator& ranks) {
        std::vector<HostRoom> rooms = known;
        std::vector<RowBlock> blocks = test::blocks_of(rooms);
        --blocks[1].rows;
        (void)encode_on_ranks(engine_, ranks, items_, blocks, {});
      },
      ErrorCode::kInvalidArgument, "do not fit into a destination for");
}

TEST_P(EncodeToBlocks, AgreesOnABadItem) {
  items_.push_back(image_file("missing.jpg"));
  const std::vector<MediaItem> items = items_;
  items_.pop_back();
  const std::vector<HostRoom> known = rooms();
  expect_for_all(
      [&](Communicator& ranks) {
        std::vector<HostRoom> rooms = known;
        std::vector<RowBlock> blocks = test::blocks_of(rooms);
        blocks.push_back({});
        (void)encode_on_ranks(engine_, ranks, items, blocks, {});
      },
      ErrorCode::kNotFound, "missing.jpg");
}

TEST_P(EncodeToBlocks, AgreesOnTheBoundsOfOne) {
  const std::vector<HostRoom> known = rooms();
  expect_for_all(
      [&](Communicator& ranks) {
        std::vector<HostRoom> rooms = known;
        EncodeOptions options;
        if (ranks.rank() == 2) options.bounds.deadline = std::chrono::steady_clock::now();
        (void)encode_on_ranks(engine_, ranks, items_, test::blocks_of(rooms), {}, options);
      },
      ErrorCode::kDeadline, "rank 2: ");
}

// Others may wait on their GPUs for what this one cannot send any more.
TEST_P(EncodeToBlocks, EndsAGroupOfDevicesOneOfWhichFails) {
  const std::vector<HostRoom> known = rooms();
  expect_for_all(
      [&](Communicator& ranks) {
        std::vector<HostRoom> rooms = known;
        EncodeOptions options;
        if (ranks.rank() == 1) {
          options.progress = [](std::int64_t, std::int64_t) {
            throw Error(ErrorCode::kDevice, "the GPU has fallen off the bus");
          };
        }
        (void)encode_on_ranks(engine_, ranks, items_, test::blocks_of(rooms), {}, options);
      },
      ErrorCode::kDevice, "rank 1: the GPU has fallen off the bus", GetParam() == Way::kHost);
}

}  // namespace
}  // namespace fovea
