#include "shards/shard_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "shards/manifest_check.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

using fovea::test::expect_error;
using fovea::test::read_text;
using fovea::test::TemporaryDirectory;
using fovea::test::write_text;

ManifestHeader header(std::int64_t count = 1, const std::string& dtype = "float32") {
  return {.shard = {.index = 0, .count = count},
          .model = "tower",
          .fingerprint = {},
          .options = {{"dtype", dtype}}};
}

Embedding rows_of(const std::string& name) {
  Embedding item;
  item.name = name;
  item.rows = 2;
  item.width = 3;
  item.data.resize(2 * 3 * sizeof(float));
  std::fill(item.data.begin(), item.data.end(), std::byte{0});
  return item;
}

ItemLine file_line(const std::string& path) {
  return {.path = path, .size = 5, .mtime_ns = 9, .rows = 2, .width = 3};
}

class ShardFolderTest : public ::testing::Test {
 protected:
  /// A run that encodes these paths, each into a part of its own.
  void encode(const std::vector<std::string>& paths) {
    ShardFolder folder(out(), header(), /*resume=*/true);
    folder.begin("f1");
    for (const std::string& path : paths) {
      folder.add_part({file_line(path)}, {rows_of(path)});
    }
    folder.finish({.items = std::ssize(paths)});
  }
  [[nodiscard]] bool has(const std::string& path, std::int64_t mtime_ns = 9) const {
    ShardFolder folder(out(), header(), /*resume=*/true);
    folder.begin("f1");
    return folder.has(hash_of_path(path).digest, 5, mtime_ns);
  }
  [[nodiscard]] std::string out() const { return folder_ / "out"; }
  [[nodiscard]] std::string part(std::int64_t number) const {
    return out() + "/" + part_name({}, number);
  }
  [[nodiscard]] std::string manifest() const { return out() + "/" + manifest_name({}); }

  TemporaryDirectory folder_;
};

TEST_F(ShardFolderTest, KnowsWhatIsEncodedAsLongAsTheFileIsTheSame) {
  encode({"a", "b"});
  EXPECT_TRUE(has("a"));
  EXPECT_FALSE(has("c"));
  EXPECT_FALSE(has("a", 10));
  EXPECT_EQ(check_manifests(out()).problem_count, 0);
}

TEST_F(ShardFolderTest, ARunThatDoesNotBeginLeavesNoManifest) {
  { const ShardFolder folder(out(), header(2), /*resume=*/false); }
  EXPECT_TRUE(std::filesystem::is_empty(out()));
  encode({"a"});
  EXPECT_TRUE(has("a"));
}

TEST_F(ShardFolderTest, RefusesToGoOnWithSomethingElse) {
  encode({"a"});
  const auto open = [&](const ManifestHeader& wanted, bool resume, const std::string& model) {
    ShardFolder(out(), wanted, resume).begin(model);
  };
  expect_error(ErrorCode::kInvalidArgument, "expected --resume",
               [&] { open(header(), false, "f1"); });
  expect_error(ErrorCode::kInvalidArgument, "made with N of --shard I/N 1, this run has 2",
               [&] { open(header(2), true, "f1"); });
  expect_error(ErrorCode::kInvalidArgument, "made with dtype float32, this run has float16",
               [&] { open(header(1, "float16"), true, "f1"); });
  expect_error(ErrorCode::kInvalidArgument, "made with the model tower f1, this run has tower f2",
               [&] { open(header(), true, "f2"); });
  const ShardFolder first(out(), header(), true);
  expect_error(ErrorCode::kUnavailable, "another process encodes this shard",
               [&] { open(header(), true, "f1"); });
}

