// From requests to items: random bytes, directories, files of requests.
#include "bench/mm_processor/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

using fovea::test::expect_error;
using fovea::test::TemporaryDirectory;
using fovea::test::write_text;
using ::testing::ElementsAre;

ItemSampler mixed_sampler() {
  return ItemSampler({.items_per_request = 2,
                      .range_ratio = 0.5,
                      .limits = {.images = 3, .videos = 1},
                      .buckets = {{{40, 24, 1}, 0.6}, {{17, 9, 1}, 0.2}, {{8, 6, 3}, 0.2}}});
}

/// All bytes and sizes of a workload.
std::vector<MediaItem> items_of(std::uint64_t seed, ImageEncoding encoding) {
  std::vector<MediaItem> all;
  const std::vector<MmRequest> requests = random_requests(mixed_sampler(), 20, seed);
  for (std::vector<MediaItem>& items : make_all_items(requests, encoding)) {
    std::move(items.begin(), items.end(), std::back_inserter(all));
  }
  return all;
}

bool same(const std::vector<MediaItem>& a, const std::vector<MediaItem>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.name == y.name && x.source.index() == y.source.index() &&
           x.num_frames() == y.num_frames() && std::ranges::equal(x.content(), y.content());
  });
}

TEST(RandomWorkload, BytesComeFromTheSeed) {
  for (const ImageEncoding encoding : {ImageEncoding::kPng, ImageEncoding::kRaw}) {
    EXPECT_TRUE(same(items_of(5, encoding), items_of(5, encoding)));
    EXPECT_FALSE(same(items_of(5, encoding), items_of(6, encoding)));
  }
}

TEST(RandomWorkload, IsTheSameOnEveryPlatform) {
  const std::vector<MediaItem> items = items_of(0, ImageEncoding::kRaw);
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a of all bytes
  for (const MediaItem& item : items) {
    for (const std::uint8_t byte : item.content()) hash = (hash ^ byte) * 1099511628211U;
  }
  EXPECT_EQ(items.size(), 39U);  // both values from a second implementation, in Python
  EXPECT_EQ(hash, 4607584820021688924U);
}

TEST(RandomWorkload, RawItemsHoldTheirPixels) {
  for (const MediaItem& item : items_of(1, ImageEncoding::kRaw)) {
    const auto& rgb = std::get<RgbFrames>(item.source);
    EXPECT_EQ(item.modality, rgb.num_frames > 1 ? Modality::kVideo : Modality::kImage);
    EXPECT_EQ(std::ssize(item.content()), rgb.num_frames * rgb.width_px * rgb.height_px * 3);
  }
}

TEST(RandomWorkload, TheLargestRequestHasTheMostPixels) {
  const std::vector<MmRequest> requests{{.random = {{.size = {8, 8, 1}}, {.size = {8, 8, 1}}}},
                                        {.random = {{.size = {4, 4, 10}}}},
                                        {.random = {{.size = {10, 10, 1}}}}};
  EXPECT_EQ(&largest_request(requests), &requests[1]);
}

TEST(RequestsOfFiles, TheLargestHasTheMostBytes) {
  const TemporaryDirectory folder;
  write_text(folder / "small", "1");
  write_text(folder / "large", "1234");
  const std::vector<MmRequest> requests{
      {.files = {image_file(folder / "missing")}},
      {.files = {image_file(folder / "small"), image_file(folder / "small")}},
      {.files = {image_file(folder / "large")}}};
  EXPECT_EQ(&largest_request(requests), &requests[2]);
}

TEST(RandomWorkload, ItemsOfARequestDiffer) {
  const MmRequest request{.random = {{{8, 8, 1}, 1}, {{8, 8, 1}, 2}}, .files = {}};
  const std::vector<MediaItem> items = make_items(request, ImageEncoding::kRaw);
  ASSERT_EQ(items.size(), 2U);
  EXPECT_FALSE(std::ranges::equal(items[0].content(), items[1].content()));
}

class FileWorkload : public ::testing::Test {
 protected:
  /// Requests of a JSONL file with this text.
  [[nodiscard]] std::vector<MmRequest> read(const std::string& text) const {
    write_text(folder_ / "requests.jsonl", text);
    return jsonl_requests(folder_ / "requests.jsonl");
  }
  [[nodiscard]] static std::vector<std::string> names(const MmRequest& request) {
    std::vector<std::string> result;
    for (const MediaItem& item : request.files) {
      result.push_back(std::filesystem::path(item.name).filename());
    }
    return result;
  }

  TemporaryDirectory folder_;
};

TEST_F(FileWorkload, DirectoriesGiveOneRequestPerImage) {
  write_text(folder_ / "b.png", "");
  write_text(folder_ / "a.jpg", "");
  write_text(folder_ / "note.txt", "");
  const std::vector<MmRequest> requests = directory_requests(folder_.path());
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_THAT(names(requests[0]), ElementsAre("a.jpg"));
  EXPECT_THAT(names(requests[1]), ElementsAre("b.png"));
}

TEST_F(FileWorkload, EmptyDirectoryIsAnError) {
  expect_error(ErrorCode::kNotFound, "found none",
               [&] { (void)directory_requests(folder_.path()); });
}

