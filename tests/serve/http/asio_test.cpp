#include "serve/http/asio.h"

#include <gtest/gtest.h>

#include "serve/http/server.h"
#include "support/allocations.h"

namespace fovea::serve {
namespace {

using fovea::test::FailingAllocation;

TEST(PostSurely, TriesAgainUntilThereIsMemory) {
  asio::io_context context(1);
  int runs = 0;
  {
    const FailingAllocation failing(1, FailingAllocation::Lasts::kOnce);
    post_surely(context, [&] { ++runs; });
    EXPECT_TRUE(failing.happened());
  }
  context.run();
  EXPECT_EQ(runs, 1);
}

TEST(ServerStop, EndsTheServerWhereMemoryRunsOut) {
  const Router router;
  HttpOptions options;
  options.port = 0;
  for (int nth = 1;; ++nth) {
    Server server(options, {.router = &router});
    const FailingAllocation failing(nth, FailingAllocation::Lasts::kOnce);
    server.stop(std::chrono::milliseconds(0));
    EXPECT_TRUE(server.is_idle());
    if (!failing.happened()) break;
  }
}

}  // namespace
}  // namespace fovea::serve
