#include "rows/shared/folder_place.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "fovea/version.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using test::expect_error;

class FolderPlaceTest : public testing::Test {
 protected:
  static RowBytes bytes(std::size_t size, int value) {
    RowBytes bytes(size);
    std::fill(bytes.begin(), bytes.end(), std::byte(value));
    return bytes;
  }
  static void put(FolderPlace& place, const std::string& name, std::size_t size = 100) {
    const RowBytes value = bytes(size, name.back());
    place.put(name, {value.data(), value.size()});
  }
  static bool has(FolderPlace& place, const std::string& name) {
    return place.get(std::vector{name}).at(0).has_value();
  }
  std::string file_of(const std::string& name) const {
    return folder / (std::string(version()) + "/" + name.substr(0, 2) + "/" + name);
  }
  /// As if a file had been used so many seconds ago.
  void age(const std::string& name, int seconds) const {
    fs::last_write_time(file_of(name),
                        fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }
  std::int64_t size_of_all() const {
    std::int64_t size = 0;
    for (const auto& entry : fs::recursive_directory_iterator(std::string(folder / ""))) {
      if (entry.is_regular_file()) size += static_cast<std::int64_t>(entry.file_size());
    }
    return size;
  }

  test::TemporaryDirectory folder;
};

TEST_F(FolderPlaceTest, KeepsBytesByName) {
  FolderPlace place(folder / "", 1 << 20);
  put(place, "aa1");
  put(place, "aa2", 200);
  put(place, "aa1", 50);  // in place of the first
  const auto found = place.get(std::vector<std::string>{"aa2", "zz9", "aa1"});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0], bytes(200, '2'));
  EXPECT_EQ(found[1], std::nullopt);
  EXPECT_EQ(found[2], bytes(50, '1'));
}

TEST_F(FolderPlaceTest, IsTheSameForAllProcesses) {
  FolderPlace one(folder / "", 1 << 20);
  FolderPlace other(folder / "", 1 << 20);
  put(one, "aa1");
  EXPECT_TRUE(has(other, "aa1"));
}

TEST_F(FolderPlaceTest, LetsGoWhatWasUsedLongestAgo) {
  FolderPlace first(folder / "", 1000);
  for (int i = 0; i < 9; ++i) put(first, "aa" + std::to_string(i));
  for (int i = 0; i < 9; ++i) age("aa" + std::to_string(i), 10'000 - i);
  EXPECT_TRUE(has(first, "aa0")) << "and is marked as used";
  FolderPlace second(folder / "", 1000);  // looks at its first file
  put(second, "bb9", 300);
  EXPECT_LE(size_of_all(), 875);
  EXPECT_TRUE(has(second, "aa0"));
  EXPECT_TRUE(has(second, "bb9"));
  EXPECT_FALSE(has(second, "aa1"));
  EXPECT_TRUE(has(second, "aa8"));
}

TEST_F(FolderPlaceTest, CountsFilesOfOtherVersions) {
  const std::string old = folder / "0.0.1/aa/aa0";
  fs::create_directories(fs::path(old).parent_path());
  test::write_text(old, std::string(900, 'x'));
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
  FolderPlace place(folder / "", 1000);
  put(place, "aa1", 200);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(has(place, "aa1"));
}

TEST_F(FolderPlaceTest, RemovesWhatWasLeftUnfinished) {
  const std::string part = std::string(version()) + "/aa/";
  fs::create_directories(std::string(folder / part));
  test::write_text(folder / (part + ".fovea-1-0.tmp"), "x");
  test::write_text(folder / (part + ".fovea-2-0.tmp"), "x");
  fs::last_write_time(std::string(folder / (part + ".fovea-1-0.tmp")),
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  FolderPlace place(folder / "", 1000);
  put(place, "bb1");
  EXPECT_FALSE(fs::exists(std::string(folder / (part + ".fovea-1-0.tmp"))));
  EXPECT_TRUE(fs::exists(std::string(folder / (part + ".fovea-2-0.tmp")))) << "may be written to";
}

TEST_F(FolderPlaceTest, StaysBoundedWhileManyWriteAndRead) {
  constexpr std::int64_t kBound = 20'000;
  constexpr int kWriters = 4;
  std::vector<std::jthread> writers;
  writers.reserve(kWriters);
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      FolderPlace place(folder / "", kBound);  // as a process of its own
      for (int i = 0; i < 150; ++i) {
        const std::string name = "a" + std::to_string(i % 7) + "-" + std::to_string((w + i) % 90);
        put(place, name, 300);
        for (const auto& found : place.get(std::vector{name, std::string("a0-1")})) {
          EXPECT_EQ(found.value_or(bytes(300, 0)).size(), 300U);
        }
      }
    });
  }
  writers.clear();
  EXPECT_LE(size_of_all(), kBound + kWriters * (kBound / 32 + 300));
}

TEST_F(FolderPlaceTest, SaysThatItKeepsNothingSoLarge) {
  FolderPlace place(folder / "", 99);
  expect_error(ErrorCode::kUnavailable, "100 bytes are more than", [&] { put(place, "aa1"); });
  EXPECT_FALSE(has(place, "aa1"));
}

TEST_F(FolderPlaceTest, SaysWhatItCannotDo) {
  expect_error(ErrorCode::kNotFound, "no such folder",
               [&] { const FolderPlace place(folder / "none", 1); });
  expect_error(ErrorCode::kInvalidArgument, "at least 1 byte",
               [&] { const FolderPlace place(folder / "", 0); });
  FolderPlace place(folder / "", 1 << 20);
  test::write_text(folder / std::string(version()), "no folder");
  expect_error(ErrorCode::kIo, "cannot make its folder", [&] { put(place, "aa1"); });
}

TEST(RowPlace, IsNamedByItsOptions) {
  const test::TemporaryDirectory folder;
  EngineOptions options;
  options.shared_rows = folder / "";
  EXPECT_NE(make_row_place(options), nullptr);
  options.shared_rows_seconds = 5;
  expect_error(ErrorCode::kInvalidArgument, "shared_rows_seconds is for a Redis server",
               [&] { (void)make_row_place(options); });
  options = {};
  options.shared_rows = "s3://bucket";
  expect_error(ErrorCode::kInvalidArgument, "expected a folder or redis://",
               [&] { (void)make_row_place(options); });
  options.shared_rows = "redis://localhost";
  options.shared_rows_bytes = 5;
  expect_error(ErrorCode::kInvalidArgument, "a Redis server has maxmemory",
               [&] { (void)make_row_place(options); });
}

}  // namespace
}  // namespace fovea
