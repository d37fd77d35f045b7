// The tower of Qwen3-VL against the reference's rows: all golden items in one batch.
#include "models/qwen3_vl/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "checkpoint/safetensors.h"
#include "core/check.h"
#include "core/file.h"
#include "device/cpu/cpu_device.h"
#include "media/decode_image.h"
#include "models/host_inputs.h"
#include "models/qwen3_vl/config.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/golden.h"

namespace fovea::qwen3_vl {
namespace {

/// f32 on both sides, sums in another order; see tests/engine/golden_test.cpp.
constexpr double kTolerance = 1e-4;

/// Tokens beyond those of the items.
constexpr std::int64_t kSpareTokens = 7;

class Qwen3VlForward : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const auto& entry : std::filesystem::directory_iterator(GetParam() + "/images")) {
      names_.push_back(entry.path().stem().string());
      const media::Image image = media::decode_image(read_file(entry.path().string(), 1 << 20),
                                                     names_.back(), MediaOptions{});
      const RgbView frame{image.rgb.data(), image.width_px, image.height_px};
      add(processor_.plan_image(frame.width_px, frame.height_px), {&frame, 1});
    }
    const ConstTensorView video = file_.tensor("video.frames");
    std::vector<RgbView> frames;
    for (std::int64_t f = 0; f < video.shape[0]; ++f) {
      const std::int64_t frame_bytes = video.shape[1] * video.shape[2] * 3;
      frames.push_back(
          {video.as<std::uint8_t>() + f * frame_bytes, video.shape[2], video.shape[1]});
    }
    names_.push_back("video");
    add(processor_.plan_video(video.shape[0], video.shape[2], video.shape[1]), frames);
  }

  void add(const ItemPlan& plan, std::span<const RgbView> frames) {
    PreparedItem& item = items_.emplace_back();
    item.plan = plan;
    item.pixels.resize(plan.pixel_bytes);
    for (std::size_t f = 0; f < frames.size(); ++f) {
      processor_.fill_frame(plan, static_cast<std::int64_t>(f), frames[f], item.pixels);
    }
  }

  [[nodiscard]] std::int64_t total(std::int64_t ItemSpec::*count) const {
    return std::accumulate(
        items_.begin(), items_.end(), std::int64_t{0},
        [&](std::int64_t sum, const PreparedItem& item) { return sum + item.plan.spec.*count; });
  }

  /// Rows of all items, one after the other, [tokens, out_width]; rows beyond hold a NaN.
  std::vector<float> forward() {
    const GraphCapacity capacity{.tokens = total(&ItemSpec::out_rows) + kSpareTokens,
                                 .items = std::ssize(items_),
                                 .seqs = total(&ItemSpec::num_seqs)};
    const std::vector<ItemPart> parts = test::whole_items(items_);
    test::HostInputs inputs(common::GridInputs::declare(config_.grid, capacity));
    inputs.fill(
        [&](InputWriter& writer) { common::GridInputs::fill(config_.grid, parts, writer); });
    std::vector<float> out(static_cast<std::size_t>(capacity.tokens * config_.out_width()),
                           std::nanf(""));
    const Buffer memory = device_->allocate(std::size_t{64} << 20);
    Arena arena(memory.data(), memory.bytes());
    ExecContext ctx{*stream_, *kernels_, arena, *stream_};
    qwen3_vl::forward(ctx, config_, weights_, common::GridInputs::of(inputs.tensors()),
                      {reinterpret_cast<std::byte*>(out.data()),
                       DType::kF32,
                       {capacity.tokens, config_.out_width()}});
    return out;
  }

  /// Largest difference of the columns from `column` on of an item's rows to a reference tensor.
  static double difference(std::span<const float> rows, std::int64_t width, std::int64_t column,
                           const ConstTensorView& want) {
    double largest = 0;
    for (std::int64_t row = 0; row < want.shape[0]; ++row) {
      for (std::int64_t c = 0; c < want.shape[1]; ++c) {
        float value = 0;
        std::memcpy(&value, want.data + (row * want.shape[1] + c) * 4, sizeof(value));
        const double got = rows[static_cast<std::size_t>(row * width + column + c)];
        largest = std::max(largest, std::abs(got - double{value}));
      }
    }
    return largest;
  }

  checkpoint::HfConfig files_ = checkpoint::read_hf_config(GetParam());
  Config config_ = parse_config(files_);
  common::GridProcessor processor_{read_processing(files_, config_.grid, {})};
  checkpoint::SafetensorsFile file_{GetParam() + "/golden.safetensors"};
  checkpoint::WeightSource source_ = checkpoint::WeightSource::open(GetParam());
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(detect_cpu_isa());
  std::unique_ptr<Device> device_ = make_cpu_device(3, *kernels_);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  common::WeightLoader loader_{source_, "model.visual.", *device_, *stream_};
  Weights weights_ = load_weights(loader_, config_, processor_.processing().scaling.table());
  std::vector<std::string> names_;
  std::vector<PreparedItem> items_;
};

TEST_P(Qwen3VlForward, EmbeddingsAndDeepstackLevelsAreThoseOfTheReference) {
  const std::vector<float> rows = forward();
  const std::int64_t width = config_.out_width();
  std::span<const float> rest(rows);
  for (std::size_t i = 0; i < items_.size(); ++i) {
    SCOPED_TRACE(names_[i]);
    const std::string prefix = names_[i] + ".out.";
    const ConstTensorView main = file_.tensor(prefix + "pooler_output.0");
    ASSERT_EQ(main.shape, (Shape{items_[i].plan.spec.out_rows, config_.out_hidden_size}));
    EXPECT_LE(difference(rest, width, 0, main), kTolerance);
    for (std::int64_t k = 0; k < config_.num_deepstack(); ++k) {
      const ConstTensorView level = file_.tensor(cat(prefix, "deepstack_features.", k));
      EXPECT_LE(difference(rest, width, (k + 1) * config_.out_hidden_size, level), kTolerance) << k;
    }
    rest = rest.subspan(static_cast<std::size_t>(main.shape[0] * width));
  }
}

TEST_P(Qwen3VlForward, RowsBeyondTheLiveOnesStayAsTheyAre) {
  const std::vector<float> rows = forward();
  const auto spare = static_cast<std::size_t>(kSpareTokens * config_.out_width());
  for (const float value : std::span(rows).last(spare)) EXPECT_TRUE(std::isnan(value));
}

/// Qwen3-VL and Qwen3.5, which has no deepstack levels.
std::vector<std::string> folders() {
  std::vector<std::string> all = test::golden_folders("qwen3_vl", "golden.safetensors");
  for (std::string& folder : test::golden_folders("qwen3_5", "golden.safetensors")) {
    all.push_back(std::move(folder));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Golden, Qwen3VlForward, ::testing::ValuesIn(folders()),
                         [](const auto& folder) { return cat("Folder", folder.index); });

}  // namespace
}  // namespace fovea::qwen3_vl
