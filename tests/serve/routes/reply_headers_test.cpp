#include "serve/routes/reply_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fovea::serve {
namespace {

std::shared_ptr<const Embedding> item(CacheUse cache, GraphUse graph, std::int64_t rows = 0) {
  const auto made = std::make_shared<Embedding>();
  made->cache = cache;
  made->graph = graph;
  made->rows = rows;
  return made;
}

std::string header_of(const JobReply& reply, const char* name) {
  const Headers headers = encoding_headers(reply, 0, Clock::now());
  const std::string* value = find_header(headers, name);
  return value == nullptr ? "absent" : *value;
}

TEST(EncodingHeaders, CountEveryItemOnce) {
  JobReply reply;
  reply.items = {
      item(CacheUse::kHit, GraphUse::kNone, 4), item(CacheUse::kHit, GraphUse::kNone),
      item(CacheUse::kJoin, GraphUse::kNone),   item(CacheUse::kMiss, GraphUse::kHit, 3),
      item(CacheUse::kMiss, GraphUse::kHit),    item(CacheUse::kMiss, GraphUse::kPartial),
      item(CacheUse::kBypass, GraphUse::kMiss)};
  EXPECT_EQ(header_of(reply, "X-Fovea-Rows"), "7");
  EXPECT_EQ(header_of(reply, "X-Fovea-Cache"), "hit=2,join=1,miss=3,bypass=1");
  EXPECT_EQ(header_of(reply, "X-Fovea-Graph"), "hit=2,partial=1,miss=1");
}

TEST(EncodingHeaders, CountItemsThatAskedNoCacheAsPastIt) {
  JobReply reply;
  EXPECT_EQ(header_of(reply, "X-Fovea-Graph"), "hit=0,partial=0,miss=0");
  reply.items = {item(CacheUse::kNotAsked, GraphUse::kMiss)};
  EXPECT_EQ(header_of(reply, "X-Fovea-Cache"), "hit=0,join=0,miss=0,bypass=1");
}

TEST(EncodingHeaders, SumTheStagesOfItems) {
  const auto timed = std::make_shared<Embedding>();
  timed->times = {.read_ms = 1,
                  .decode_ms = 2,
                  .resize_ms = 4,
                  .pack_ms = 8,
                  .encode_ms = 16,
                  .output_ms = 32.5};
  JobReply reply;
  reply.items = {timed, timed};
  reply.queue_ms = 0.25;
  const Headers headers = encoding_headers(reply, 7, Clock::now() - std::chrono::seconds(1));
  const std::string& text = *find_header(headers, "Server-Timing");
  EXPECT_THAT(text, testing::StartsWith("fetch;dur=7.000, decode;dur=6.000, prep;dur=24.000, "
                                        "queue;dur=0.250, encode;dur=97.000, total;dur="));
  EXPECT_GE(std::stod(text.substr(text.rfind('=') + 1)), 1000);
}

}  // namespace
}  // namespace fovea::serve
