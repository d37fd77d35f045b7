#include "shards/manifest_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/shards/encoded_shard.h"
#include "support/expect_error.h"
#include "support/json.h"

namespace fovea::cli {
namespace {

using test::file_line;
using test::Json;
using ::testing::ElementsAre;

class ManifestMerge : public test::EncodedShard {
 protected:
  /// The lines of all manifests together; the first says what they were made with.
  std::vector<Json> merged() {
    const FolderState state = check_manifests(out());
    written_ = merge_manifests(out(), state, folder_ / "all.jsonl");
    std::vector<Json> lines;
    std::istringstream text(test::read_text(folder_ / "all.jsonl"));
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  /// Paths and times of all lines but the first.
  std::vector<std::string> items() {
    std::vector<std::string> result;
    std::vector<Json> lines = merged();
    for (std::size_t i = 1; i < lines.size(); ++i) {
      result.push_back(lines[i]["path"].get<std::string>() + " " + lines[i]["mtime"].dump());
    }
    return result;
  }

  std::int64_t written_ = 0;
};

TEST_F(ManifestMerge, IsSortedByPathBehindOneHeader) {
  encode({"b", "c", "a"});
  EXPECT_THAT(items(), ElementsAre("a 9", "b 9", "c 9"));
  EXPECT_EQ(written_, 3);
  const Json header = merged().front();
  EXPECT_EQ(header["shards"], 1);
  EXPECT_EQ(header["model"], "tower");
}

TEST_F(ManifestMerge, HasTheLastLineOfAFileThatChanged) {
  encode({"a", "b"});
  encode_files({file_line("a", 11)});
  EXPECT_THAT(items(), ElementsAre("a 11", "b 9"));
}

TEST_F(ManifestMerge, LeavesOutLinesOfPartsThatWereLost) {
  encode({"a", "b"});
  std::filesystem::remove(part(0));
  encode_files({file_line("c")});
  EXPECT_THAT(items(), ElementsAre("b 9", "c 9"));
}

TEST_F(ManifestMerge, KeepsItemsThatFailed) {
  ItemLine failed = file_line("c");
  failed.error = "broken";
  encode_files({file_line("a"), failed});
  EXPECT_EQ(merged().back()["error"], "broken");
}

TEST_F(ManifestMerge, IsCompleteOrNotAtAll) {
  encode({"a"});
  const FolderState state = check_manifests(out());
  std::filesystem::remove(manifest());
  test::expect_error(ErrorCode::kNotFound, "manifest-0-of-1.jsonl",
                     [&] { (void)merge_manifests(out(), state, folder_ / "all.jsonl"); });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "all.jsonl"));
}

}  // namespace
}  // namespace fovea::cli
