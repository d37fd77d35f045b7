#include "shards/shard.h"

#include <gtest/gtest.h>

#include <set>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

using test::expect_usage_error;

TEST(Shard, APathIsPlacedByItsSha256) {
  // printf photo.jpg | sha256sum: aff6100bd4df0ea6...
  const PathHash hash = hash_of_path("photo.jpg");
  EXPECT_EQ(hash.number, 0xaff6100bd4df0ea6U);
  for (const std::int64_t count : {1, 2, 7}) {
    std::int64_t holders = 0;
    for (std::int64_t index = 0; index < count; ++index) {
      holders += Shard{.index = index, .count = count}.holds(hash) ? 1 : 0;
    }
    EXPECT_EQ(holders, 1) << count;
  }
}

TEST(Shard, ItemsOfAPathAreTogetherAndNotTheSame) {
  const ItemName image{.path = "photo.jpg"};
  EXPECT_EQ(image.text(), "photo.jpg");
  EXPECT_EQ(hash_of_item(image).digest, hash_of_path("photo.jpg").digest);
  const ItemName others[] = {
      {.path = "photo.jpg", .modality = Modality::kVideo},
      {.path = "photo.jpg", .options = R"({"mm_processor_kwargs":{"a":1}})"},
      {.path = "photo.jpg", .options = R"({"mm_processor_kwargs":{"a":2}})"},
      {.path = "photo.jpg", .modality = Modality::kVideo, .options = R"({"fps":1})"}};
  std::set<PathDigest> digests{hash_of_item(image).digest};
  for (const ItemName& other : others) {
    EXPECT_EQ(hash_of_item(other).number, hash_of_item(image).number);
    digests.insert(hash_of_item(other).digest);
    EXPECT_LT(image.text(), other.text());
    EXPECT_LT(other.text(), ItemName{.path = "photo.jpg.png"}.text());
  }
  EXPECT_EQ(digests.size(), 5U);
}

TEST(Shard, ReadsIndexAndCount) {
  EXPECT_EQ(parse_shard("0/1", "--shard"), (Shard{.index = 0, .count = 1}));
  EXPECT_EQ(parse_shard("15/16", "--shard"), (Shard{.index = 15, .count = 16}));
  expect_usage_error("--shard: expected I/N such as 0/16, got \"3\"",
                     [] { (void)parse_shard("3", "--shard"); });
  expect_usage_error("from 0 to 15, got \"16\"", [] { (void)parse_shard("16/16", "--shard"); });
  expect_usage_error("got \"0\"", [] { (void)parse_shard("0/0", "--shard"); });
  expect_usage_error("got \"\"", [] { (void)parse_shard("/", "--shard"); });
}

TEST(Shard, NamesOfFilesAreReadBack) {
  const Shard shard{.index = 3, .count = 16};
  EXPECT_EQ(manifest_name(shard), "manifest-3-of-16.jsonl");
  EXPECT_EQ(shard_of_manifest("manifest-3-of-16.jsonl"), shard);
  EXPECT_EQ(shard_of_manifest("manifest-0-of-1000000.jsonl"),
            (Shard{.index = 0, .count = 1'000'000}));
  EXPECT_EQ(part_name(shard, 7), "part-3-of-16-00007.safetensors");
  EXPECT_EQ(part_number(shard, "part-3-of-16-00007.safetensors"), 7);
  EXPECT_EQ(part_number(shard, part_name(shard, 1'234'567)), 1'234'567);
}

TEST(Shard, OtherNamesAreNone) {
  for (const char* name :
       {"", "manifest-", "manifest-3-of-16", "manifest-03-of-16.jsonl", "manifest-16-of-16.jsonl",
        "manifest--1-of-16.jsonl", "manifest.jsonl", "manifest-of-.jsonl",
        "manifest-3-of-16.jsonl.jsonl", "manifest-0-of-1000001.jsonl"}) {
    EXPECT_FALSE(shard_of_manifest(name)) << name;
  }
  const Shard shard{.index = 3, .count = 16};
  for (const char* name : {"", "part-3-of-16-.safetensors", "part-3-of-16-7.safetensors",
                           "part-3-of-17-00007.safetensors", "part-3-of-16-0000x.safetensors"}) {
    EXPECT_FALSE(part_number(shard, name)) << name;
  }
}

}  // namespace
}  // namespace fovea::cli
