// A group in which memory runs out, on one rank or in what carries its messages.
#include <gtest/gtest.h>

#include <filesystem>

#include "ranks/mixed_items.h"
#include "ranks/thread_group.h"
#include "ranks/transport/address.h"
#include "support/allocations.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using test::FailingAllocation;

TEST(RanksWithoutMemory, RemoveWhatADeadGroupLeft) {
  const test::TemporaryDirectory folder;
  const std::string path = folder / "a_rendezvous_whose_name_takes_memory";
  {
    const ranks::Listener listener(ranks::parse_address("file://" + path));
    std::filesystem::create_hard_link(path, folder / "kept");
  }
  std::filesystem::rename(folder / "kept", path);
  const ranks::Address address = ranks::parse_address("file://" + path);
  {
    const FailingAllocation failing(1, FailingAllocation::Lasts::kForever);
    ranks::remove_stale(address);
  }
  EXPECT_EQ(folder.entries(), 0U);
}

TEST(RanksWithoutMemory, EndACallAlike) {
  Engine engine = Engine::load(test::golden_folder("qwen3_vl", "model.safetensors"),
                               {.device = "cpu", .num_threads = 1});
  const std::vector<MediaItem> items = test::mixed_items(engine.report(), 1, 1);
  const std::vector<std::string> expected = test::texts_of(engine.encode(items));
  int num_failed = 0;
  bool happened = true;
  for (std::int64_t nth = 1; happened; ++nth) {
    const auto group = connect_threads(2, std::chrono::milliseconds(100'000));
    std::vector<std::vector<Embedding>> rows(2);
    std::optional<FailingAllocation> failing;
    const auto errors = test::on_ranks(group, [&](Communicator& ranks) {
      ranks.all_gather({}, {});  // both threads are there
      if (ranks.rank() == 1) failing.emplace(nth, FailingAllocation::Lasts::kOnce);
      rows[static_cast<std::size_t>(ranks.rank())] = encode_on_ranks(engine, ranks, items);
    });
    happened = failing->happened();
    failing.reset();
    if (errors[0] && errors[1]) {
      EXPECT_STREQ(errors[0]->what(), errors[1]->what()) << nth;
      ++num_failed;
      continue;
    }
    for (std::size_t rank = 0; rank < 2; ++rank) {
      EXPECT_FALSE(errors[rank]) << nth;
      EXPECT_EQ(test::texts_of(rows[rank]), expected) << nth;
    }
  }
  EXPECT_GT(num_failed, 10);
}

}  // namespace
}  // namespace fovea
