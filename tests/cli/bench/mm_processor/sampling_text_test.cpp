// The notations of buckets and limits.
#include <gtest/gtest.h>

#include "bench/mm_processor/sampling.h"
#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

using test::expect_usage_error;

TEST(BucketConfig, ReadsPythonAndJson) {
  for (const char* text :
       {"{(256, 512, 1): 0.5, (720, 1280, 16): 0.0}", "{(256,512,1):0.5,(720,1280,16):0.0,}",
        "{\"(256, 512, 1)\": 0.5, \"(720, 1280, 16)\": 0.0}",
        "{'(256, 512, 1,)': 5e-1, '[720, 1280, 16]': 0}",
        " { [256, 512, 1] : .5,\n(720,1280,16):0}"}) {
    const std::vector<SizeBucket> buckets = parse_bucket_config(text);
    ASSERT_EQ(buckets.size(), 2U) << text;
    EXPECT_EQ(buckets[0].size.height_px, 256);
    EXPECT_EQ(buckets[0].size.width_px, 512);
    EXPECT_EQ(buckets[0].size.num_frames, 1);
    EXPECT_EQ(buckets[0].probability, 0.5);
    EXPECT_EQ(buckets[1].size.num_frames, 16);
    EXPECT_EQ(buckets[1].probability, 0);
  }
  EXPECT_TRUE(parse_bucket_config("{}").empty());
}

TEST(BucketConfig, SaysWhatIsWrong) {
  const struct {
    const char* text;
    const char* complaint;
  } kCases[] = {
      {"", "--random-mm-bucket-config: character 1: expected '{', got the end"},
      {"(256, 256, 1): 1", "character 1: expected '{', got \"(\""},
      {"{(256, 256, 1): 1", "expected '}', got the end"},
      {"{(256, 256, 1): 1} x", "expected nothing after '}', got \"x\""},
      {"{(256, 256, 1) 1}", "expected ':'"},
      {"{(256, 256, 1): }", "expected a probability"},
      {"{(256, 256, 1): 0.5,, }", "character 21: expected '(', got \",\""},
      {"{(256, 256, 1): nan}", "expected a finite probability, got nan"},
      {"{(256, 256, 1): 1e999}", "expected a probability, got \"1e999\""},
      {"{(256, 256): 1}", "character 11: expected ',', got \")\""},
      {"{(256, 256, 1]: 1}", "expected ')'"},
      {"{\"(256, 256, 1): 1}", "expected '\"'"},
      {"{(a, 256, 1): 1}", "character 3: expected a whole number, got \"a\""},
      {"{(0, 256, 1): 1}", "expected a height from 1 to 65535, got 0"},
      {"{(256, 70000, 1): 1}", "expected a width from 1 to 65535, got 70000"},
      {"{(256, 256, 0): 1}", "expected a number of frames from 1 to 2048, got 0"},
      {"{(8, 8, 1): 1, (8, 8, 1): 2}",
       "--random-mm-bucket-config: expected every size once, got (8, 8, 1) twice"},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.text);
    expect_usage_error(one.complaint, [&] { (void)parse_bucket_config(one.text); });
  }
}

TEST(ItemLimits, ReadsJson) {
  const ItemLimits limits = parse_item_limits(R"({"image": 3, "video": 0})");
  EXPECT_EQ(limits.images, 3);
  EXPECT_EQ(limits.videos, 0);
  EXPECT_EQ(parse_item_limits(R"({"image": 3})").videos, std::nullopt);
}

TEST(ItemLimits, SaysWhatIsWrong) {
  for (const char* text : {"", "[1]", "{", R"({"image": -1})", R"({"image": 1.5})",
                           R"({"video": "1"})", R"({"audio": 1})", R"({"image": 10000000})"}) {
    SCOPED_TRACE(text);
    expect_usage_error("--random-mm-limit-mm-per-prompt: ", [&] { (void)parse_item_limits(text); });
  }
}

}  // namespace
}  // namespace fovea::cli
