#include "shards/manifest_check.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cli/shards/encoded_shard.h"

namespace fovea::cli {
namespace {

using test::file_line;
using test::write_text;

class PartFile : public test::EncodedShard {
 protected:
  void SetUp() override {
    encode({"a"});
    line_.tensor = "item_0";
  }
  /// What is wrong with the part beside these lines, behind its path.
  [[nodiscard]] std::string problem(const std::vector<ItemLine>& items) const {
    const PartLine line{.file = part_name({}, 0),
                        .bytes = static_cast<std::int64_t>(bytes_),
                        .items = std::ssize(items)};
    const std::optional<std::string> found = problem_of_part(part(0), line, items);
    if (!found) return "";
    EXPECT_TRUE(found->starts_with(part(0))) << *found;
    return found->substr(part(0).size());
  }

  std::uintmax_t bytes_ = 0;
  ItemLine line_ = file_line("a");
};

TEST_F(PartFile, HoldsTheRowsOfExactlyItsLines) {
  bytes_ = std::filesystem::file_size(part(0));
  ItemLine failed = file_line("b");
  failed.error = "broken";
  EXPECT_EQ(problem({line_, failed}), "");
  EXPECT_EQ(problem({}), ": no line names its tensor item_0");
  EXPECT_EQ(problem({line_, line_}), ": expected a tensor item_0 of its own for a");
  line_.rows = 4;
  EXPECT_EQ(problem({line_}), ": item_0 has another shape than the line of a");
  line_.tensor = "item_1";
  EXPECT_EQ(problem({line_}), ": expected a tensor item_1 of its own for a");
}

TEST_F(PartFile, HasTheSizeThatIsWrittenDown) {
  bytes_ = 3;
  EXPECT_EQ(problem({line_}), ": expected 3 bytes, got " +
                                  std::to_string(std::filesystem::file_size(part(0))) +
                                  "; --resume encodes its items again");
}

TEST_F(PartFile, MayBeMissing) {
  std::filesystem::remove(part(0));
  EXPECT_EQ(problem({line_}), ": this part is missing; --resume encodes its items again");
  std::filesystem::create_directory(part(0));
  EXPECT_EQ(problem({line_}), ": this part is missing; --resume encodes its items again");
}

TEST_F(PartFile, IsASafetensorsFile) {
  write_text(part(0), "rows");
  bytes_ = 4;
  EXPECT_NE(problem({line_}), "");
  write_text(part(0), "");
  bytes_ = 0;
  EXPECT_NE(problem({line_}), "");
}

}  // namespace
}  // namespace fovea::cli
