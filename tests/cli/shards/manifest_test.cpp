#include "shards/manifest.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

using fovea::test::expect_error;
using fovea::test::TemporaryDirectory;
using fovea::test::write_text;

const ManifestHeader kHeader{.shard = {.index = 1, .count = 4},
                             .model = "tower",
                             .fingerprint = "f00d;dtype=float32",
                             .options = {{"dtype", "float32"}}};

ItemLine item(const std::string& path) {
  return {.name = {.path = path, .modality = Modality::kVideo, .options = R"({"fps":1.5})"},
          .size = 7,
          .mtime_ns = 1'700'000'000'123'456'789,
          .file = "part-1-of-4-00000.safetensors",
          .tensor = "item_0",
          .rows = 6,
          .width = 256,
          .grid_thw = std::array<std::int64_t, 3>{1, 4, 6},
          .key = "abc",
          .error = {}};
}

PartLine part(std::int64_t items) {
  return {.file = "part-1-of-4-00000.safetensors", .bytes = 100, .items = items};
}

std::string lines(const std::vector<ManifestLine>& all) {
  std::string text;
  for (const ManifestLine& line : all) text += to_text(line) + "\n";
  return text;
}

/// Reads a text as a manifest, and keeps the paths of items that count.
struct Read {
  explicit Read(const std::string& text) {
    const TemporaryDirectory folder;
    write_text(folder / "manifest", text);
    end = read_manifest(folder / "manifest",
                        {.part = [this](const PartLine&, const std::vector<ItemLine>& items,
                                        const std::vector<std::int64_t>&) {
                          for (const ItemLine& line : items) paths.push_back(line.name.path);
                        }});
  }
  ManifestEnd end;
  std::vector<std::string> paths;
};

TEST(Manifest, LinesAreReadBack) {
  const auto back = std::get<ItemLine>(parse_manifest_line(to_text(item("ä \"b\"\n")), "here"));
  EXPECT_EQ(back.name.modality, Modality::kVideo);
  EXPECT_EQ(back.name.options, R"({"fps":1.5})");
  EXPECT_EQ(back.name.path, "ä \"b\"\n");
  EXPECT_EQ(back.mtime_ns, 1'700'000'000'123'456'789);
  EXPECT_EQ(back.grid_thw, (std::array<std::int64_t, 3>{1, 4, 6}));
  EXPECT_EQ(back.tensor, "item_0");
  const auto header = std::get<ManifestHeader>(parse_manifest_line(to_text(kHeader), "here"));
  EXPECT_EQ(header.shard, kHeader.shard);
  EXPECT_EQ(header.options, kHeader.options);
  EXPECT_EQ(header.fingerprint, kHeader.fingerprint);
}

TEST(Manifest, AFailedItemHasAnErrorAndNoRows) {
  ItemLine failed{.name = {.path = "a.jpg"}, .error = "a.jpg: broken \xff"};
  const auto back = std::get<ItemLine>(parse_manifest_line(to_text(failed), "here"));
  EXPECT_EQ(back.error, "a.jpg: broken \xef\xbf\xbd");
  EXPECT_EQ(back.file, "");
}

TEST(Manifest, ForeignLinesAreRefused) {
  for (
      const char* text :
      {"", "{", "[]", "1", R"({"a":1})", R"({"path":"a"})", R"({"fovea_manifest":3})",
       R"({"part":"p","bytes":-1,"items":0})", R"({"part":"p","bytes":1e300,"items":0})",
       R"({"path":"a","size":1,"mtime":1,"file":"f","tensor":"t","rows":1,"width":1,"grid":[1],"key":null,"error":null})",
       R"({"path":"a","size":1,"mtime":1,"file":"f","tensor":"t","rows":1,"width":1,"grid":null,"key":null,"error":"e"})"}) {
    expect_error(ErrorCode::kCorruptData, "here: expected a line of a manifest",
                 [&] { (void)parse_manifest_line(text, "here"); });
  }
}

TEST(Manifest, ThatOfAnEarlierVersionIsRefused) {
  std::string text = to_text(kHeader);
  text.replace(text.find("\"fovea_manifest\":3"), 18, "\"fovea_manifest\":2");
  expect_error(ErrorCode::kCorruptData,
               "here: expected a line of a manifest of fovea: expected format 3, got 2, that of "
               "another version of fovea, which can go on with it",
               [&] { (void)parse_manifest_line(text, "here"); });
}

TEST(Manifest, ItemsCountWhenTheirPartFollows) {
  const std::string whole = lines({kHeader, item("a"), item("b"), part(2)});
  const Read read(whole + lines({item("c")}));
  EXPECT_EQ(read.paths, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read.end.bytes, std::ssize(whole));
  EXPECT_TRUE(read.end.torn);
  EXPECT_FALSE(Read(whole).end.torn);
}

TEST(Manifest, EveryCutLeavesThePartsBeforeIt) {
  const std::string first = lines({kHeader, item("a"), part(1)});
  const std::string both = first + lines({item("b"), item("c"), part(2)});
  for (std::size_t bytes = first.size(); bytes < both.size(); ++bytes) {
    const Read read(both.substr(0, bytes));
    EXPECT_EQ(read.paths, (std::vector<std::string>{"a"})) << bytes;
    EXPECT_EQ(read.end.bytes, std::ssize(first)) << bytes;
  }
  EXPECT_EQ(Read(both).paths.size(), 3U);
}

TEST(Manifest, WithoutAWholeFirstLineThereIsNone) {
  const std::string header = lines({kHeader});
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, header.size() - 1}) {
    const Read read(header.substr(0, bytes));
    EXPECT_FALSE(read.end.header) << bytes;
    EXPECT_EQ(read.end.bytes, 0);
  }
}

TEST(Manifest, WhatIsWrongBeforeThePartsIsAnErrorWithItsLine) {
  const auto expect_corrupt = [](const std::string& part_of_message, const std::string& text) {
    expect_error(ErrorCode::kCorruptData, part_of_message, [&] { const Read read(text); });
  };
  expect_corrupt("manifest:2: expected a line of a manifest",
                 lines({kHeader}) + "garbage\n" + lines({item("a"), part(1)}));
  expect_corrupt("manifest:3: expected as many lines of items",
                 lines({kHeader, item("a"), part(2), item("b"), part(1)}));
  expect_corrupt("manifest:1: expected a line of a manifest", "garbage\n");
  expect_corrupt("manifest:1: expected the line that begins a manifest",
                 lines({item("a"), part(1)}));
}

TEST(Manifest, ATornEndMayHoldAnything) {
  const Read read(lines({kHeader, item("a"), part(1)}) + std::string("\0\0\n{\"pa", 7));
  EXPECT_EQ(read.paths, (std::vector<std::string>{"a"}));
  EXPECT_TRUE(read.end.torn);
}

TEST(Manifest, IsDoneUntilSomethingFollows) {
  const std::string done = lines({kHeader, item("a"), part(1), DoneLine{.items = 1}});
  EXPECT_EQ(Read(done).end.done->items, 1);
  EXPECT_FALSE(Read(done + lines({item("b"), part(1)})).end.done);
  EXPECT_FALSE(Read(done + lines({LostLine{.file = "part-1-of-4-00000.safetensors"}})).end.done);
}

}  // namespace
}  // namespace fovea::cli
