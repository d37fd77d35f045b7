// Vectors of encoders for retrieval: what they are made of, and that they are as steady as rows.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "checkpoint/hf_config.h"
#include "fovea/fovea.h"
#include "fovea/tower/checkpoint/weight_source.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

/// Tiny models, which need no files but these, with weights that are random.
struct Encoder {
  const char* name;
  const char* config;
  const char* processor;
};

constexpr Encoder kEncoders[] = {
    {"clip", R"({"architectures": ["CLIPModel"], "projection_dim": 24, "vision_config": {
      "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48,
      "image_size": 32, "patch_size": 8}})",
     R"({"size": 32, "crop_size": 32})"},
    {"clip_vision", R"({"architectures": ["CLIPVisionModel"], "hidden_size": 32,
      "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48, "image_size": 32,
      "patch_size": 8})",
     R"({"size": 32, "crop_size": 32})"},
    {"siglip", R"({"architectures": ["SiglipVisionModel"], "hidden_size": 32,
      "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48, "image_size": 30,
      "patch_size": 8})",
     R"({"size": {"height": 30, "width": 30}})"},
    {"siglip2", R"({"architectures": ["Siglip2VisionModel"], "hidden_size": 32,
      "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48, "patch_size": 8,
      "num_patches": 16})",
     R"({"max_num_patches": 20, "patch_size": 8})"},
    {"dinov2", R"({"architectures": ["Dinov2WithRegistersModel"], "hidden_size": 32,
      "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_ratio": 2, "image_size": 48,
      "patch_size": 8})",
     R"({"size": 36, "crop_size": 32})"},
    {"dinov3", R"({"architectures": ["DINOv3ViTModel"], "hidden_size": 32, "num_hidden_layers": 2,
      "num_attention_heads": 2, "intermediate_size": 48, "patch_size": 8, "use_gated_mlp": true,
      "hidden_act": "silu", "num_register_tokens": 2})",
     R"({"size": 32})"},
};

std::vector<MediaItem> images() {
  std::vector<MediaItem> items;
  std::mt19937 random(5);
  for (const auto& [width, height] : {std::pair{40, 30}, {8, 8}, {33, 90}, {64, 64}, {120, 9}}) {
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width * height * 3));
    for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(random() & 255U);
    items.push_back(image_rgb(std::move(rgb), width, height, "image"));
  }
  return items;
}

class Vectors : public ::testing::TestWithParam<Encoder> {
 protected:
  Vectors() {
    std::ofstream(folder_ / "config.json") << GetParam().config;
    std::ofstream(folder_ / "preprocessor_config.json") << GetParam().processor;
  }

  [[nodiscard]] static EngineOptions options(bool vectors, bool normalize = false) {
    return {.device = "cpu",
            .num_threads = 2,
            .dummy_weights = true,
            .vectors = vectors,
            .normalize_vectors = normalize};
  }
  [[nodiscard]] Engine load(const EngineOptions& options) const {
    return Engine::load(folder_.path(), options);
  }
  /// A tensor of the random weights.
  [[nodiscard]] std::vector<float> weight(const std::string& name, const Shape& shape) const {
    const auto source = checkpoint::WeightSource::dummy(0);
    const ConstTensorView stored = source.tensor("model." + name, shape);
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    widen_to_f32(stored.dtype, stored.data, values.data(), values.size());
    return values;
  }

  test::TemporaryDirectory folder_;
};

std::vector<float> row_of(const Embedding& item, std::int64_t row) {
  std::vector<float> values;
  for (std::int64_t c = 0; c < item.width; ++c) values.push_back(item.at(row, c));
  return values;
}

void expect_equal(const std::vector<Embedding>& a, const std::vector<Embedding>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].rows, b[i].rows);
    EXPECT_EQ(row_of(a[i], 0), row_of(b[i], 0)) << "item " << i;
  }
}

TEST_P(Vectors, AreOneRowOfTheWidthOfTheEngine) {
  Engine engine = load(options(true));
  for (const Embedding& item : engine.encode(images())) {
    EXPECT_EQ(item.rows, 1);
    EXPECT_EQ(item.width, engine.report().hidden);
    EXPECT_TRUE(item.is_finite());
  }
  const ItemSize size{.width_px = 64, .height_px = 48};
  EXPECT_EQ(plan(folder_.path(), {&size, 1}, options(true)).items.front().rows, 1);
}