TEST_F(ShardFolderTest, CutsATornEndAndRemovesAPartWithoutLines) {
  encode({"a"});
  const std::string before = read_text(manifest());
  write_text(manifest(), before + to_text(file_line("b")).substr(0, 20));
  write_text(part(1), "rows of b");
  EXPECT_EQ(check_manifests(out()).problem_count, 2);
  EXPECT_FALSE(has("b"));
  EXPECT_EQ(read_text(manifest()), before);
  EXPECT_FALSE(std::filesystem::exists(part(1)));
}

TEST_F(ShardFolderTest, EncodesItemsOfLostPartsAgain) {
  encode({"a", "b", "c"});
  std::filesystem::remove(part(0));
  write_text(part(1), "another size");
  EXPECT_EQ(check_manifests(out()).problem_count, 2);
  EXPECT_FALSE(has("a"));
  EXPECT_FALSE(has("b"));
  EXPECT_TRUE(has("c"));
  EXPECT_FALSE(std::filesystem::exists(part(1)));
  encode({"a", "b"});
  EXPECT_TRUE(std::filesystem::exists(part(3)));
  EXPECT_TRUE(has("a"));
  const FolderState state = check_manifests(out());
  EXPECT_EQ(state.problem_count, 0);
  EXPECT_EQ(state.shards.front().items, 3);
  EXPECT_EQ(state.shards.front().parts, 3);
}

TEST_F(ShardFolderTest, KeepsAPartWhoseManifestIsMissing) {
  encode({"a"});
  std::filesystem::remove(manifest());
  expect_error(ErrorCode::kInvalidArgument, "this part has no manifest",
               [&] { ShardFolder(out(), header(), true); });
  EXPECT_TRUE(std::filesystem::exists(part(0)));
}

TEST_F(ShardFolderTest, TheCheckFindsItemsTwiceAndOfOtherShards) {
  encode({"a"});
  {
    ShardFolder folder(out(), header(), true);
    folder.begin("f1");
    folder.add_part({file_line("a")}, {rows_of("a")});
    folder.finish({.items = 1});
  }
  const FolderState twice = check_manifests(out());
  ASSERT_EQ(twice.problem_count, 1);
  EXPECT_EQ(twice.problems.front(), "manifest-0-of-1.jsonl: 1 item twice");

  const TemporaryDirectory other;
  ManifestHeader half = header(2);
  ShardFolder folder(other / "out", half, true);
  folder.begin("f1");
  std::string foreign = "0";
  while (half.shard.holds(hash_of_path(foreign))) foreign += "0";
  folder.add_part({file_line(foreign)}, {rows_of(foreign)});
  folder.finish({.items = 1});
  const FolderState state = check_manifests(other / "out");
  ASSERT_EQ(state.problem_count, 2);
  EXPECT_EQ(state.problems[0], "1 shard of 2 missing: 1");
  EXPECT_EQ(state.problems[1], "manifest-0-of-2.jsonl: " + foreign + " belongs to another shard");
}

TEST_F(ShardFolderTest, TheCheckComparesPartsWithTheirLines) {
  encode({"a"});
  std::string text = read_text(manifest());
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    write_text(manifest(), changed);
    return check_manifests(out()).problems.front();
  };
  EXPECT_TRUE(replaced("item_0", "item_1").ends_with("expected a tensor item_1 of its own for a"));
  EXPECT_TRUE(replaced("\"rows\":2", "\"rows\":4").ends_with("another shape than the line of a"));
}

TEST_F(ShardFolderTest, AChangedFileHasANewLineThatCounts) {
  encode({"a"});
  {
    ShardFolder folder(out(), header(), true);
    folder.begin("f1");
    ItemLine changed = file_line("a");
    changed.mtime_ns = 11;
    folder.add_part({changed}, {rows_of("a")});
    folder.finish({.items = 1});
  }
  EXPECT_TRUE(has("a", 11));
  EXPECT_FALSE(has("a", 9));
  const FolderState state = check_manifests(out());
  EXPECT_EQ(state.problem_count, 0);
  EXPECT_EQ(state.shards.front().items, 1);
}

}  // namespace
}  // namespace fovea::cli
