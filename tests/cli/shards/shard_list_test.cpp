#include "shards/shard_list.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

using fovea::test::expect_error;
using fovea::test::TemporaryDirectory;
using fovea::test::write_text;

class ShardListTest : public ::testing::Test {
 protected:
  std::vector<std::string> paths_of(const std::string& text, const Shard& shard) {
    write_text(folder_ / "list", text);
    const InputArgument list{.text = "@" + (folder_ / "list")};
    ShardList paths({&list, 1}, shard, {});
    std::vector<std::string> found;
    paths.for_each([&](const ListedItem& item, const PathDigest&) { found.push_back(item.path); });
    EXPECT_EQ(std::ssize(found), paths.size());
    paths.require_all_used();
    return found;
  }

  TemporaryDirectory folder_;
};

TEST_F(ShardListTest, ShardsDivideTheListWhateverItsOrder) {
  std::vector<std::string> names;
  for (int i = 0; i < 500; ++i) names.push_back("/images/" + std::to_string(i) + ".jpg");
  std::string forwards;
  std::string backwards;
  for (const std::string& name : names) {
    forwards += name + "\n";
    backwards.insert(0, name + "\n");
  }
  std::vector<std::string> all;
  for (std::int64_t index = 0; index < 5; ++index) {
    const Shard shard{.index = index, .count = 5};
    std::vector<std::string> ours = paths_of(forwards, shard);
    std::vector<std::string> reversed = paths_of(backwards + "/images/other.jpg\n", shard);
    EXPECT_GT(ours.size(), 50U);
    std::erase(reversed, "/images/other.jpg");
    std::reverse(reversed.begin(), reversed.end());
    EXPECT_EQ(ours, reversed);
    all.insert(all.end(), ours.begin(), ours.end());
  }
  std::sort(all.begin(), all.end());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(all, names);
}

TEST_F(ShardListTest, CopiesCountOnce) {
  EXPECT_EQ(paths_of("/b\n/a\n/b\n# /c\n\n /a \n", {}), (std::vector<std::string>{"/b", "/a"}));
}

TEST_F(ShardListTest, LinesAreTakenAsTheyAre) {
  EXPECT_EQ(paths_of("*.png\n", {}), (std::vector<std::string>{folder_ / "*.png"}));
  EXPECT_EQ(paths_of("https://a/b\n", {}), (std::vector<std::string>{"https://a/b"}));
}

TEST_F(ShardListTest, ItemsOfAPathDifferByTheirOptions) {
  EXPECT_EQ(paths_of(R"(/a
{"image": "/a"}
{"image": "/a", "mm_processor_kwargs": {"max_pixels": 5}}
{"mm_processor_kwargs": {"max_pixels": 5}, "image": "/a"}
{"video": "/a"}
{"video": "/a", "fps": 1}
)",
                     {}),
            (std::vector<std::string>{"/a", "/a", "/a", "/a"}));
}

TEST_F(ShardListTest, FindsWhatIsWrongBeforeAnythingIsEncoded) {
  expect_error(ErrorCode::kInvalidArgument, "list:2: max_pixels: no such member",
               [&] { (void)paths_of("/a\n{\"image\": \"/b\", \"max_pixels\": 5}\n", {}); });
  expect_error(
      ErrorCode::kInvalidArgument, "list:1: expected options of at most 8192 bytes, got ", [&] {
        (void)paths_of(
            R"({"image": "a", "mm_processor_kwargs": {"a": ")" + std::string(9000, 'x') + "\"}}\n",
            {});
      });
}

TEST_F(ShardListTest, SaysThatItemsHaveLeftTheListSinceItWasReadFirst) {
  write_text(folder_ / "list", "/a\n/b\n/c\n");
  const InputArgument list{.text = "@" + (folder_ / "list")};
  ShardList paths({&list, 1}, {}, {});
  write_text(folder_ / "list", "/new\n/b\n");
  std::vector<std::string> found;
  paths.for_each([&](const ListedItem& item, const PathDigest&) { found.push_back(item.path); });
  EXPECT_EQ(found, std::vector<std::string>{"/b"});
  expect_error(ErrorCode::kInvalidArgument, "list has changed since the run began: 2 items",
               [&] { paths.require_all_used(); });
}

TEST_F(ShardListTest, RefusesPathsThatAManifestCannotHold) {
  expect_error(ErrorCode::kInvalidArgument, "list:2: expected a path in UTF-8",
               [&] { (void)paths_of("/a\n/\xff\n", {}); });
  expect_error(ErrorCode::kInvalidArgument, "list:1: expected a path of less than 4096 bytes",
               [&] { (void)paths_of("/" + std::string(5000, 'a') + "\n", {}); });
}

}  // namespace
}  // namespace fovea::cli