TEST_F(FileWorkload, MissingDirectoryIsAnError) {
  expect_error(ErrorCode::kNotFound, "none: no such file or directory",
               [&] { (void)directory_requests(folder_ / "none"); });
}

TEST_F(FileWorkload, DirectoryIsNoFileOfRequests) {
  expect_error(ErrorCode::kIo, "not a regular file", [&] { (void)jsonl_requests(folder_.path()); });
}

TEST_F(FileWorkload, LinesNameImagesAndVideos) {
  std::filesystem::create_directory(folder_ / "frames");
  write_text((folder_ / "frames") + "/0.png", "");
  const std::vector<MmRequest> requests = read(
      "{\"image\": \"a.png\", \"prompt\": \"What is this?\"}\n\n"
      "{\"images\": [\"b.png\", \"/elsewhere/c.png\"], \"video\": \"frames\"}\r\n");
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_THAT(names(requests[0]), ElementsAre("a.png"));
  EXPECT_THAT(names(requests[1]), ElementsAre("b.png", "c.png", "frames"));
  EXPECT_EQ(requests[0].files[0].paths()[0], folder_ / "a.png");
  EXPECT_EQ(requests[1].files[1].paths()[0], "/elsewhere/c.png");
  EXPECT_EQ(requests[1].files[2].modality, Modality::kVideo);
}

TEST_F(FileWorkload, WrongLinesAreNamed) {
  const struct {
    const char* text;
    const char* complaint;
  } kCases[] = {
      {"\n{", "requests.jsonl:2: expected a JSON object, got {"},
      {"{\"image\": \"data:image/png;base64,A\"}",
       ":1: expected \"image\": a path, URLs are not read, got data:image/png;base64,A"},
      {"[\"a.png\"]", ":1: expected a JSON object"},
      {"{}", ":1: expected \"image\", \"images\" or \"video\""},
      {"{\"images\": []}", ":1: expected \"image\", \"images\" or \"video\""},
      {"{\"image\": 3}", ":1: expected \"image\": a path"},
      {"{\"images\": \"a.png\"}", ":1: expected \"images\": a list of paths"},
      {"{\"images\": [1]}", ":1: expected \"images\": a list of paths"},
      {"{\"video\": []}", ":1: expected \"video\": a path"},
  };
  for (const auto& [text, complaint] : kCases) {
    SCOPED_TRACE(text);
    expect_error(ErrorCode::kCorruptData, complaint, [&] { (void)read(text); });
  }
}

TEST_F(FileWorkload, DeeplyNestedLinesAreErrors) {
  constexpr std::size_t kLevels = 200'000;
  const std::string nested = std::string(kLevels, '[') + std::string(kLevels, ']');
  expect_error(ErrorCode::kCorruptData, ":1: expected a JSON object, got {\"image\":[[[[",
               [&] { (void)read("{\"image\":" + nested + "}"); });
}

TEST_F(FileWorkload, PipesAndDevicesAreErrors) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder_ / "pipe", std::string("/dev/zero")}) {
    expect_error(ErrorCode::kIo, path + ": not a regular file",
                 [&] { (void)jsonl_requests(path); });
  }
}

TEST_F(FileWorkload, MissingAndEmptyFilesAreErrors) {
  expect_error(ErrorCode::kNotFound, "no such file",
               [&] { (void)jsonl_requests(folder_ / "none.jsonl"); });
  expect_error(ErrorCode::kNotFound, "holds no request", [&] { (void)read("\n"); });
  expect_error(ErrorCode::kNotFound, "clip.mp4", [&] { (void)read("{\"video\": \"clip.mp4\"}"); });
}

TEST(DrawRequests, TakesEachOnceBeforeAnyComesAgain) {
  std::vector<MmRequest> pool(5);
  for (std::size_t i = 0; i < pool.size(); ++i) pool[i].random = {{.seed = i}};
  const std::vector<MmRequest> drawn = draw_requests(pool, 12, 0);
  ASSERT_EQ(drawn.size(), 12U);
  const auto seeds = [&](std::size_t begin, std::size_t end) {
    std::set<std::uint64_t> result;
    for (std::size_t i = begin; i < end; ++i) result.insert(drawn[i].random[0].seed);
    return result;
  };
  EXPECT_EQ(seeds(0, 5).size(), 5U);
  EXPECT_EQ(seeds(5, 10).size(), 5U);
  EXPECT_EQ(seeds(10, 12).size(), 2U);
}

TEST(DrawRequests, OrderComesFromTheSeed) {
  std::vector<MmRequest> pool(50);
  for (std::size_t i = 0; i < pool.size(); ++i) pool[i].random = {{.seed = i}};
  const auto order = [&](std::uint64_t seed) {
    std::vector<std::uint64_t> result;
    for (const MmRequest& request : draw_requests(pool, 50, seed)) {
      result.push_back(request.random[0].seed);
    }
    return result;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
  EXPECT_TRUE(draw_requests(pool, 0, 1).empty());
}

}  // namespace
}  // namespace fovea::cli
