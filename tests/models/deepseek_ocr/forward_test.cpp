// The towers of DeepSeek-OCR against the reference's intermediate tensors. SAM's features and
// CLIP's tokens are made visible by a projection that picks the columns of one of them.
#include "models/deepseek_ocr/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "checkpoint/safetensors.h"
#include "core/check.h"
#include "core/file.h"
#include "device/cpu/cpu_device.h"
#include "media/decode_image.h"
#include "models/deepseek_ocr/processor.h"
#include "models/host_inputs.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/golden.h"

namespace fovea::deepseek_ocr {
namespace {

/// f32 on both sides, sums in another order; see tests/engine/golden_test.cpp.
constexpr double kTolerance = 1e-4;

class DeepseekOcrForward : public ::testing::TestWithParam<std::string> {
 protected:
  /// Rows of the projection of one view of an image, [tokens, n_embed], or all rows of the path.
  std::vector<float> forward(Path path, std::span<const std::uint8_t> pixels) {
    std::vector<float> rows = forward_with_newlines(path, pixels);
    if (path == kLocal) return rows;
    const std::int64_t side = views()[path].tokens_side();
    std::vector<float> tokens;
    for (std::int64_t y = 0; y < side; ++y) {
      const auto first = rows.begin() + y * (side + 1) * config_.n_embed;
      tokens.insert(tokens.end(), first, first + side * config_.n_embed);
    }
    return tokens;
  }

  std::vector<float> forward_with_newlines(Path path, std::span<const std::uint8_t> pixels) {
    const common::ViewLayout layout = layout_of(views()[path], path);
    test::HostInputs inputs(common::ViewInputs::declare(layout, 1));
    inputs.fill([&](InputWriter& writer) {
      writer.copy(common::ViewInputs::fill(layout, 1, 1, 1, writer), pixels);
    });
    const std::int64_t rows = layout.tokens;
    std::vector<float> out(static_cast<std::size_t>(rows * config_.n_embed));
    const Buffer memory = device_->allocate(std::size_t{256} << 20);
    Arena arena(memory.data(), memory.bytes());
    ExecContext ctx{*stream_, *kernels_, arena, *stream_};
    deepseek_ocr::forward(
        ctx, {config_, weights_, path}, common::ViewInputs::of(layout, 1, inputs.tensors()),
        {reinterpret_cast<std::byte*>(out.data()), DType::kF32, {rows, config_.n_embed}});
    return out;
  }

  [[nodiscard]] const Views& views() const { return processor_.processing().views; }

  /// Lets the projection pass `count` columns from `first` on.
  void project_columns(std::int64_t first, std::int64_t count) {
    const std::int64_t in = config_.projector_input_dim;
    std::vector<float> pick(static_cast<std::size_t>(count * in), 0.0f);
    for (std::int64_t row = 0; row < count; ++row) {
      pick[static_cast<std::size_t>(row * in + first + row)] = 1.0f;
    }
    weights_.projector = ops::pack_linear(
        *device_, {reinterpret_cast<const std::byte*>(pick.data()), DType::kF32, {count, in}}, {});
    config_.n_embed = count;
    const std::vector<float> newline(static_cast<std::size_t>(count), 0.5f);
    weights_.image_newline = loader_.constant(newline, {1, count});
  }

  /// Views of an image of the golden folder.
  std::vector<std::uint8_t> views_of(const std::string& name) {
    const std::string path = GetParam() + "/images/" + name + ".png";
    const media::Image image = media::decode_image(read_file(path, 1 << 20), name, MediaOptions{});
    const RgbView frame{image.rgb.data(), image.width_px, image.height_px};
    const ItemPlan plan = processor_.plan_image(frame.width_px, frame.height_px);
    std::vector<std::uint8_t> pixels(plan.pixel_bytes);
    processor_.fill_frame(plan, 0, frame, pixels);
    return pixels;
  }

  /// The first view of a path, of the first image whose tensor `name` the reference kept.
  struct GoldenView {
    ConstTensorView want;
    std::vector<std::uint8_t> pixels;
  };
  GoldenView view_with(Path path, const std::string& name) {
    const std::string suffix = ".out." + name;
    for (const checkpoint::TensorEntry& entry : file_.header().tensors) {
      if (!entry.name.ends_with(suffix)) continue;
      std::vector<std::uint8_t> pixels =
          views_of(entry.name.substr(0, entry.name.size() - suffix.size()));
      const std::size_t global_bytes = views()[kGlobal].pixel_bytes();
      if (path == kGlobal) {
        pixels.resize(global_bytes);
      } else {
        pixels.erase(pixels.begin(), pixels.begin() + static_cast<std::ptrdiff_t>(global_bytes));
        pixels.resize(views()[kLocal].pixel_bytes());
      }
      return {file_.tensor(entry.name), std::move(pixels)};
    }
    ADD_FAILURE() << "no tensor ends with " << suffix;
    return {};
  }

