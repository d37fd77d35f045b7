#include "serve/routes/server_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

TEST(ServerTiming, SumsTheStagesOfItems) {
  const auto item = std::make_shared<Embedding>();
  item->times = {.read_ms = 1,
                 .decode_ms = 2,
                 .resize_ms = 4,
                 .pack_ms = 8,
                 .encode_ms = 16,
                 .output_ms = 32.5};
  JobReply reply;
  reply.items = {item, item};
  reply.queue_ms = 0.25;
  const std::string text = server_timing(7, reply, Clock::now() - std::chrono::seconds(1));
  EXPECT_THAT(text, testing::StartsWith("fetch;dur=7.000, decode;dur=6.000, prep;dur=24.000, "
                                        "queue;dur=0.250, encode;dur=97.000, total;dur="));
  EXPECT_GE(std::stod(text.substr(text.rfind('=') + 1)), 1000);
}

}  // namespace
}  // namespace fovea::serve
