#include "shards/manifest_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/shards/encoded_shard.h"
#include "support/expect_error.h"

namespace fovea::cli {
namespace {

using test::expect_error;
using test::file_line;
using test::read_text;
using test::shard_header;
using test::write_text;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

class ManifestCheck : public test::EncodedShard {
 protected:
  [[nodiscard]] std::vector<std::string> problems() const {
    return check_manifests(out()).problems;
  }
  /// A path that shard 0 of 2 has, or has not.
  static std::string path_of_half(bool held) {
    std::string path = "0";
    while (shard_header(2).shard.holds(hash_of_path(path)) != held) path += "0";
    return path;
  }
};

TEST_F(ManifestCheck, CountsWhatThereIs) {
  ItemLine failed = file_line("c");
  failed.error = "broken";
  encode_files({file_line("a"), file_line("b"), failed});
  const FolderState state = check_manifests(out());
  EXPECT_THAT(state.problems, IsEmpty());
  ASSERT_EQ(state.shards.size(), 1U);
  EXPECT_EQ(state.shards[0].items, 2);
  EXPECT_EQ(state.shards[0].failed, 1);
  EXPECT_EQ(state.shards[0].parts, 2);
  EXPECT_EQ(state.shards[0].bytes,
            std::filesystem::file_size(part(0)) + std::filesystem::file_size(part(1)));
  EXPECT_EQ(state.header->fingerprint, "f1");
}

TEST_F(ManifestCheck, NeedsAManifest) {
  std::filesystem::create_directory(out());
  expect_error(ErrorCode::kNotFound, "expected manifests of fovea encode --shard, got none",
               [&] { (void)check_manifests(out()); });
  expect_error(ErrorCode::kNotFound, "cannot list",
               [&] { (void)check_manifests(folder_ / "none"); });
}

TEST_F(ManifestCheck, FindsAListThatWasNotWorkedOff) {
  encode({"a"});
  const std::string text = read_text(manifest());
  write_text(manifest(), text + "{\"torn");
  EXPECT_THAT(problems(), ElementsAre(EndsWith("the list was not worked off; --resume goes on")));
  write_text(manifest(), "");
  EXPECT_THAT(problems(), ElementsAre(EndsWith("nothing is encoded yet"),
                                      EndsWith("names this part; --resume removes it")));
}

TEST_F(ManifestCheck, FindsItemsTwice) {
  encode({"a"});
  encode({"a"});
  EXPECT_THAT(problems(), ElementsAre("manifest-0-of-1.jsonl: 1 item twice"));
}

TEST_F(ManifestCheck, TakesTheLastLineOfAFileThatChanged) {
  encode({"a"});
  encode_files({file_line("a", 11)});
  const FolderState state = check_manifests(out());
  EXPECT_THAT(state.problems, IsEmpty());
  EXPECT_EQ(state.shards.front().items, 1);
}

TEST_F(ManifestCheck, FindsItemsOfOtherShardsAndShardsThatAreMissing) {
  const std::string foreign = path_of_half(false);
  encode_files({file_line(foreign)}, shard_header(2));
  EXPECT_THAT(problems(),
              ElementsAre("1 shard of 2 missing: 1",
                          "manifest-0-of-2.jsonl: " + foreign + " belongs to another shard"));
}

TEST_F(ManifestCheck, FindsShardsThatWereMadeOtherwise) {
  encode_files({file_line(path_of_half(true))}, shard_header(2));
  ManifestHeader other = shard_header(2, "float16");
  other.shard.index = 1;
  encode_files({file_line(path_of_half(false))}, other);
  EXPECT_THAT(problems(), ElementsAre("manifest-1-of-2.jsonl: made with other options than "
                                      "manifest-0-of-2.jsonl"));
}

TEST_F(ManifestCheck, NamesPartsThatAreNot) {
  encode({"a", "b"});
  std::filesystem::remove(part(0));
  EXPECT_THAT(problems(),
              ElementsAre(part(0) + ": this part is missing; --resume encodes its items again"));
}

}  // namespace
}  // namespace fovea::cli
