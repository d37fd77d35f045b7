// Layout, filling, padding and upload of input buffers: encoder graph specification, 6.3 and 6.4.
#include "graph/input_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "device/cpu/cpu_device.h"
#include "graph/deferred_device.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using test::DeferredDevice;
using test::expect_error;
using test::Schedule;
using Ints = std::vector<std::int32_t>;

/// A model of which only fill_inputs exists.
class FillModel final : public EncoderGraphModel, public ItemProcessor {
 public:
  explicit FillModel(std::function<void(InputWriter&)> fill) : fill_(std::move(fill)) {}
  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept override { return *this; }
  [[nodiscard]] ItemPlan plan_image(std::int64_t, std::int64_t) const override { return {}; }
  void fill_frame(const ItemPlan&, std::int64_t, const RgbView&,
                  std::span<std::uint8_t>) const override {}
  [[nodiscard]] std::int64_t path_width(PathId) const override { return 1; }
  [[nodiscard]] std::vector<BufferDecl> inputs(PathId, const GraphCapacity&) const override {
    return {};
  }
  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart>,
                   InputWriter& writer) const override {
    fill_(writer);
  }
  void forward(ExecContext&, PathId, const GraphCapacity&, const NamedTensors&,
               TensorView) const override {}

 private:
  std::function<void(InputWriter&)> fill_;
  GraphSpec spec_;
};

/// A block of host memory with a layout, filled again and again.
class Block {
 public:
  explicit Block(std::vector<BufferDecl> decls) : layout(std::move(decls)), memory(layout.bytes()) {
    std::fill(memory.begin(), memory.end(), std::byte{0xEE});
  }
  std::size_t fill(std::function<void(InputWriter&)> write) {
    const FillModel model(std::move(write));
    return fill_input_block(
        {.model = model, .path = 0, .capacity = {}, .parts = parts, .layout = layout},
        memory.data(), scratch, copiers);
  }
  [[nodiscard]] Ints ints(std::string_view name) {
    const TensorView view = layout.views(memory.data())[name];
    return {view.as<std::int32_t>(), view.as<std::int32_t>() + view.shape.elements()};
  }

  InputLayout layout;
  std::vector<std::byte> memory;
  std::vector<ItemPart> parts;
  InputScratch scratch;
  ThreadPool* copiers = nullptr;
};

auto write_ints(std::string name, Ints values) {
  return [name = std::move(name), values = std::move(values)](InputWriter& writer) {
    const TensorView to = writer.claim(name, static_cast<std::int64_t>(values.size()));
    std::copy(values.begin(), values.end(), to.as<std::int32_t>());
  };
}

