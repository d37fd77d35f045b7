#include "media/resize/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "media/interrupted.h"
#include "media/test_images.h"
#include "support/expect_error.h"
#include "support/property.h"
#include "support/sha256.h"

namespace fovea::media {
namespace {

using test::Bytes;

constexpr ResizeEngine P = ResizeEngine::kPillow;
constexpr ResizeEngine U = ResizeEngine::kTorchvision;
constexpr ResizeFilter kBilinear = ResizeFilter::kBilinear;
constexpr ResizeFilter kBicubic = ResizeFilter::kBicubic;
constexpr ResizeFilter kLanczos = ResizeFilter::kLanczos;

struct Size {
  std::int64_t width;
  std::int64_t height;
};

constexpr ResizeIsa kAllIsas[] = {ResizeIsa::kPortable, ResizeIsa::kAvx2, ResizeIsa::kAvx512,
                                  ResizeIsa::kNeon};

bool runs_here(ResizeIsa isa) {
  Bytes pixel(3);
  Bytes wide(6);
  try {
    resize_rgb({pixel, 1, 1, wide, 2, 1, U, kBilinear, isa});
    return true;
  } catch (const Error&) {
    return false;
  }
}

Bytes resize(const Bytes& src, Size from, Size to, ResizeEngine engine, ResizeFilter filter,
             ResizeIsa isa = ResizeIsa::kBest) {
  Bytes dst(static_cast<std::size_t>(to.width * to.height * 3), 0xEE);
  resize_rgb({.src = src,
              .src_width_px = from.width,
              .src_height_px = from.height,
              .dst = dst,
              .dst_width_px = to.width,
              .dst_height_px = to.height,
              .engine = engine,
              .filter = filter,
              .isa = isa});
  return dst;
}

/// A grey image as RGB and back, for the one-channel tables.
std::vector<int> resize_grey(const std::vector<int>& grey, Size from, Size to, ResizeEngine engine,
                             ResizeFilter filter) {
  Bytes rgb;
  for (const int v : grey) rgb.insert(rgb.end(), 3, static_cast<std::uint8_t>(v));
  const Bytes resized = resize(rgb, from, to, engine, filter);
  std::vector<int> result;
  for (std::size_t i = 0; i < resized.size(); i += 3) {
    EXPECT_EQ(resized[i], resized[i + 1]);
    EXPECT_EQ(resized[i], resized[i + 2]);
    result.push_back(resized[i]);
  }
  return result;
}

// Bytes of Pillow 9.4.0 (P) and of an independent implementation of torchvision's arithmetic (U).

std::vector<int> gradient() {
  return test::make_samples<int>(8, 6, 1, [](int x, int y, int) { return 32 * x + 5 * y; });
}

TEST(Resize, GradientBilinear) {
  const std::vector<int> expected = {15, 64, 114, 164, 213, 22, 71, 121, 171, 220,
                                     29, 78, 128, 178, 227, 36, 85, 135, 185, 234};
  EXPECT_EQ(resize_grey(gradient(), {8, 6}, {5, 4}, P, kBilinear), expected);
  EXPECT_EQ(resize_grey(gradient(), {8, 6}, {5, 4}, U, kBilinear), expected);
}

TEST(Resize, GradientBicubic) {
  const std::vector<int> expected = {11, 61, 113, 165, 215, 19, 69, 121, 173, 223,
                                     26, 76, 128, 180, 230, 34, 84, 136, 188, 238};
  EXPECT_EQ(resize_grey(gradient(), {8, 6}, {5, 4}, P, kBicubic), expected);
  EXPECT_EQ(resize_grey(gradient(), {8, 6}, {5, 4}, U, kBicubic), expected);
}

std::vector<int> checkerboard() {
  std::vector<int> h = test::make_samples<int>(
      8, 6, 1, [](int x, int y, int) { return (x / 2 + y / 2) % 2 == 0 ? 255 : 0; });
  h[0] = 0;
  h[5 * 8 + 7] = 200;
  return h;
}

TEST(Resize, ClipsBetweenThePassesBilinear) {
  const std::vector<int> expected = {161, 66,  128, 189, 0,   85,  148, 128, 107, 170,
                                     85,  148, 128, 107, 170, 255, 66,  128, 189, 74};
  EXPECT_EQ(resize_grey(checkerboard(), {8, 6}, {5, 4}, P, kBilinear), expected);
  EXPECT_EQ(resize_grey(checkerboard(), {8, 6}, {5, 4}, U, kBilinear), expected);
}

TEST(Resize, ClipsBetweenThePassesBicubic) {
  const std::vector<int> expected = {172, 52,  128, 209, 0,   80,  158, 128, 97,  180,
                                     75,  158, 128, 97,  176, 255, 46,  128, 205, 61};
  EXPECT_EQ(resize_grey(checkerboard(), {8, 6}, {5, 4}, P, kBicubic), expected);
  EXPECT_EQ(resize_grey(checkerboard(), {8, 6}, {5, 4}, U, kBicubic), expected);
}

TEST(Resize, ClipsBetweenThePassesLanczos) {
  const std::vector<int> expected = {192, 34,  125, 233, 0,   76,  168, 128, 85,  190,
                                     64,  170, 128, 86,  182, 255, 22,  130, 224, 41};
  EXPECT_EQ(resize_grey(checkerboard(), {8, 6}, {5, 4}, P, kLanczos), expected);
}

TEST(Resize, HorizontalPassAlone) {
  const std::vector<int> bicubic = resize_grey(checkerboard(), {8, 6}, {5, 6}, P, kBicubic);
  EXPECT_EQ(std::vector<int>(bicubic.begin(), bicubic.begin() + 10),
            (std::vector<int>{109, 62, 128, 202, 0, 255, 53, 128, 202, 0}));
}

TEST(Resize, RowsOfOnePixel) {
  struct Case {
    std::vector<int> from, to;
  };
  for (const Case& c : {Case{{10, 200, 30, 255, 0}, {87, 129, 108}},
                        Case{{10, 200, 30, 255}, {0, 74, 197, 113, 35, 181, 255}},
                        Case{{10, 200, 30, 255, 0, 77, 128, 3}, {92, 140, 72, 67}}}) {
    const Size from{std::ssize(c.from), 1};
    const Size to{std::ssize(c.to), 1};
    EXPECT_EQ(resize_grey(c.from, from, to, P, kBicubic), c.to);
    EXPECT_EQ(resize_grey(c.from, from, to, U, kBicubic), c.to);
  }
}

TEST(Resize, EnlargesThreeByTwo) {
  const std::vector<int> small = {10, 200, 30, 250, 0, 120};
  const std::vector<int> bilinear = {10,  58,  153, 158, 73, 30, 70,  91,  131, 126, 77, 53,
                                     190, 156, 86,  62,  86, 98, 250, 188, 63,  30,  90, 120};
  EXPECT_EQ(resize_grey(small, {3, 2}, {6, 4}, P, kBilinear), bilinear);
  EXPECT_EQ(resize_grey(small, {3, 2}, {6, 4}, U, kBilinear), bilinear);
  const std::vector<int> bicubic = {0,   37,  181, 190, 64, 5,   53,  81,  145, 141, 71, 39,
                                    202, 169, 72,  43,  87, 107, 255, 213, 36,  0,   94, 141};
  EXPECT_EQ(resize_grey(small, {3, 2}, {6, 4}, P, kBicubic), bicubic);
  EXPECT_EQ(resize_grey(small, {3, 2}, {6, 4}, U, kBicubic), bicubic);
}

struct WholeImageCase {
  Size to;
  ResizeFilter filter;
  ResizeEngine engine;
  std::int64_t sum;
  const char* sha256_head;  ///< first 16 hex digits
};

class WholeImage : public ::testing::TestWithParam<WholeImageCase> {};

TEST_P(WholeImage, HasThePublishedChecksum) {
  const WholeImageCase& c = GetParam();
  const Bytes source = test::checksum_pattern(64, 48, 3);
  ASSERT_EQ(test::sha256_hex(source),
            "c2a4445f221486e2f6b7180fe31f59399bdc0fe4b4bbbd3545821c26a0b8018f");
  for (const ResizeIsa isa : kAllIsas) {
    if (!runs_here(isa)) continue;
    const Bytes resized = resize(source, {64, 48}, c.to, c.engine, c.filter, isa);
    EXPECT_EQ(std::accumulate(resized.begin(), resized.end(), std::int64_t{0}), c.sum);
    EXPECT_EQ(test::sha256_hex(resized).substr(0, 16), c.sha256_head);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pattern, WholeImage,
    ::testing::Values(WholeImageCase{{40, 30}, kBicubic, P, 460343, "26b94ddb540c4132"},
                      WholeImageCase{{40, 30}, kBicubic, U, 460335, "4686afdcb61180e0"},
                      WholeImageCase{{40, 30}, kBilinear, P, 460454, "0e808a837ef96085"},
                      WholeImageCase{{40, 30}, kBilinear, U, 460446, "161002fa5289bdc3"},
                      WholeImageCase{{64, 20}, kBicubic, P, 490909, "fd4cfad1daaa3296"},
                      WholeImageCase{{64, 20}, kBicubic, U, 490910, "681a456d24598f52"},
                      WholeImageCase{{64, 20}, kBilinear, P, 490971, "9668c05e0e0d41ca"},
                      WholeImageCase{{64, 20}, kBilinear, U, 490971, "9668c05e0e0d41ca"},
                      WholeImageCase{{96, 72}, kBicubic, P, 2653304, "0fc9990af2e87288"},
                      WholeImageCase{{96, 72}, kBicubic, U, 2653339, "97ad0956b0800a1e"},
                      WholeImageCase{{96, 72}, kBilinear, P, 2654784, "3d8302a1924897cf"},
                      WholeImageCase{{96, 72}, kBilinear, U, 2654784, "3d8302a1924897cf"},
                      WholeImageCase{{28, 28}, kBicubic, P, 300697, "d4e42af9f4f2b774"},
                      WholeImageCase{{28, 28}, kBicubic, U, 300692, "4ec0233fb900bb65"},
                      WholeImageCase{{28, 28}, kBilinear, P, 300783, "a73e0b40aa0d85f0"},
                      WholeImageCase{{28, 28}, kBilinear, U, 300788, "70ccccd267df6da9"},
                      WholeImageCase{{17, 48}, kBicubic, P, 313026, "d083a9fd493217f6"},
                      WholeImageCase{{17, 48}, kBicubic, U, 313009, "4d2f7c998b38b12f"},
                      WholeImageCase{{17, 48}, kBilinear, P, 313034, "8318cb1330ed0822"},
                      WholeImageCase{{17, 48}, kBilinear, U, 313024, "cf1d6e0f18f4520b"},
                      WholeImageCase{{40, 30}, kLanczos, P, 460280, "52cfdd9ecb7a4166"},
                      WholeImageCase{{40, 30}, kLanczos, U, 460269, "138e195ae5f604d2"},
                      WholeImageCase{{96, 72}, kLanczos, P, 2651420, "faf751c66657b15e"},
                      WholeImageCase{{96, 72}, kLanczos, U, 2651400, "8042b0c7baa8fdac"},
                      WholeImageCase{{17, 48}, kLanczos, P, 313002, "ba8cad4e4207f532"},
                      WholeImageCase{{17, 48}, kLanczos, U, 312995, "56f4a183cd704cb4"}));

TEST(Resize, SpotValuesOfTheWholeImage) {
  const Bytes source = test::checksum_pattern(64, 48, 3);
  const Bytes p = resize(source, {64, 48}, {40, 30}, P, kBicubic);
  const Bytes u = resize(source, {64, 48}, {40, 30}, U, kBicubic);
  EXPECT_EQ(Bytes(p.begin(), p.begin() + 3), (Bytes{7, 36, 65}));
  EXPECT_EQ(Bytes(p.end() - 3, p.end()), (Bytes{118, 150, 184}));
  const std::size_t at = (9 * 40 + 1) * 3 + 1;
  EXPECT_EQ(p[at], 122);
  EXPECT_EQ(u[at], 121);
  EXPECT_TRUE(std::equal(p.begin(), p.begin() + at, u.begin()));
}

TEST(Resize, SameSizeReturnsTheInput) {
  const Bytes source = test::checksum_pattern(13, 7, 3);
  EXPECT_EQ(resize(source, {13, 7}, {13, 7}, P, kBicubic), source);
  EXPECT_EQ(resize(source, {13, 7}, {13, 7}, U, kBilinear), source);
}

TEST(Resize, OnePixelFillsEveryResult) {
  const Bytes pixel = {9, 130, 255};
  const Bytes resized = resize(pixel, {1, 1}, {7, 5}, U, kBicubic);
  for (std::size_t i = 0; i < resized.size(); ++i) EXPECT_EQ(resized[i], pixel[i % 3]);
}

TEST(Resize, TallStripsFilterAlongYFirst) {
  // 2 x 202 is more than 100 times as high as wide. Clipping between the passes tells the orders
  // apart; both expectations are compositions of single passes.
  const Size from{2, 202};
  const Size to{5, 30};
  const Bytes source = test::make_samples<std::uint8_t>(
      2, 202, 3, [](int x, int y, int c) { return (x + y / 3 + c) % 2 * 255; });
  const Bytes y_first =
      resize(resize(source, from, {2, 30}, P, kBicubic), {2, 30}, to, P, kBicubic);
  const Bytes x_first =
      resize(resize(source, from, {5, 202}, P, kBicubic), {5, 202}, to, P, kBicubic);
  ASSERT_NE(y_first, x_first);
  EXPECT_EQ(resize(source, from, to, P, kBicubic), y_first);
  EXPECT_EQ(resize(source, from, to, U, kBicubic),
            resize(resize(source, from, {5, 202}, U, kBicubic), {5, 202}, to, U, kBicubic));
}

TEST(Resize, OneHundredTimesAsHighIsNoTallStrip) {
  const Bytes source = test::make_samples<std::uint8_t>(
      2, 200, 3, [](int x, int y, int c) { return (x + y / 3 + c) % 2 * 255; });
  EXPECT_EQ(
      resize(source, {2, 200}, {5, 30}, P, kBicubic),
      resize(resize(source, {2, 200}, {5, 200}, P, kBicubic), {5, 200}, {5, 30}, P, kBicubic));
}

template <class Generator>
ResizeFilter any_filter(Generator& generator) {
  constexpr ResizeFilter kFilters[] = {kBilinear, kBicubic, kLanczos};
  return kFilters[test::uniform(generator, 0, 2)];
}

template <class Generator>
std::int64_t any_side(Generator& generator) {
  return test::uniform(generator, 0, 3) == 0 ? 1 : test::uniform(generator, 1, 150);
}

TEST(ResizeProperty, EveryInstructionSetGivesTheSameBytes) {
  std::vector<ResizeIsa> isas;
  for (const ResizeIsa isa : kAllIsas)
    if (isa != ResizeIsa::kPortable && runs_here(isa)) isas.push_back(isa);
  if (isas.empty()) GTEST_SKIP() << "this CPU has no vectors that are made use of";
  test::for_all(400, [&](auto& generator) {
    const Size from{any_side(generator), any_side(generator)};
    const Size to{any_side(generator), any_side(generator)};
    const ResizeEngine engine = test::uniform(generator, 0, 1) == 0 ? P : U;
    const ResizeFilter filter = any_filter(generator);
    const bool extremes = test::uniform(generator, 0, 1) == 0;  // overshoot is largest there
    Bytes source(static_cast<std::size_t>(from.width * from.height * 3));
    for (std::uint8_t& v : source)
      v = static_cast<std::uint8_t>(extremes ? test::uniform(generator, 0, 1) * 255
                                             : test::uniform(generator, 0, 255));
    const Bytes expected = resize(source, from, to, engine, filter, ResizeIsa::kPortable);
    for (const ResizeIsa isa : isas)
      EXPECT_EQ(resize(source, from, to, engine, filter, isa), expected)
          << "isa " << static_cast<int>(isa) << ", " << from.width << " x " << from.height << " to "
          << to.width << " x " << to.height;
  });
}

TEST(ResizeProperty, ConstantImagesStayConstant) {
  test::for_all(200, [&](auto& generator) {
    const Size from{test::uniform(generator, 1, 300), test::uniform(generator, 1, 40)};
    const Size to{test::uniform(generator, 1, 300), test::uniform(generator, 1, 40)};
    const ResizeEngine engine = test::uniform(generator, 0, 1) == 0 ? P : U;
    const auto value = static_cast<std::uint8_t>(test::uniform(generator, 0, 255));
    const Bytes source(static_cast<std::size_t>(from.width * from.height * 3), value);
    const Bytes resized = resize(source, from, to, engine, any_filter(generator));
    EXPECT_TRUE(
        std::all_of(resized.begin(), resized.end(), [&](std::uint8_t v) { return v == value; }));
  });
}

TEST(Resize, RefusesSidesBelowOne) {
  Bytes pixel(3);
  test::expect_error(ErrorCode::kInvalidArgument, "result must have sides >= 1, got 0 x 1", [&] {
    resize_rgb({pixel, 1, 1, {}, 0, 1, P, kBicubic});
  });
  test::expect_error(ErrorCode::kInvalidArgument, "source must have sides >= 1, got 1 x -1", [&] {
    resize_rgb({{}, 1, -1, pixel, 1, 1, P, kBicubic});
  });
}

TEST(Resize, RefusesSidesOfMoreThan24Bits) {
  Bytes pixel(3);
  test::expect_error(ErrorCode::kInvalidArgument, "result must have sides <= 16777216", [&] {
    resize_rgb({pixel, 1, 1, pixel, (1 << 24) + 1, 1, P, kBicubic});
  });
}

TEST(Resize, RefusesSpansOfTheWrongSize) {
  Bytes pixel(3);
  test::expect_error(ErrorCode::kInvalidArgument, "source of 2 x 1 pixels must have 6 bytes, got 3",
                     [&] {
                       resize_rgb({pixel, 2, 1, pixel, 1, 1, P, kBicubic});
                     });
}

TEST(Resize, StopsWhenAskedTo) {
  const Bytes src = test::checksum_pattern(8, 6, 3);
  for (const Size to : {Size{4, 6}, {8, 3}, {4, 3}})  // along x, along y, along both
    test::expect_stops([&] { (void)resize(src, {8, 6}, to, U, kBilinear); });
}

TEST(ResizeMargins, AreAsABoxOfPillow) {
  struct Example {
    Margins margins;
    ResizeFilter filter;
    Bytes rgb;
  };
  // Pillow 13.0.0: Image.fromarray(pattern).resize((3, 2), filter, box=...)
  const std::vector<Example> examples{
      {{.right_px = 0.5, .bottom_px = 0.75},
       kBicubic,
       {23, 52, 81, 45, 74, 103, 69, 98, 127, 66, 95, 124, 97, 126, 155, 130, 159, 188}},
      {{.right_px = 0.5, .bottom_px = 0.75},
       kBilinear,
       {27, 56, 85, 49, 78, 107, 72, 101, 130, 67, 96, 125, 96, 125, 154, 126, 155, 184}},
      {{.left_px = 0.5, .top_px = 0.75},
       kBicubic,
       {35, 64, 93, 60, 89, 118, 84, 113, 142, 79, 108, 137, 114, 143, 172, 146, 175, 204}},
      {{.left_px = 0.5, .top_px = 0.75},
       kBilinear,
       {38, 67, 96, 62, 91, 120, 85, 114, 143, 78, 107, 136, 110, 139, 168, 140, 169, 198}}};
  const Bytes pattern = test::checksum_pattern(9, 7, 3);
  for (const Example& example : examples) {
    Bytes rgb(3 * 2 * 3);
    resize_rgb({.src = pattern,
                .src_width_px = 9,
                .src_height_px = 7,
                .dst = rgb,
                .dst_width_px = 3,
                .dst_height_px = 2,
                .engine = P,
                .filter = example.filter,
                .src_margins = example.margins});
    EXPECT_EQ(rgb, example.rgb);
  }
}

TEST(ResizeMargins, AreCutOffWhereTheSizeStays) {
  const Bytes pattern = test::checksum_pattern(4, 4, 3);
  const auto resized = [&](const Margins& margins) {
    Bytes rgb(pattern.size());
    resize_rgb({.src = pattern,
                .src_width_px = 4,
                .src_height_px = 4,
                .dst = rgb,
                .dst_width_px = 4,
                .dst_height_px = 4,
                .engine = U,
                .filter = kBilinear,
                .src_margins = margins});
    return rgb;
  };
  EXPECT_EQ(resized({}), pattern);
  for (const Margins& margins :
       {Margins{.left_px = 0.5}, {.top_px = 0.5}, {.right_px = 0.5}, {.bottom_px = 0.5}}) {
    EXPECT_NE(resized(margins), pattern);
  }
}

}  // namespace
}  // namespace fovea::media
