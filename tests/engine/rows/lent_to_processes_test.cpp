// Rows of the encoder cache on a GPU, read by another process, which is this program again. Skipped
// without a GPU.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/cached/noise.h"
#include "engine/rows/device_rows.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using test::noise;

constexpr const char* kFolder = "FOVEA_TEST_LENT";  // tells the other process where it finds names

class LentToProcesses : public test::DeviceRows {
 protected:
  static constexpr std::int64_t kCacheBytes = std::int64_t{4} << 20;

  [[nodiscard]] static std::vector<Embedding> encode(Engine& engine, unsigned count,
                                                     unsigned seed = 0) {
    std::vector<MediaItem> items;
    for (unsigned i = 0; i < count; ++i) items.push_back(noise(64 + 32 * (i % 4), 96, seed + i));
    return engine.encode(items, {.dtype = RowDType::kBFloat16});
  }
  [[nodiscard]] static std::vector<std::string> keys_of(std::span<const Embedding> items) {
    std::vector<std::string> keys;
    for (const Embedding& item : items) keys.push_back(item.cache_key);
    return keys;
  }
};

/// What the other process is told: places and names as text, the rows as they are.
void write_item(const std::filesystem::path& folder, const LentRows& lent, std::size_t i,
                const Embedding& rows) {
  const LentItem& item = lent.items[i].value();
  const DeviceMemoryName& memory = lent.memories[item.memory];
  std::ofstream text(folder / ("place" + std::to_string(i)));
  text << memory.gpu << ' ' << memory.bytes << ' ' << item.offset_bytes;
  for (const std::uint8_t byte : memory.handle) text << ' ' << int{byte};
  std::ofstream data(folder / ("rows" + std::to_string(i)), std::ios::binary);
  data.write(reinterpret_cast<const char*>(rows.data.data()),
             static_cast<std::streamsize>(rows.data.size()));
}

TEST_F(LentToProcesses, AnotherProcessReadsTheBitsOfTheHost) {
  Engine engine = load({.encoder_device_cache_size = kCacheBytes});
  const std::vector<Embedding> rows = encode(engine, 6);
  const LentRows lent = engine.lend_rows(keys_of(rows));
  const test::TemporaryDirectory folder;
  for (std::size_t i = 0; i < rows.size(); ++i) write_item(folder.path(), lent, i, rows[i]);
  ASSERT_EQ(setenv(kFolder, folder.path().c_str(), 1), 0);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "'" + self +
                              "' --gtest_filter=LentToProcesses.DISABLED_ReadsWhatIsLent "
                              "--gtest_also_run_disabled_tests";
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT: of this test alone
  EXPECT_TRUE(std::filesystem::exists(folder / "read")) << "the other process has read nothing";
}

/// The other process.
TEST_F(LentToProcesses, DISABLED_ReadsWhatIsLent) {
  const char* const given = std::getenv(kFolder);
  if (given == nullptr) GTEST_SKIP() << "not started by the test before";
  const std::filesystem::path folder = given;
  for (std::size_t i = 0; std::filesystem::exists(folder / ("place" + std::to_string(i))); ++i) {
    std::ifstream text(folder / ("place" + std::to_string(i)));
    DeviceMemoryName name;
    std::size_t offset = 0;
    text >> name.gpu >> name.bytes >> offset;
    for (int byte = 0; text >> byte;) name.handle.push_back(static_cast<std::uint8_t>(byte));
    const std::string expected = test::read_text((folder / ("rows" + std::to_string(i))).string());
    const MappedMemory first(name);
    const MappedMemory again(name);
    for (const MappedMemory* const memory : {&first, &again}) {
      std::string got(expected.size(), '\0');
      const auto* const data = static_cast<const std::byte*>(memory->data()) + offset;
      callers_->copy(reinterpret_cast<std::byte*>(got.data()), data, got.size());
      callers_->synchronize();
      EXPECT_TRUE(got == expected) << i;
    }
  }
  if (!HasFailure()) std::ofstream(folder / "read") << "all";
}

TEST_F(LentToProcesses, LentRowsAreNotEvicted) {
  Engine engine = load({.encoder_device_cache_size = 64 << 10});  // a few items
  const std::vector<Embedding> rows = encode(engine, 1);
  {
    const LentRows lent = engine.lend_rows(keys_of(rows));
    ASSERT_TRUE(lent.items[0]);
    EXPECT_EQ(lent.items[0]->rows, rows[0].rows);
    EXPECT_EQ(lent.items[0]->width, rows[0].width);
    EXPECT_EQ(lent.items[0]->dtype, RowDType::kBFloat16);
    (void)encode(engine, 24, 100);
    EXPECT_TRUE(engine.lend_rows(keys_of(rows)).items[0]);
  }
  (void)encode(engine, 24, 200);
  EXPECT_FALSE(engine.lend_rows(keys_of(rows)).items[0]);
  EXPECT_GT(engine.stats().encoder_cache.device.evictions, 0);
}

TEST_F(LentToProcesses, NeedsAnEncoderCacheOnTheGpu) {
  Engine engine = load({.encoder_cache_bytes = kCacheBytes});
  test::expect_error(ErrorCode::kInvalidArgument, "--encoder-device-cache-size",
                     [&] { (void)engine.lend_rows({}); });
}

}  // namespace
}  // namespace fovea
