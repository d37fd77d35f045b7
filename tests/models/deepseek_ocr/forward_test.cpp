// The towers of DeepSeek-OCR against the reference's intermediate tensors. SAM's features and
// CLIP's tokens are made visible by a projection that picks the columns of one of them.
#include "models/deepseek_ocr/forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "checkpoint/safetensors.h"
#include "core/check.h"
#include "core/file.h"
#include "device/cpu/cpu_device.h"
#include "media/decode_image.h"
#include "media/normalize.h"
#include "models/deepseek_ocr/preprocess.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/golden.h"

namespace fovea::deepseek_ocr {
namespace {

/// f32 on both sides, sums in another order; see tests/engine/golden_test.cpp.
constexpr double kTolerance = 1e-4;

class ForwardTest : public ::testing::TestWithParam<std::string> {
 protected:
  /// Rows of the projection of one view of a picture, [tokens, n_embed].
  std::vector<float> forward(Path path, std::span<const std::uint8_t> pixels) {
    const ViewGeometry& view = path == kGlobal ? preprocess_.base : preprocess_.tile;
    std::vector<std::int32_t> sources;
    const auto row_stride = static_cast<std::int32_t>(3 * view.side_px);
    for (std::int64_t y = 0; y < view.grid(); ++y) {
      for (std::int64_t x = 0; x < view.grid(); ++x) {
        const auto offset = static_cast<std::int32_t>(16 * (y * row_stride + 3 * x));
        sources.insert(sources.end(), {offset, row_stride, 0, 0});
      }
    }
    const std::vector<std::int32_t> cu_seqlens{0, static_cast<std::int32_t>(view.tokens() + 1)};
    const media::NormalizeTable table =
        media::to_tensor_normalize_table(preprocess_.image_mean, preprocess_.image_std);
    const auto host = [](const auto& values, DType dtype, const Shape& shape) {
      return ConstTensorView{reinterpret_cast<const std::byte*>(values.data()), dtype, shape};
    };
    const Inputs in{.pixels = host(pixels, DType::kU8, {static_cast<std::int64_t>(pixels.size())}),
                    .sources = host(sources, DType::kI32, {view.grid() * view.grid(), 4}),
                    .cu_seqlens = host(cu_seqlens, DType::kI32, {2}),
                    .views = {},
                    .clip_rows = {},
                    .tokens = {},
                    .grid_rows = {},
                    .chunks = {ChunkLive{}}};
    std::vector<float> out(static_cast<std::size_t>(view.tokens() * config_.n_embed));
    const Buffer memory = device_->allocate(std::size_t{256} << 20);
    Arena arena(memory.data(), memory.bytes());
    ExecContext ctx{*stream_, *kernels_, arena, *stream_};
    deepseek_ocr::forward(
        ctx, config_, weights_, path, view, host(table, DType::kF32, {3, 256}), in, false,
        {reinterpret_cast<std::byte*>(out.data()), DType::kF32, {view.tokens(), config_.n_embed}});
    return out;
  }

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
  }

  /// Views of a picture of the golden folder.
  std::vector<std::uint8_t> views_of(const std::string& name) {
    const std::string path = GetParam() + "/images/" + name + ".png";
    const media::Image image = media::decode_image(read_file(path, 1 << 20), name, MediaOptions{});
    const ItemPlan plan = plan_image(preprocess_, image.width_px, image.height_px);
    std::vector<std::uint8_t> pixels(plan.pixel_bytes);
    fill_pixels(preprocess_, plan, {image.rgb.data(), image.width_px, image.height_px}, pixels);
    return pixels;
  }

  /// The first view of a path, of the first picture whose tensor `name` the reference kept.
  struct View {
    ConstTensorView want;
    std::vector<std::uint8_t> pixels;
  };
  View view_with(Path path, const std::string& name) {
    const std::string suffix = ".out." + name;
    for (const checkpoint::TensorEntry& entry : file_.header().tensors) {
      if (!entry.name.ends_with(suffix)) continue;
      std::vector<std::uint8_t> pixels =
          views_of(entry.name.substr(0, entry.name.size() - suffix.size()));
      const std::size_t global_bytes = preprocess_.base.pixel_bytes();
      if (path == kGlobal) {
        pixels.resize(global_bytes);
      } else {
        pixels.erase(pixels.begin(), pixels.begin() + static_cast<std::ptrdiff_t>(global_bytes));
        pixels.resize(preprocess_.tile.pixel_bytes());
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
  PreprocessConfig preprocess_ = parse_preprocess_config(files_, {});
  checkpoint::SafetensorsFile file_{GetParam() + "/golden.safetensors"};
  checkpoint::WeightSource source_ = checkpoint::WeightSource::open(GetParam());
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(detect_cpu_isa());
  std::unique_ptr<Device> device_ = make_cpu_device(3, *kernels_);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  blocks::WeightLoader loader_{source_, "model.", *device_, *stream_};
  Weights weights_ = load_weights(loader_, config_, {preprocess_.base, preprocess_.tile});
};

INSTANTIATE_TEST_SUITE_P(
    Golden, ForwardTest,
    ::testing::ValuesIn(test::golden_folders("deepseek_ocr", "golden.safetensors")),
    [](const auto& folder) { return folder.index == 0 ? std::string("Selection") : "Full"; });

TEST_P(ForwardTest, SamFeaturesAreThoseOfTheReference) {
  project_columns(config_.clip_width, config_.feature_width());
  for (const auto& [path, name] : {std::pair{kGlobal, "sam_global"}, {kLocal, "sam_local"}}) {
    SCOPED_TRACE(name);
    const View view = view_with(path, name);  // [1, channels, side, side]
    const std::int64_t tokens = view.want.shape[2] * view.want.shape[3];
    expect_near(forward(path, view.pixels), view.want, config_.n_embed,
                [&](std::int64_t token, std::int64_t column) { return column * tokens + token; });
  }
}

TEST_P(ForwardTest, ClipTokensAreThoseOfTheReference) {
  project_columns(0, config_.clip_width);
  for (const auto& [path, name] : {std::pair{kGlobal, "clip_global"}, {kLocal, "clip_local"}}) {
    SCOPED_TRACE(name);
    const View view = view_with(path, name);  // [1, 1 + tokens, channels]
    expect_near(forward(path, view.pixels), view.want, config_.n_embed,
                [&](std::int64_t token, std::int64_t column) {
                  return (token + 1) * config_.clip_width + column;
                });
  }
}

TEST_P(ForwardTest, ProjectedFeaturesAreThoseOfTheReference) {
  for (const auto& [path, name] :
       {std::pair{kGlobal, "global_features"}, {kLocal, "local_features"}}) {
    SCOPED_TRACE(name);
    const View view = view_with(path, name);  // [views, tokens, n_embed]
    expect_near(
        forward(path, view.pixels), view.want, config_.n_embed,
        [&](std::int64_t token, std::int64_t column) { return token * config_.n_embed + column; });
  }
}

TEST(Forward, ChunksHoldAboutSixteenThousandTokens) {
  EXPECT_EQ(views_per_chunk({1024}), 4);
  EXPECT_EQ(views_per_chunk({640}), 10);
  EXPECT_EQ(views_per_chunk({4096}), 1);
}

}  // namespace
}  // namespace fovea::deepseek_ocr
