#include "listed_item.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea::cli {
namespace {

using fovea::test::expect_error;

ListedItem item_of(std::string_view line) { return listed_item("lists/list", line, 3).value(); }

TEST(ListedItem, IsAPathOrAnObject) {
  EXPECT_EQ(item_of(" a b.png\r").path, "lists/a b.png");
  EXPECT_FALSE(item_of("a.png").is_exact);
  EXPECT_EQ(item_of("/a.png").path, "/a.png");
  EXPECT_EQ(item_of("https://host/a.png").path, "https://host/a.png");
  EXPECT_EQ(listed_item("list", "clip", 1, Modality::kVideo)->modality, Modality::kVideo);
  const ListedItem image = item_of(R"( {"image": "a.png"} )");
  EXPECT_EQ(image.path, "lists/a.png");
  EXPECT_EQ(image.modality, Modality::kImage);
  EXPECT_TRUE(image.is_exact);
  EXPECT_EQ(item_of(R"({"video": "/clip"})").modality, Modality::kVideo);
}

TEST(ListedItem, IsNoneOfEmptyLinesAndComments) {
  for (const char* line : {"", "  \t\r", "# a.png"}) {
    EXPECT_FALSE(listed_item("list", line, 1)) << line;
  }
}

TEST(ListedItem, HasNoByteOrderMarkInTheFirstLineAlone) {
  constexpr const char* kLine =
      "\xEF\xBB\xBF"
      "b.png";
  EXPECT_EQ(listed_item("list", kLine, 1)->path, "b.png");
  EXPECT_EQ(listed_item("list", kLine, 2)->path, kLine);
}

TEST(ListedItem, SaysItsOptionsInOneWay) {
  EXPECT_EQ(item_of("a.png").options(), "");
  EXPECT_EQ(item_of(R"({"image": "a.png", "mm_processor_kwargs": {}})").options(), "");
  EXPECT_EQ(
      item_of(R"({"mm_processor_kwargs": {"b": [1, 2.50]}, "fps": 1e0, "video": "a"})").options(),
      R"({"fps":1.0,"mm_processor_kwargs":{"b":[1,2.5]}})");
  EXPECT_EQ(item_of(R"({"image": "a", "mm_processor_kwargs": {"b": 1, "a": {"d": 2, "c": 3}}})")
                .options(),
            R"({"mm_processor_kwargs":{"a":{"c":3,"d":2},"b":1}})");
}

TEST(ListedItem, RefusesWhatNobodyWouldRead) {
  const auto expect = [](const char* message, const char* line) {
    expect_error(ErrorCode::kInvalidArgument, message, [&] { (void)item_of(line); });
  };
  expect("lists/list:3: line 1", "{a.png}");
  expect("lists/list:3: expected image or video with a path", R"({"fps": 1})");
  expect("lists/list:3: image: expected a path, got 3", R"({"image": 3})");
  expect("lists/list:3: video: expected either image or video", R"({"image": "a", "video": "b"})");
  expect("lists/list:3: fps: an image has none", R"({"image": "a", "fps": 1})");
  expect("lists/list:3: fps: expected a number above 0, got 0", R"({"video": "a", "fps": 0})");
  expect("lists/list:3: mm_processor_kwargs: expected an object, got \"{}\"",
         R"({"image": "a", "mm_processor_kwargs": "{}"})");
  expect(
      "lists/list:3: max_pixels: no such member; expected image or video, fps and "
      "mm_processor_kwargs",
      R"({"image": "a", "max_pixels": 5})");
  expect("lists/list:3: key \"image\" occurs twice", R"({"image": "a", "image": "b"})");
  expect("lists/list:3: expected a path, got a?.png with a null byte",
         R"({"image": "a\u0000.png"})");
}

TEST(ListedItem, LinesWithNullBytesAreNoText) {
  using namespace std::string_literals;
  expect_error(ErrorCode::kInvalidArgument, "lists/list:1: expected a path, got ??a?.?p? with", [] {
    (void)listed_item("lists/list",
                      "\xFF\xFE"
                      "a\0.\0p\0"s,
                      1);
  });
}

TEST(KwargsText, IsTheSameForEqualObjects) {
  EXPECT_EQ(kwargs_text(R"({"b": 2, "a": 1})", "JSON"), R"({"a":1,"b":2})");
  EXPECT_EQ(kwargs_text("{}", "JSON"), "");
  expect_error(ErrorCode::kInvalidArgument, "JSON: expected a JSON object, got an array",
               [] { (void)kwargs_text("[]", "JSON"); });
}

TEST(MergedKwargs, AreThoseOfOneWhereTheOtherHasNone) {
  EXPECT_EQ(merged_kwargs("", "", Modality::kImage), "");
  EXPECT_EQ(merged_kwargs(R"({"a": 1})", "", Modality::kImage), R"({"a": 1})");
  EXPECT_EQ(merged_kwargs("", R"({"a": 1})", Modality::kImage), R"({"a": 1})");
}

TEST(MergedKwargs, PreferAnItemsOwnWhereverTheyStand) {
  const auto merged = [](const char* own, const char* common) {
    return merged_kwargs(own, common, Modality::kImage);
  };
  EXPECT_EQ(merged(R"({"a": 1})", R"({"a": 2, "b": 3})"), R"({"a":1,"b":3})");
  EXPECT_EQ(merged(R"({"a": 1})", R"({"images_kwargs": {"a": 2, "b": 3}})"),
            R"({"a":1,"images_kwargs":{"b":3}})");
  EXPECT_EQ(merged(R"({"images_kwargs": {"a": 1}})", R"({"a": 2})"),
            R"({"a":2,"images_kwargs":{"a":1}})")
      << "what is said of images counts more";
  EXPECT_EQ(merged(R"({"a": 1})", R"({"videos_kwargs": {"fps": 2}})"),
            R"({"a":1,"videos_kwargs":{"fps":2}})")
      << "the engine refuses what it does not know there, too";
}

TEST(MediaItemOfALine, HasTheOptionsOfTheRunUnlessItSaysOtherwise) {
  const ItemDefaults defaults{.mm_processor_kwargs = R"({"a": 1})"};
  EXPECT_EQ(media_item(item_of("a.png"), defaults).mm_processor_kwargs, R"({"a": 1})");
  EXPECT_EQ(media_item(item_of(R"({"image": "x", "mm_processor_kwargs": {"a": 2}})"), defaults)
                .mm_processor_kwargs,
            R"({"a":2})");
  expect_error(ErrorCode::kNotFound, "lists/none",
               [&] { (void)media_item(item_of(R"({"video": "none"})"), defaults); });
}

}  // namespace
}  // namespace fovea::cli
