// A batcher while memory runs out: what was accepted has one reply.
#include <gtest/gtest.h>

#include <atomic>

#include "fovea/fovea.h"
#include "support/allocations.h"
#include "support/golden.h"

namespace fovea {
namespace {

using test::FailingAllocation;

std::vector<MediaItem> items() {
  std::vector<MediaItem> items;
  for (int i = 0; i < 2; ++i) {
    items.push_back(image_rgb(std::vector<std::uint8_t>(32 * 32 * 3, 90), 32, 32, "grey"));
  }
  return items;
}

TEST(BatcherAllocationFailure, LeavesNoRequestWithoutAReply) {
  Engine engine = Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"),
                               {.device = "cpu", .num_threads = 1});
  (void)engine.encode(items());
  Batcher batcher(engine);
  std::int64_t accepted = 0;
  std::atomic<std::int64_t> replied = 0;
  const auto run = [&](std::int64_t nth, FailingAllocation::Lasts lasts) {
    std::vector<MediaItem> requests[3] = {items(), items(), items()};
    Batcher::Done done = [&](const BatchReply& reply) {
      if (reply.error) {
        EXPECT_EQ(reply.error->code(), ErrorCode::kOutOfMemory) << reply.error->what();
      }
      ++replied;
    };
    const FailingAllocation failing(nth, lasts);
    for (std::vector<MediaItem>& request : requests) {
      try {
        (void)batcher.submit(std::move(request), {}, done);
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
      }
    }
    for (int i = 0; replied < accepted && i < 2000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return failing.happened();
  };
  for (const auto lasts : {FailingAllocation::Lasts::kOnce, FailingAllocation::Lasts::kForever}) {
    for (std::int64_t nth = 1; run(nth, lasts); nth += 1 + nth / 8) {
    }
    while (replied < accepted) std::this_thread::yield();
  }
  EXPECT_EQ(batcher.submit(items()).rows.get().size(), 2u);
  EXPECT_EQ(batcher.stats().requests, 0);
}

}  // namespace
}  // namespace fovea
