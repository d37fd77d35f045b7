// Towers that multiply integers of 8 bits or bf16 on a CPU: for the golden checkpoint of every
// family, rows that are close to the reference's, and the same bits however they are computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

constexpr const char* kGoldenFile = "golden.safetensors";
/// What float32 keeps below: rows that are closer were computed in it.
constexpr double kFloat32Tolerance = 1e-4;

struct Precision {
  const char* name;
  Quantization quantization;
  ComputeDType dtype_compute;
  /// Largest relative difference that a few blocks were seen to make, and a little room for another
  /// compiler's float32.
  double tolerance;
};

constexpr Precision kPrecisions[] = {
    {"int8", Quantization::kInt8, ComputeDType::kFloat32, 0.035},  // seen 0.028
    {"bf16", Quantization::kNone, ComputeDType::kBFloat16, 0.01},  // seen 0.0072
    {"int8_bf16", Quantization::kInt8, ComputeDType::kBFloat16, 0.035}};

Engine load(const std::string& folder, const Precision& precision, EngineOptions options) {
  options.device = "cpu";
  options.quantization = precision.quantization;
  options.dtype_compute = precision.dtype_compute;
  return Engine::load(folder, options);
}

/// The tiny Qwen3-VL with graphs that are quick to verify.
Engine load_small_graphs(const Precision& precision) {
  return load(test::golden_folder("qwen3_vl", kGoldenFile), precision,
              {.num_threads = 2, .max_num_batched_tokens = 512});
}

std::vector<MediaItem> golden_images(const std::string& folder) {
  std::vector<MediaItem> items;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
    items.push_back(image_file(entry.path().string()));
  }
  std::ranges::sort(items, {}, &MediaItem::name);
  return items;
}

class ReducedTower : public ::testing::TestWithParam<std::tuple<std::string, Precision>> {};

INSTANTIATE_TEST_SUITE_P(Families, ReducedTower,
                         ::testing::Combine(::testing::ValuesIn(test::golden_families(
                                                FOVEA_TEST_GOLDEN_DIR, kGoldenFile)),
                                            ::testing::ValuesIn(kPrecisions)),
                         [](const auto& suite) {
                           return std::get<0>(suite.param) + "_" + std::get<1>(suite.param).name;
                         });

TEST_P(ReducedTower, IsCloseToTheReferenceAndHasTheSameBitsHoweverItRuns) {
  const auto& [family, precision] = GetParam();
  const std::string folder = test::golden_folder(family, kGoldenFile);
  Engine engine = load(folder, precision, {.num_threads = 1});
  Engine threads = load(folder, precision, {.num_threads = 3});
  const std::vector<MediaItem> items = golden_images(folder);
  const std::vector<Embedding> batch = engine.encode(items);
  const std::vector<Embedding> eager = engine.encode(items, {.enforce_eager = true});
  const std::vector<Embedding> spread = threads.encode(items);
  for (std::size_t i = 0; i < items.size(); ++i) {
    SCOPED_TRACE(items[i].name);
    const std::optional<double> difference = golden_difference(batch[i], folder);
    ASSERT_TRUE(difference.has_value());
    EXPECT_LE(*difference, precision.tolerance);
    EXPECT_GE(*difference, kFloat32Tolerance);
    EXPECT_EQ(eager[i].data, batch[i].data) << "a replay must give what an eager run gives";
    EXPECT_EQ(spread[i].data, batch[i].data) << "the number of threads must not matter";
    const Embedding alone = engine.encode(std::span(&items[i], 1)).front();
    EXPECT_EQ(alone.data, batch[i].data) << "a row must not depend on what else is in the batch";
  }
}

/// The checks of verify that compare with float32.
std::vector<std::string> comparisons(const Precision& precision, const std::string& kind) {
  Engine engine = load_small_graphs(precision);
  std::vector<std::string> names;
  for (const Check& check : verify(engine, "")) {
    EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
    if (!check.name.starts_with(kind)) continue;
    names.push_back(check.name);
    EXPECT_NE(check.detail.find("against float32"), std::string::npos) << check.detail;
  }
  return names;
}

TEST(ReducedPrecision, VerifySaysHowFarEveryLevelIsFromFloat32) {
  for (const auto& [precision, kind] : {std::pair{kPrecisions[0], std::string("quantized")},
                                        std::pair{kPrecisions[1], std::string("bfloat16")}}) {
    const std::vector<std::string> names = comparisons(precision, kind);
    ASSERT_FALSE(names.empty()) << kind;
    EXPECT_EQ(names.front(), kind + " rows");
    EXPECT_EQ(names.back(), kind + " deepstack level " + std::to_string(names.size() - 2));
  }
}

TEST(ReducedPrecision, BFloat16IsAcceptedAgainstTheGoldenRows) {
  Engine engine = load_small_graphs(kPrecisions[1]);
  bool has_golden = false;
  for (const Check& check : verify(engine, test::golden_folder("qwen3_vl", kGoldenFile))) {
    EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
    has_golden = has_golden || check.name.starts_with("golden");
  }
  EXPECT_TRUE(has_golden);
}

TEST(ReducedPrecision, TheFingerprintOfCachedRowsNamesWhatIsMultiplied) {
  const std::string folder = test::golden_folder("qwen3_vl", kGoldenFile);
  const Engine bf16 =
      load(folder, kPrecisions[1], {.num_threads = 1, .encoder_cache_bytes = 10'000});
  EXPECT_NE(bf16.fingerprint().find(";dtype=bfloat16;"), std::string::npos) << bf16.fingerprint();
  const Engine f32 = Engine::load(folder, {.device = "cpu", .encoder_cache_bytes = 10'000});
  EXPECT_NE(f32.fingerprint().find(";dtype=float32;"), std::string::npos) << f32.fingerprint();
}

TEST(ReducedPrecision, Float32IsWhatACpuComputesInUnlessAskedOtherwise) {
  const std::string folder = test::golden_folder("qwen3_vl", kGoldenFile);
  Engine asked = Engine::load(folder, {.device = "cpu", .dtype_compute = ComputeDType::kFloat32});
  Engine unasked = Engine::load(folder, {.device = "cpu"});
  const std::vector<MediaItem> items = golden_images(folder);
  EXPECT_EQ(asked.encode(items).front().data, unasked.encode(items).front().data);
}

TEST(ReducedPrecision, Float32OnAGpuIsRefused) {
  test::expect_error(
      ErrorCode::kUnsupported, "dtype_compute float32 needs a CPU, device cuda:3", [] {
        (void)Engine::load(test::golden_folder("qwen3_vl", kGoldenFile),
                           {.device = "cuda:3", .dtype_compute = ComputeDType::kFloat32});
      });
}

TEST(ReducedPrecision, Fp8OnACpuIsRefused) {
  test::expect_error(ErrorCode::kUnsupported, "compute capability 9.0 (Hopper), not the CPU", [] {
    (void)Engine::load(test::golden_folder("qwen3_vl", kGoldenFile),
                       {.device = "cpu", .quantization = Quantization::kFp8});
  });
}

}  // namespace
}  // namespace fovea
