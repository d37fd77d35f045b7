#include "media/normalize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "fovea/tower/core/dtype.h"

namespace fovea::media {
namespace {

constexpr double kRescale = 0.00392156862745098;  // as preprocessor configurations write 1/255

struct Statistics {
  std::array<float, 3> mean;
  std::array<float, 3> std;
};

constexpr Statistics kClip = {{0.48145466f, 0.4578275f, 0.40821073f},
                              {0.26862954f, 0.26130258f, 0.27577711f}};
constexpr Statistics kImageNet = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
constexpr Statistics kHalf = {{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}};

// Values of the rules in docs/reference/image_resize.md, "Rescale and normalise".

TEST(Normalize, FusedGoldenValuesOfClip) {
  const NormalizeTable table = fused_normalize_table(kClip.mean, kClip.std, kRescale);
  EXPECT_EQ(table[0][0], -1.7922625541687012f);
  EXPECT_EQ(table[0][1], -1.7776641845703125f);
  EXPECT_EQ(table[0][128], 0.07633601129055023f);
  EXPECT_EQ(table[0][255], 1.9303362369537354f);
}

TEST(Normalize, ToTensorGoldenValuesOfClip) {
  const NormalizeTable table = to_tensor_normalize_table(kClip.mean, kClip.std);
  EXPECT_EQ(table[0][0], -1.7922625541687012f);
  EXPECT_EQ(table[0][1], -1.777664065361023f);
  EXPECT_EQ(table[0][128], 0.07633614540100098f);
  EXPECT_EQ(table[0][255], 1.9303361177444458f);
}

TEST(Normalize, EveryChannelHasTheValuesOfTheModels) {
  struct Case {
    NormalizeTable table;
    std::array<std::array<double, 3>, 3> values;  // of the bytes 0, 128 and 255
  };
  constexpr std::array<std::size_t, 3> kBytes{0, 128, 255};
  for (const Case& c :
       {Case{fused_normalize_table(kClip.mean, kClip.std, kRescale),  // Qwen2-VL, GLM
             {{{-1.7922626, -1.752097, -1.4802198},
               {.076336011, .16889715, .33994868},
               {1.9303362, 2.0748835, 2.1458972}}}},
        Case{to_tensor_normalize_table(kClip.mean, kClip.std),  // Step3-VL
             {{{-1.7922626, -1.7520971, -1.4802198},
               {.076336145, .16889732, .33994877},
               {1.9303361, 2.0748837, 2.1458969}}}},
        Case{to_tensor_normalize_table(kImageNet.mean, kImageNet.std),  // InternVL
             {{{-2.1179039, -2.0357141, -1.8044444},
               {.0740646, .2051822, .4264926},
               {2.2489083, 2.4285715, 2.6400001}}}},
        Case{fused_normalize_table(kHalf.mean, kHalf.std, kRescale),  // Qwen3-VL
             {{{-1, -1, -1}, {.0039215689, .0039215689, .0039215689}, {1, 1, 1}}}}}) {
    for (std::size_t v = 0; v < 3; ++v) {
      for (std::size_t channel = 0; channel < 3; ++channel) {
        EXPECT_NEAR(c.table[channel][kBytes[v]], c.values[v][channel], 6e-8) << kBytes[v];
      }
    }
  }
}

TEST(Normalize, LevelsOfDeepseekOcr) {
  const NormalizeTable table = to_tensor_normalize_table(kHalf.mean, kHalf.std);
  EXPECT_EQ(table[0][0], -1.0f);
  EXPECT_EQ(table[0][127], -0.0039215684f) << "grey beside an image";
  EXPECT_EQ(table[0][128], 0.003921628f);
  EXPECT_EQ(table[0][200], 0.5686274767f);
  EXPECT_EQ(table[0][255], 1.0f);
}

TEST(Normalize, FusedUsesTheScaledStatisticsInF32) {
  const auto expect = [](const Statistics& s, std::array<float, 3> mean, std::array<float, 3> std) {
    const NormalizeTable table = fused_normalize_table(s.mean, s.std, kRescale);
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t v = 0; v < 256; ++v)
        EXPECT_EQ(table[c][v], (static_cast<float>(v) - mean[c]) / std[c]) << c << ' ' << v;
  };
  expect(kClip, {122.77094268798828f, 116.74601745605469f, 104.09373474121094f},
         {68.50053405761719f, 66.63216400146484f, 70.32315826416016f});
  expect(kImageNet, {123.67500305175781f, 116.27999877929688f, 103.52999877929688f},
         {58.39500045776367f, 57.12000274658203f, 57.375f});
  expect(kHalf, {127.5f, 127.5f, 127.5f}, {127.5f, 127.5f, 127.5f});
}

TEST(Normalize, TheTwoRulesDifferByRounding) {
  // 384 to 537 of the 768 values differ, by at most 2.4e-7.
  for (const Statistics& s : {kClip, kImageNet, kHalf}) {
    const NormalizeTable fused = fused_normalize_table(s.mean, s.std, kRescale);
    const NormalizeTable plain = to_tensor_normalize_table(s.mean, s.std);
    int different = 0;
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t v = 0; v < 256; ++v) {
        different += fused[c][v] != plain[c][v] ? 1 : 0;
        EXPECT_LE(std::abs(fused[c][v] - plain[c][v]), 2.4e-7f);
      }
    EXPECT_GE(different, 384);
    EXPECT_LE(different, 537);
  }
}

TEST(Normalize, Bf16GoldenValues) {
  const NormalizeTable table = bf16_normalize_table(kHalf.mean, kHalf.std, kRescale);
  const std::pair<std::size_t, float> golden[] = {
      {0, -1.0f},        {1, -0.9921875f},   {2, -0.984375f},     {3, -0.9765625f},
      {50, -0.609375f},  {64, -0.49609375f}, {100, -0.21484375f}, {127, -0.00390625f},
      {128, 0.0078125f}, {129, 0.015625f},   {200, 0.5703125f},   {254, 0.9921875f},
      {255, 1.0f}};
  for (const auto& [value, expected] : golden)
    for (const auto& channel : table) EXPECT_EQ(channel[value], expected) << value;
}

TEST(Normalize, Bf16RoundsInTwoSteps) {
  // 128 of the 256 levels differ from rounding the f32 result once, by at most 0.0039.
  const NormalizeTable table = bf16_normalize_table(kHalf.mean, kHalf.std, kRescale);
  int different = 0;
  for (std::size_t v = 0; v < 256; ++v) {
    const float exact = (static_cast<float>(v) - 127.5f) / 127.5f;
    const float once = bf16_to_f32(f32_to_bf16(exact));
    different += table[0][v] != once ? 1 : 0;
    EXPECT_LE(std::abs(table[0][v] - once), 0.0040f) << v;
  }
  EXPECT_EQ(different, 128);
}

TEST(Normalize, ChannelsKeepTheirOwnStatistics) {
  const NormalizeTable table = to_tensor_normalize_table({0.0f, 0.25f, 0.5f}, {1.0f, 0.5f, 0.25f});
  EXPECT_EQ(table[0][255], 1.0f);
  EXPECT_EQ(table[1][255], 1.5f);
  EXPECT_EQ(table[2][255], 2.0f);
}

}  // namespace
}  // namespace fovea::media