Ints offsets_of(std::initializer_list<std::int32_t> lengths) {
  Ints offsets{0};
  for (const std::int32_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

// --- layout ---

TEST(InputLayout, LargestBufferComesLastAndAllAreAligned) {
  const InputLayout layout({{"pixels", DType::kU8, {10'000}},
                            {"live", DType::kI32, {2}},
                            {"rows", DType::kI32, {100, 4}}});
  EXPECT_EQ(layout.offset(1), 0u);
  EXPECT_EQ(layout.offset(2), 256u);
  EXPECT_EQ(layout.offset(0), 256u + 1792u);  // 1600 bytes of rows, aligned
  EXPECT_EQ(layout.bytes(), 256u + 1792u + 10'240u);
  std::vector<std::byte> block(layout.bytes());
  const NamedTensors views = layout.views(block.data());
  EXPECT_EQ(views.entries()[0].first, "pixels");  // in order of declaration
  EXPECT_EQ(views["rows"].data, block.data() + 256);
  EXPECT_EQ(views["rows"].shape, (Shape{100, 4}));
  expect_error(ErrorCode::kInternal, "no input buffer is named \"other\"",
               [&] { (void)views["other"]; });
}

TEST(InputLayout, RefusesBrokenDeclarations) {
  expect_error(ErrorCode::kInternal, "two inputs are named \"a\"", [] {
    (void)InputLayout({{"a", DType::kI32, {1}}, {"a", DType::kI32, {2}}});
  });
  expect_error(ErrorCode::kInternal, "input \"a\" has no axis 0", [] {
    (void)InputLayout({{"a", DType::kI32, {}}});
  });
}

// --- padding ---

TEST(InputBlock, OffsetsRepeatTheirLastValue) {
  Block block({{"cu_seqlens", DType::kI32, {5}, PadRule::kRepeatLast}});
  block.fill(write_ints("cu_seqlens", offsets_of({900, 400})));
  EXPECT_EQ(block.ints("cu_seqlens"), (Ints{0, 900, 1300, 1300, 1300}));
}

TEST(InputBlock, OffsetsOfALargerBatchDoNotShowAfterIt) {
  Block block({{"cu_seqlens", DType::kI32, {9}, PadRule::kRepeatLast}});
  block.fill(write_ints("cu_seqlens", offsets_of({16, 16, 16})));
  EXPECT_EQ(block.ints("cu_seqlens"), (Ints{0, 16, 32, 48, 48, 48, 48, 48, 48}));
  block.fill(write_ints("cu_seqlens", offsets_of({900})));  // an image after it
  const Ints padded = block.ints("cu_seqlens");
  EXPECT_EQ(padded, (Ints{0, 900, 900, 900, 900, 900, 900, 900, 900}));
  EXPECT_TRUE(std::is_sorted(padded.begin(), padded.end()));
}

TEST(InputBlock, RepeatingNothingGivesZeros) {
  Block block({{"a", DType::kI32, {3}, PadRule::kRepeatLast}});
  block.fill(write_ints("a", {}));
  EXPECT_EQ(block.ints("a"), (Ints{0, 0, 0}));
}

TEST(InputBlock, UsedPrefixEndsWithTheRowsWritten) {
  Block block({{"live", DType::kI32, {1}}, {"pixels", DType::kU8, {1000, 3}}});
  const auto fill = [&](std::int64_t rows) {
    return block.fill([rows](InputWriter& writer) {
      *writer.claim("live", 1).as<std::int32_t>() = 1;
      (void)writer.claim("pixels", rows);
    });
  };
  EXPECT_EQ(fill(10), 256u + 30u);
  EXPECT_EQ(fill(1000), 256u + 3000u);
  EXPECT_EQ(fill(0), 4u);
}

// --- what a model may do wrong ---

TEST(InputBlock, ForgettingABufferFailsInTheVeryFill) {
  Block block({{"a", DType::kI32, {1}}, {"b", DType::kI32, {1}}});
  const auto both = [](InputWriter& writer) {
    write_ints("a", {1})(writer);
    write_ints("b", {1})(writer);
  };
  block.fill(both);
  // What the last fill wrote must not pass for this one's.
  expect_error(ErrorCode::kInternal, "input \"b\" was not written for this batch",
               [&] { block.fill(write_ints("a", {1})); });
  block.fill(both);
}

TEST(InputBlock, ClaimingTooMuchSaysSo) {
  Block block({{"a", DType::kI32, {2}}});
  expect_error(ErrorCode::kUnavailable, "input \"a\" holds 2 rows, the batch needs 3", [&] {
    block.fill(write_ints("a", {1, 2, 3}));
  });
  expect_error(ErrorCode::kInternal, "no input buffer is named \"c\"",
               [&] { block.fill([](InputWriter& w) { (void)w.claim("c", 1); }); });
}

TEST(InputBlock, CopiesTheBytesOfItemsAloneAndWithHelp) {
  ThreadPool team(3);
  for (ThreadPool* const copiers : {static_cast<ThreadPool*>(nullptr), &team}) {
    // Little and much, whole pieces of 256 KiB and not, an item without bytes.
    for (const std::size_t unit : {std::size_t{1}, std::size_t{1} << 18, std::size_t{300001}}) {
      std::vector<std::vector<std::uint8_t>> items;
      std::vector<std::uint8_t> want;
      for (const std::size_t size : {3 * unit, std::size_t{0}, unit, 2 * unit}) {
        items.emplace_back(size);
        for (std::uint8_t& byte : items.back()) {
          byte = static_cast<std::uint8_t>(want.size() * 7919 >> 8);
          want.push_back(byte);
        }
      }
      Block block({{"pixels", DType::kU8, {static_cast<std::int64_t>(want.size()) + 5}}});
      block.copiers = copiers;
      block.fill([&](InputWriter& writer) {
        std::byte* to = writer.claim("pixels", static_cast<std::int64_t>(want.size())).data;
        for (const auto& item : items) {
          writer.copy(to, item);
          to += item.size();
        }
      });
      const auto* const got = reinterpret_cast<const std::uint8_t*>(block.memory.data());
      EXPECT_TRUE(std::equal(want.begin(), want.end(), got));
    }
  }
}

TEST(InputBlock, PixelsOnTheDeviceAreLeftOut) {
  const std::vector<std::uint8_t> there(8, 7);
  const std::vector<std::uint8_t> here(4, 5);
  const PreparedItem on_device{.plan = {}, .pixels = {}, .on_device = there};
  const PreparedItem on_host{.plan = {}, .pixels = here};
  ThreadPool team(2);
  const auto fill = [&](Block& block, const std::vector<std::span<const std::uint8_t>>& order) {
    block.parts = {{.item = &on_device, .count = 1}, {.item = &on_host, .count = 1}};
    block.copiers = &team;
    return block.fill([&](InputWriter& writer) {
      write_ints("live", {1})(writer);
      std::byte* to = writer.claim("pixels", 12).data;
      for (const auto bytes : order) {
        writer.copy(to, bytes);
        to += bytes.size();
      }
    });
  };
  const std::vector<BufferDecl> decls{{"live", DType::kI32, {1}}, {"pixels", DType::kU8, {300}}};
  const auto first_four = std::span(there).first(4);
  const auto last_four = std::span(there).last(4);
  Block end(decls);
  EXPECT_EQ(fill(end, {here, first_four, last_four}), 256U + 4) << "what the host has";
  ASSERT_EQ(end.scratch.device_copies.size(), 2U);
  EXPECT_EQ(end.scratch.device_copies[0].to, end.memory.data() + 256 + 4);
  EXPECT_EQ(end.scratch.device_copies[1].from.data(), last_four.data());
  EXPECT_EQ(end.memory[256], std::byte{5});
  EXPECT_EQ(end.memory[256 + 4], std::byte{0xEE}) << "left to the device";
  Block middle(decls);
  EXPECT_EQ(fill(middle, {first_four, here, last_four}), 256U + 8);
  Block alone(decls);
  EXPECT_EQ(fill(alone, {there, {}}), 256U + 12)
      << "the block has more than the device copies fill";
  alone.copiers = nullptr;
  EXPECT_EQ(fill(middle, {there, here}), 256U + 12);
}

// --- the way to the device ---

TEST(InputFeed, WritesIntoTheBlockOfAHostDevice) {
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto device = make_cpu_device(1, *kernels);
  const auto stream = device->create_stream();
  InputFeed feed(*device, *stream, *stream);
  feed.reserve(1000);
  EXPECT_EQ(feed.begin(), feed.block());
  feed.upload(1000);
  EXPECT_EQ(feed.begin(), feed.block());
  EXPECT_EQ(feed.device_bytes(), 1000u);
  EXPECT_EQ(feed.host_bytes(), 0u);
}

TEST(InputFeed, FillingRunsAheadOfTheReplays) {
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  DeferredDevice device(*kernels, Schedule::kLast);
  const auto compute = device.create_stream();
  const auto copy = device.create_copy_stream();
  InputFeed feed(device, *compute, *copy);
  feed.reserve(64);
  int replays = 0;
  const auto submit = [&] {
    (void)feed.begin();
    feed.upload(64);
    static_cast<test::DeferredStream&>(*compute).submit([&] { ++replays; });
  };
  submit();
  submit();
  EXPECT_EQ(replays, 0);  // the second was filled and uploaded without waiting for the first
  submit();
  EXPECT_LE(replays, 1);  // the third had to wait for the slot of the first at most
  compute->synchronize();
  EXPECT_EQ(replays, 3);
}

class InputFeedTest : public ::testing::TestWithParam<Schedule> {
 protected:
  std::unique_ptr<Kernels> kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  DeferredDevice device{*kernels, GetParam()};
  std::unique_ptr<Stream> compute = device.create_stream();
  std::unique_ptr<Stream> copy = device.create_copy_stream();
};

TEST_P(InputFeedTest, EveryRunSeesItsOwnInputs) {
  InputFeed feed(device, *compute, *copy);
  feed.reserve(64);
  constexpr int kRuns = 9;
  std::vector<Buffer> seen;
  for (int run = 0; run < kRuns; ++run) {
    std::byte* const host = feed.begin();
    std::fill_n(host, 64, static_cast<std::byte>(run));
    feed.upload(64);
    seen.push_back(device.allocate(64));
    compute->copy(seen.back().data(), feed.block(), 64);  // stands for the replay
  }
  compute->synchronize();
  for (int run = 0; run < kRuns; ++run) {
    EXPECT_EQ(seen[static_cast<std::size_t>(run)].data()[0], static_cast<std::byte>(run));
    EXPECT_EQ(seen[static_cast<std::size_t>(run)].data()[63], static_cast<std::byte>(run));
  }
}

TEST_P(InputFeedTest, EveryRunSeesItsOwnInputsAfterAPause) {
  InputFeed feed(device, *compute, *copy);
  feed.reserve(64);
  std::byte seen[9];
  for (int run = 0; run < 9; ++run) {
    if (run % 4 == 0) compute->synchronize();
    std::fill_n(feed.begin(), 64, static_cast<std::byte>(run));
    feed.upload(64);
    compute->copy(&seen[run], feed.block() + 63, 1);
  }
  compute->synchronize();
  for (int run = 0; run < 9; ++run) EXPECT_EQ(seen[run], static_cast<std::byte>(run));
}

TEST_P(InputFeedTest, UploadsOnlyWhatIsUsed) {
  InputFeed feed(device, *compute, *copy);
  feed.reserve(64);
  std::fill_n(feed.begin(), 64, std::byte{9});
  feed.upload(10);
  compute->synchronize();
  EXPECT_EQ(feed.block()[9], std::byte{9});
  EXPECT_EQ(feed.block()[10], std::byte{0});
}

TEST_P(InputFeedTest, CountsItsBytesAndGrows) {
  InputFeed feed(device, *compute, *copy);
  feed.reserve(64);
  feed.reserve(32);
  EXPECT_EQ(feed.capacity(), 64u);
  feed.reserve(128);
  EXPECT_EQ(feed.device_bytes(), 2 * 128u);  // staging and block
  EXPECT_EQ(feed.host_bytes(), 2 * 128u);    // two slots
  EXPECT_EQ(device.allocated_bytes(), feed.device_bytes());
  EXPECT_EQ(device.host_bytes(), feed.host_bytes());
}

TEST_P(InputFeedTest, GrowsAgainAfterItHadNoMemory) {
  for (int count = 0; count < 4; ++count) {  // block, staging and two slots
    InputFeed feed(device, *compute, *copy);
    feed.reserve(64);
    device.fail_once_after(count);
    expect_error(ErrorCode::kOutOfMemory, "128 bytes", [&] { feed.reserve(128); });
    EXPECT_EQ(feed.capacity(), 0u) << count;
    feed.reserve(96);
    EXPECT_EQ(feed.device_bytes(), 2 * 96u) << count;
    EXPECT_EQ(feed.host_bytes(), 2 * 96u) << count;
    std::fill_n(feed.begin(), 96, std::byte{7});
    feed.upload(96);
    compute->synchronize();
    EXPECT_EQ(feed.block()[95], std::byte{7}) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, InputFeedTest,
                         ::testing::Values(Schedule::kLast, Schedule::kCopyFirst),
                         [](const auto& entry) {
                           return entry.param == Schedule::kLast ? "Last" : "CopyFirst";
                         });

}  // namespace
}  // namespace fovea
