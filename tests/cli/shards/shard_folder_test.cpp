#include "shards/shard_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cli/shards/encoded_shard.h"
#include "shards/manifest_check.h"
#include "support/expect_error.h"

namespace fovea::cli {
namespace {

using test::expect_error;
using test::file_line;
using test::read_text;
using test::shard_header;
using test::write_text;

class ShardFolderTest : public test::EncodedShard {
 protected:
  [[nodiscard]] bool has(const std::string& path, std::int64_t mtime_ns = 9) const {
    ShardFolder folder(out(), shard_header(), /*resume=*/true);
    folder.begin("f1");
    return folder.has(hash_of_path(path).digest, 5, mtime_ns);
  }
};

TEST_F(ShardFolderTest, KnowsWhatIsEncodedAsLongAsTheFileIsTheSame) {
  encode({"a", "b"});
  EXPECT_TRUE(has("a"));
  EXPECT_FALSE(has("c"));
  EXPECT_FALSE(has("a", 10));
  EXPECT_EQ(check_manifests(out()).problem_count, 0);
}

TEST_F(ShardFolderTest, ARunThatDoesNotBeginLeavesNoManifest) {
  { const ShardFolder folder(out(), shard_header(2), /*resume=*/false); }
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
               [&] { open(shard_header(), false, "f1"); });
  expect_error(ErrorCode::kInvalidArgument, "made with N of --shard I/N 1, this run has 2",
               [&] { open(shard_header(2), true, "f1"); });
  expect_error(ErrorCode::kInvalidArgument, "made with dtype float32, this run has float16",
               [&] { open(shard_header(1, "float16"), true, "f1"); });
  expect_error(ErrorCode::kInvalidArgument, "made with the model tower f1, this run has tower f2",
               [&] { open(shard_header(), true, "f2"); });
  const ShardFolder first(out(), shard_header(), true);
  expect_error(ErrorCode::kUnavailable, "another process encodes this shard",
               [&] { open(shard_header(), true, "f1"); });
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
               [&] { ShardFolder(out(), shard_header(), true); });
  EXPECT_TRUE(std::filesystem::exists(part(0)));
}

TEST_F(ShardFolderTest, AChangedFileHasANewLineThatCounts) {
  encode({"a"});
  encode_files({file_line("a", 11)});
  EXPECT_TRUE(has("a", 11));
  EXPECT_FALSE(has("a", 9));
}

}  // namespace
}  // namespace fovea::cli
