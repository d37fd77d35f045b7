#include "shards/encode_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "cli/shards/encoded_shard.h"
#include "support/golden.h"

namespace fovea::cli {
namespace {

using test::golden_folder;

class EncodeCallsTest : public ::testing::Test {
 protected:
  /// Adds an image of the golden model.
  static void add(EncodeCalls& calls, const std::string& name) {
    const std::string path = golden_folder("qwen3_vl", "config.json") + "/images/" + name;
    calls.add({.name = {.path = path}}, image_file(path));
  }
  EncodeCalls::Done note() {
    return [this](const std::vector<ItemLine>& files, const std::vector<Embedding>& rows) {
      ASSERT_EQ(files.size(), rows.size());
      sizes_.push_back(files.size());
      for (std::size_t i = 0; i < files.size(); ++i) {
        paths_.push_back(files[i].name.path);
        rows_.push_back(rows[i].error ? -1 : rows[i].rows);
      }
    };
  }

  Engine engine_ = Engine::load(golden_folder("qwen3_vl", "model.safetensors"),
                                {.device = "cpu", .num_threads = 1});
  std::vector<std::size_t> sizes_;
  std::vector<std::string> paths_;
  std::vector<std::int64_t> rows_;
};

TEST_F(EncodeCallsTest, RowsComeInTheOrderOfTheFiles) {
  EncodeCalls calls(engine_, {}, note());
  for (const char* name : {"photo_180x180.jpg", "noise_101x61.png", "photo_180x180.jpg"}) {
    add(calls, name);
  }
  EXPECT_TRUE(sizes_.empty());
  calls.finish();
  EXPECT_EQ(rows_, (std::vector<std::int64_t>{36, 6, 36}));
  EXPECT_THAT(paths_[1], ::testing::HasSubstr("noise_101x61.png"));
  calls.finish();
  EXPECT_EQ(rows_.size(), 3U);
}

TEST_F(EncodeCallsTest, LongListsAreCutIntoCalls) {
  EncodeCalls calls(engine_, {}, note());
  constexpr std::size_t kFiles = 200;
  for (std::size_t i = 0; i < kFiles; ++i) add(calls, "noise_101x61.png");
  calls.finish();
  EXPECT_EQ(sizes_, (std::vector<std::size_t>{64, 64, 64, 8}));
  EXPECT_EQ(paths_.size(), kFiles);
}

TEST_F(EncodeCallsTest, AFileThatFailsIsOneItemOrTheEnd) {
  EncodeCalls skipping(engine_, {.on_error = OnError::kSkip}, note());
  add(skipping, "none.png");
  add(skipping, "noise_101x61.png");
  skipping.finish();
  EXPECT_EQ(rows_, (std::vector<std::int64_t>{-1, 6}));
  EncodeCalls failing(engine_, {}, note());
  add(failing, "none.png");
  EXPECT_THROW(failing.finish(), Error);
}

TEST_F(EncodeCallsTest, CountsWhatIsDoneInAllCalls) {
  std::mutex mutex;
  std::vector<std::int64_t> counts;
  EncodeOptions options;
  options.progress = [&](std::int64_t done, std::int64_t added) {
    const std::scoped_lock lock(mutex);
    EXPECT_LE(done, added);
    counts.push_back(done);
  };
  EncodeCalls calls(engine_, options, note());
  for (int i = 0; i < 70; ++i) add(calls, "noise_101x61.png");
  calls.finish();
  EXPECT_EQ(std::ranges::max(counts), 70);
}

TEST_F(EncodeCallsTest, WhatIsStoppedEndsWithoutItsRows) {
  std::stop_source stop;
  EncodeOptions options;
  options.bounds.stop = stop.get_token();
  EncodeCalls calls(engine_, options, note());
  add(calls, "photo_180x180.jpg");
  stop.request_stop();
  EXPECT_THROW(calls.finish(), Error);
  EXPECT_TRUE(rows_.empty());
}

}  // namespace
}  // namespace fovea::cli