  /// want(token, column) gives the place in a reference tensor.
  template <class Place>
  static void expect_near(const std::vector<float>& got, const ConstTensorView& want,
                          std::int64_t columns, const Place& place) {
    double largest = 0;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(got.size()); ++i) {
      float value = 0;
      std::memcpy(&value, want.data + place(i / columns, i % columns) * sizeof(float),
                  sizeof(value));
      largest = std::max(largest, std::abs(double{got[static_cast<std::size_t>(i)]} - value));
    }
    EXPECT_LE(largest, kTolerance);
  }

  checkpoint::HfConfig files_ = checkpoint::read_hf_config(GetParam());
  Config config_ = parse_config(files_);
  Processor processor_{read_processing(files_, {})};
  checkpoint::SafetensorsFile file_{GetParam() + "/golden.safetensors"};
  checkpoint::WeightSource source_ = checkpoint::WeightSource::open(GetParam());
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(detect_cpu_isa());
  std::unique_ptr<Device> device_ = make_cpu_device(3, *kernels_);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  common::WeightLoader loader_{source_, "model.", *device_, *stream_};
  Weights weights_ =
      load_weights(loader_, config_, views(), processor_.processing().scaling.table());
};

INSTANTIATE_TEST_SUITE_P(
    Golden, DeepseekOcrForward,
    ::testing::ValuesIn(test::golden_folders("deepseek_ocr", "golden.safetensors")),
    [](const auto& folder) { return folder.index == 0 ? std::string("Selection") : "Full"; });

TEST_P(DeepseekOcrForward, SamFeaturesAreThoseOfTheReference) {
  project_columns(config_.clip_width, config_.feature_width());
  for (const auto& [path, name] : {std::pair{kGlobal, "sam_global"}, {kLocal, "sam_local"}}) {
    SCOPED_TRACE(name);
    const GoldenView view = view_with(path, name);  // [1, channels, side, side]
    const std::int64_t tokens = view.want.shape[2] * view.want.shape[3];
    expect_near(forward(path, view.pixels), view.want, config_.n_embed,
                [&](std::int64_t token, std::int64_t column) { return column * tokens + token; });
  }
}

TEST_P(DeepseekOcrForward, ClipTokensAreThoseOfTheReference) {
  project_columns(0, config_.clip_width);
  for (const auto& [path, name] : {std::pair{kGlobal, "clip_global"}, {kLocal, "clip_local"}}) {
    SCOPED_TRACE(name);
    const GoldenView view = view_with(path, name);  // [1, 1 + tokens, channels]
    expect_near(forward(path, view.pixels), view.want, config_.n_embed,
                [&](std::int64_t token, std::int64_t column) {
                  return (token + 1) * config_.clip_width + column;
                });
  }
}

TEST_P(DeepseekOcrForward, ProjectedFeaturesAreThoseOfTheReference) {
  for (const auto& [path, name] :
       {std::pair{kGlobal, "global_features"}, {kLocal, "local_features"}}) {
    SCOPED_TRACE(name);
    const GoldenView view = view_with(path, name);  // [views, tokens, n_embed]
    expect_near(
        forward(path, view.pixels), view.want, config_.n_embed,
        [&](std::int64_t token, std::int64_t column) { return token * config_.n_embed + column; });
  }
}

TEST_P(DeepseekOcrForward, EveryRowOfTheGlobalViewEndsWithANewline) {
  const GoldenView view = view_with(kGlobal, "global_features");
  const std::vector<float> rows = forward_with_newlines(kGlobal, view.pixels);
  const auto* const newline = weights_.image_newline.view().as<float>();
  const std::int64_t side = views()[kGlobal].tokens_side();
  for (std::int64_t y = 0; y < side; ++y) {
    const auto row = rows.begin() + (y * (side + 1) + side) * config_.n_embed;
    EXPECT_TRUE(std::equal(row, row + config_.n_embed, newline)) << y;
  }
}

TEST(DeepseekOcrViewLayout, ChunksHoldAboutSixteenThousandPatches) {
  EXPECT_EQ(layout_of(view_of(1024), kGlobal).views_per_chunk, 4);
  EXPECT_EQ(layout_of(view_of(640), kLocal).views_per_chunk, 10);
  EXPECT_EQ(layout_of(view_of(4096), kGlobal).views_per_chunk, 1);
}

TEST(DeepseekOcrViewLayout, LiveCountsAreThoseOfTheStagesOfTheTowers) {
  const common::ViewLayout layout = layout_of(view_of(640), kLocal);
  EXPECT_EQ(layout.sequence.rows(), 101) << "tokens and the class token";
  EXPECT_EQ(layout.tokens, 100);
  EXPECT_EQ(layout_of(view_of(640), kGlobal).tokens, 110) << "with newlines";
  EXPECT_EQ(layout.stages, (std::vector<std::int64_t>{100, 10}));
  EXPECT_EQ(layout.chunk_stages, (std::vector<std::int64_t>{400, 100}));
}

}  // namespace
}  // namespace fovea::deepseek_ocr
