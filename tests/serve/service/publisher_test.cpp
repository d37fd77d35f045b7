#include "serve/service/publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "fovea/row_formats.h"
#include "serve/api_error.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::serve {
namespace {

namespace fs = std::filesystem;
using std::chrono::minutes;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// Rows x 4 elements of bfloat16, all bytes equal.
Embedding rows_of(std::int64_t rows, std::uint8_t value = 0) {
  Embedding item;
  item.rows = rows;
  item.width = 4;
  item.dtype = RowDType::kBFloat16;
  item.data.resize(static_cast<std::size_t>(rows) * 8);
  std::ranges::fill(item.data, std::byte{value});
  return item;
}

/// Bytes of the file of 1000 rows; its header is smaller than a row of 100.
constexpr std::int64_t kRows = 1000;
constexpr std::int64_t kFileBytes = kRows * 8 + 112;

std::string file_of(const test::TemporaryDirectory& folder, const std::string& key) {
  return folder / (key + "/encoder_cache.safetensors");
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

template <class Action>
void expect_api_error(int status, const std::string& code, Action&& action) {
  try {
    action();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    EXPECT_EQ(error.code(), code) << error.what();
    return;
  }
  ADD_FAILURE() << "expected " << code;
}

/// A publisher whose clock stands still until it is moved.
class PublisherTest : public ::testing::Test {
 protected:
  Publisher publisher(std::int64_t files) {
    return Publisher({.directory = folder_.path(),
                      .max_bytes = files * kFileBytes + 50,
                      .min_age = minutes(15),
                      .now = [this] { return now_; }});
  }

  test::TemporaryDirectory folder_;
  Clock::time_point now_ = Clock::now();
};

TEST_F(PublisherTest, WritesTheFileThatVllmReads) {
  Publisher publisher = this->publisher(2);
  publisher.publish("lora:abc", rows_of(kRows, 7));
  const std::string bytes = test::read_text(file_of(folder_, "lora:abc"));
  EXPECT_EQ(bytes.size(), kFileBytes);
  const auto tensors = read_safetensors(std::as_bytes(std::span(bytes)), "file");
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(tensors[0].name, "ec_cache");
  EXPECT_EQ(tensors[0].type, StoredType::kBFloat16);
  EXPECT_EQ(tensors[0].shape, (std::vector<std::int64_t>{kRows, 4}));
  EXPECT_EQ(tensors[0].data[5], std::byte{7});
  EXPECT_THAT(names_in(folder_ / "lora:abc"), UnorderedElementsAre("encoder_cache.safetensors"));
}

TEST_F(PublisherTest, LetsOthersReadWhateverTheUmask) {
  Publisher publisher = this->publisher(2);
  const mode_t old = umask(0077);
  publisher.publish("a", rows_of(kRows));
  umask(old);
  struct stat status {};
  ASSERT_EQ(stat(file_of(folder_, "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0644U);
  ASSERT_EQ(stat((folder_ / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0755U);
}

TEST_F(PublisherTest, ReplacesTheRowsOfAKey) {
  Publisher publisher = this->publisher(1);
  publisher.publish("a", rows_of(kRows, 1));
  publisher.publish("a", rows_of(kRows, 2));
  EXPECT_EQ(test::read_text(file_of(folder_, "a")).back(), '\2');
  EXPECT_EQ(publisher.stats().entries, 1);
  EXPECT_EQ(publisher.stats().bytes, kFileBytes);
  EXPECT_EQ(publisher.stats().published, 2);
}

TEST_F(PublisherTest, RefusesKeysThatAreNoNamesOfFolders) {
  Publisher publisher = this->publisher(1);
  for (const std::string& key :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"),
        std::string("a\0b", 3), std::string("a\nb"), std::string("\x7f"), std::string("\u009b"),
        std::string(256, 'a'), std::string("\xff")}) {
    expect_api_error(400, "invalid_uuid", [&] { publisher.publish(key, rows_of(1)); });
  }
  EXPECT_EQ(folder_.entries(), 0U);
  publisher.publish(std::string(255, 'a'), rows_of(1));
  publisher.publish("..a \xc3\xa9", rows_of(1));
}

TEST_F(PublisherTest, RemovesWhatWasPublishedLongestAgo) {
  Publisher publisher = this->publisher(2);
  publisher.publish("a", rows_of(kRows));
  publisher.publish("b", rows_of(kRows));
  publisher.publish("a", rows_of(kRows));  // b is the older now
  now_ += minutes(15);
  publisher.publish("c", rows_of(kRows));
  EXPECT_THAT(names_in(folder_.path()), UnorderedElementsAre("a", "c"));
  EXPECT_EQ(publisher.stats().pruned, 1);
  EXPECT_EQ(publisher.stats().bytes, 2 * kFileBytes);
}

TEST_F(PublisherTest, NeverRemovesAYoungFile) {
  Publisher publisher = this->publisher(2);
  publisher.publish("a", rows_of(kRows));
  now_ += minutes(14);
  publisher.publish("b", rows_of(kRows));
  expect_api_error(507, "ec_storage_full", [&] { publisher.publish("c", rows_of(kRows)); });
  EXPECT_THAT(names_in(folder_.path()), UnorderedElementsAre("a", "b"));
}

TEST_F(PublisherTest, RemovesNothingIfThatWouldNotDo) {
  Publisher publisher = this->publisher(2);
  publisher.publish("a", rows_of(kRows));
  now_ += minutes(15);
  expect_api_error(507, "ec_storage_full", [&] { publisher.publish("b", rows_of(3 * kRows)); });
  EXPECT_THAT(names_in(folder_.path()), UnorderedElementsAre("a"));
}

TEST_F(PublisherTest, KnowsWhatItFindsAtTheStart) {
  publisher(2).publish("old", rows_of(kRows));
  publisher(2).publish("new", rows_of(kRows));
  fs::last_write_time(file_of(folder_, "old"), fs::file_time_type::clock::now() - minutes(30));
  fs::create_directories(folder_ / "other/deeper");
  test::write_text(folder_ / "file", "of somebody else");
  fs::create_symlink("loop", folder_ / "loop");
  Publisher publisher = this->publisher(2);
  EXPECT_EQ(publisher.stats().entries, 2);
  EXPECT_EQ(publisher.stats().bytes, 2 * kFileBytes);
  publisher.publish("c", rows_of(kRows));
  EXPECT_THAT(names_in(folder_.path()), UnorderedElementsAre("new", "c", "other", "file", "loop"));
}

TEST_F(PublisherTest, RemovesWhatWritersLeftLongAgo) {
  fs::create_directories(folder_ / "a");
  test::write_text(folder_ / "a/.fovea-1-0.tmp", "x");
  test::write_text(folder_ / "a/.fovea-1-1.tmp", "x");
  fs::last_write_time(folder_ / "a/.fovea-1-0.tmp", fs::file_time_type::clock::now() - minutes(30));
  publisher(1);
  EXPECT_THAT(names_in(folder_ / "a"), UnorderedElementsAre(".fovea-1-1.tmp"));
}

TEST_F(PublisherTest, NeedsAFolder) {
  test::expect_error(ErrorCode::kNotFound, "no such folder",
                     [&] { Publisher({.directory = folder_ / "none"}); });
}

TEST_F(PublisherTest, SaysWhyItCannotWrite) {
  Publisher publisher = this->publisher(2);
  test::write_text(folder_ / "taken", "no folder");
  expect_api_error(500, "ec_publish_failed", [&] { publisher.publish("taken", rows_of(1)); });
  try {
    publisher.publish("taken", rows_of(1));
  } catch (const ApiError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Not a directory"));
    EXPECT_THAT(error.what(), Not(HasSubstr(folder_.path()))) << "no paths of the server";
  }
  EXPECT_EQ(publisher.stats().entries, 0);
  EXPECT_EQ(test::read_text(folder_ / "taken"), "no folder");
}

TEST_F(PublisherTest, LeavesNothingHalfWrittenWhereTheNameIsTaken) {
  Publisher publisher = this->publisher(2);
  fs::create_directories(folder_ / "a/encoder_cache.safetensors/b");
  expect_api_error(500, "ec_publish_failed", [&] { publisher.publish("a", rows_of(1)); });
  EXPECT_THAT(names_in(folder_ / "a"), UnorderedElementsAre("encoder_cache.safetensors"));
}

TEST_F(PublisherTest, LeavesNothingHalfWrittenOnAFullDisk) {
  Publisher publisher = this->publisher(4);
  publisher.publish("a", rows_of(kRows, 1));
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // write() then fails as on a full disk
  const rlimit small{1000, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_api_error(500, "ec_publish_failed", [&] { publisher.publish("a", rows_of(kRows, 2)); });
  expect_api_error(500, "ec_publish_failed", [&] { publisher.publish("b", rows_of(kRows)); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(names_in(folder_.path()), UnorderedElementsAre("a"));
  EXPECT_THAT(names_in(folder_ / "a"), UnorderedElementsAre("encoder_cache.safetensors"));
  EXPECT_EQ(test::read_text(file_of(folder_, "a")).back(), '\1') << "the old rows remain";
  publisher.publish("b", rows_of(3 * kRows));  // no room is lost
  EXPECT_EQ(publisher.stats().entries, 2);
}

/// A file, if there is one, is complete and of one writer only.
void expect_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) return;
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const auto tensors = read_safetensors(std::as_bytes(std::span(bytes)), path);
  ASSERT_EQ(tensors.size(), 1U);
  const std::span<const std::byte> data = tensors[0].data;
  ASSERT_FALSE(data.empty());
  EXPECT_EQ(std::memcmp(data.data(), data.data() + 1, data.size() - 1), 0);
}

TEST_F(PublisherTest, ShowsReadersWholeFilesOnly) {
  Publisher publisher({.directory = folder_.path(),
                       .max_bytes = 2 * kFileBytes,
                       .min_age = minutes(0)});  // so that files go, too
  std::atomic<int> writing = 8;
  std::vector<std::jthread> threads;
  for (int w = 0; w < 8; ++w) {
    threads.emplace_back([&publisher, &writing, w] {
      for (int i = 0; i < 40; ++i) {
        try {
          publisher.publish(std::to_string((w + i) % 6),
                            rows_of(kRows / 2 + i, static_cast<std::uint8_t>(w)));
        } catch (const ApiError& error) {
          EXPECT_EQ(error.code(), "ec_storage_full");  // what others write is not to go
        }
      }
      --writing;
    });
  }
  for (int r = 0; r < 8; ++r) {
    threads.emplace_back([this, &writing] {
      do {
        for (int key = 0; key < 6; ++key) expect_whole(file_of(folder_, std::to_string(key)));
      } while (writing > 0);
    });
  }
  threads.clear();
  std::uintmax_t bytes = 0;
  for (const std::string& key : names_in(folder_.path())) {
    EXPECT_THAT(names_in(folder_ / key), UnorderedElementsAre("encoder_cache.safetensors"));
    bytes += fs::file_size(file_of(folder_, key));
  }
  EXPECT_EQ(publisher.stats().bytes, static_cast<std::int64_t>(bytes));
  EXPECT_LE(publisher.stats().bytes, 2 * kFileBytes);
  EXPECT_GT(publisher.stats().pruned, 0);
}

}  // namespace
}  // namespace fovea::serve