TEST_P(Vectors, AreTheSameHoweverTheyRun) {
  const std::vector<MediaItem> items = images();
  Engine engine = load(options(true));
  const std::vector<Embedding> batch = engine.encode(items);
  expect_equal(engine.encode(items, {.enforce_eager = true}), batch);
  std::vector<Embedding> alone;
  for (const MediaItem& item : items) {
    alone.push_back(std::move(engine.encode({&item, 1}).front()));
  }
  expect_equal(alone, batch);
  for (const PackingPolicy packing : {PackingPolicy::kUnits, PackingPolicy::kCost}) {
    EngineOptions other = options(true);
    other.packing = packing;
    other.data_parallel_size = 3;
    std::vector<MediaItem> twice = items;
    twice.insert(twice.end(), items.begin(), items.end());
    std::vector<Embedding> expected = engine.encode(items);
    for (Embedding& item : engine.encode(items)) expected.push_back(std::move(item));
    expect_equal(load(other).encode(twice), expected);
  }
}

TEST_P(Vectors, AreNotTheRowsOfACacheOfRows) {
  EngineOptions cached = options(true);
  cached.encoder_cache_bytes = 1 << 20;
  Engine vectors = load(cached);
  expect_equal(vectors.encode(images()), vectors.encode(images()));
  cached.vectors = false;
  EXPECT_NE(load(cached).fingerprint(), vectors.fingerprint());
}

TEST_P(Vectors, OfNormOnePointWhereTheOthersPoint) {
  const std::vector<Embedding> plain = load(options(true)).encode(images());
  const std::vector<Embedding> unit = load(options(true, true)).encode(images());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const std::vector<float> of_plain = row_of(plain[i], 0);
    double norm = 0;
    for (const float value : of_plain) norm += double{value} * double{value};
    norm = std::sqrt(norm);
    ASSERT_GT(norm, 0);
    for (std::int64_t c = 0; c < unit[i].width; ++c) {
      EXPECT_NEAR(unit[i].at(0, c), of_plain[static_cast<std::size_t>(c)] / norm, 1e-6);
    }
  }
}

/// LN(x) with weight and bias.
std::vector<double> layer_norm(const std::vector<float>& x, const std::vector<float>& weight,
                               const std::vector<float>& bias, double epsilon) {
  double mean = 0;
  for (const float value : x) mean += value;
  mean /= static_cast<double>(x.size());
  double variance = 0;
  for (const float value : x) variance += (value - mean) * (value - mean);
  variance /= static_cast<double>(x.size());
  std::vector<double> y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y.push_back((x[i] - mean) / std::sqrt(variance + epsilon) * weight[i] + bias[i]);
  }
  return y;
}

TEST_P(Vectors, AreMadeOfTheRows) {
  const std::vector<Embedding> rows = load(options(false)).encode(images());
  const std::vector<Embedding> vectors = load(options(true)).encode(images());
  const std::string name = GetParam().name;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (name.starts_with("dino")) {
      EXPECT_EQ(row_of(vectors[i], 0), row_of(rows[i], 0)) << "the class token, bit for bit";
    } else if (name == "clip_vision") {
      const std::vector<double> expected =
          layer_norm(row_of(rows[i], 0), weight("post_layernorm.weight", {32}),
                     weight("post_layernorm.bias", {32}), 1e-5);
      for (std::int64_t c = 0; c < 32; ++c) {
        EXPECT_NEAR(vectors[i].at(0, c), expected[static_cast<std::size_t>(c)], 1e-5);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Encoders, Vectors, ::testing::ValuesIn(kEncoders),
                         [](const auto& encoder) { return encoder.param.name; });

TEST(VectorOptions, AreRefusedWhereThereAreNoVectors) {
  const std::string qwen = test::golden_folder("qwen2_vl", "config.json");
  test::expect_error(ErrorCode::kUnsupported,
                     "vectors: family qwen2_vl makes rows for a language model, and no vector of "
                     "an image; families that do are clip, siglip, siglip2, dino",
                     [&] { (void)plan(qwen, {}, {.device = "cpu", .vectors = true}); });
  test::expect_error(ErrorCode::kInvalidArgument, "normalize_vectors: expected vectors, too",
                     [&] { (void)inspect(qwen, {.device = "cpu", .normalize_vectors = true}); });
}

}  // namespace
}  // namespace fovea
