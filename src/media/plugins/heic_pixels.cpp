// YCbCr to RGB. Of 4:2:0 in the full range samples lose their low bits first, and coefficients are
// rounded to 1/256; all others are converted in floats and lose bits afterwards. The range is
// stretched by 1.1689 and 1.1429, not by 255/219 and 255/224.
#include "media/plugins/heic_pixels.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/check.h"

namespace fovea::media {
namespace {

// ITU-T H.273, table 4.
constexpr int kIdentityMatrix = 0;
constexpr int kNotSaid = 2;
constexpr int kYCgCoMatrix = 8;

constexpr float kStretchLuma = 1.1689f;
constexpr float kStretchChroma = 1.1429f;

/// The shares of red and blue in luma.
struct LumaShares {
  float red;
  float blue;
};

std::optional<LumaShares> luma_shares(int matrix) {
  switch (matrix) {
    case 1: return LumaShares{0.2126f, 0.0722f};
    case kNotSaid:
    case 5:
    case 6: return LumaShares{0.299f, 0.114f};
    case 4: return LumaShares{0.30f, 0.11f};
    case 7: return LumaShares{0.212f, 0.087f};
    case 9: return LumaShares{0.2627f, 0.0593f};
    default: return std::nullopt;
  }
}

std::uint8_t byte_of(int value) noexcept {
  return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
}

/// A coefficient in 1/256.
int fraction(float coefficient) noexcept {
  return static_cast<int>(std::lround(256 * coefficient));
}

int rounded(int fractions) noexcept { return (fractions + 128) >> 8; }

}  // namespace

HeicConverter::HeicConverter(const HevcColors& colors, bool has_alpha, std::string_view name)
    : kind_(colors.is_grey && !has_alpha && colors.num_bits > 8 ? Kind::kClippedGrey
            : colors.is_grey                                    ? Kind::kGrey
            : colors.matrix == kIdentityMatrix                  ? Kind::kIdentity
            : colors.matrix == kYCgCoMatrix                     ? Kind::kYCgCo
            : colors.is_420 && colors.is_full_range             ? Kind::kFractions
                                                                : Kind::kFloats),
      colors_(colors),
      surplus_bits_(colors.num_bits - 8) {
  if (kind_ < Kind::kFractions) return;
  const std::optional<LumaShares> shares = luma_shares(colors.matrix);
  FOVEA_CHECK(shares, kUnsupported, name, ": HEIC image with matrix coefficients ", colors.matrix,
              ", expected 0, 1, 2 or 4 to 9");
  const auto [red, blue] = *shares;
  red_of_cr_ = 2 * (1 - red);
  blue_of_cb_ = 2 * (1 - blue);
  green_of_cb_ = 2 * blue * (1 - blue) / (blue + red - 1);
  green_of_cr_ = 2 * red * (1 - red) / (blue + red - 1);
}

void HeicConverter::convert_in_fractions(const HeicRow& row, std::size_t count,
                                         std::uint8_t* rgb) const noexcept {
  const int red_of_cr = fraction(red_of_cr_);
  const int green_of_cb = fraction(green_of_cb_);
  const int green_of_cr = fraction(green_of_cr_);
  const int blue_of_cb = fraction(blue_of_cb_);
  for (std::size_t x = 0; x < count; ++x, rgb += 3) {
    const int luma = row.luma[x] >> surplus_bits_;
    const int blue = (row.cb[x] >> surplus_bits_) - 128;
    const int red = (row.cr[x] >> surplus_bits_) - 128;
    rgb[0] = byte_of(luma + rounded(red_of_cr * red));
    rgb[1] = byte_of(luma + rounded(green_of_cb * blue + green_of_cr * red));
    rgb[2] = byte_of(luma + rounded(blue_of_cb * blue));
  }
}

void HeicConverter::convert_in_floats(const HeicRow& row, std::size_t count,
                                      std::uint8_t* rgb) const noexcept {
  const bool is_full = colors_.is_full_range;
  const int middle = 1 << (colors_.num_bits - 1);
  const int black = is_full ? 0 : 16 << surplus_bits_;
  const float luma_stretch = is_full ? 1.0f : kStretchLuma;
  const float chroma_stretch = is_full ? 1.0f : kStretchChroma;
  const auto most = static_cast<float>((1 << colors_.num_bits) - 1);
  const auto shorten = [&](float value) {
    const auto whole = static_cast<int>(std::clamp(value + 0.5f, 0.0f, most));
    return static_cast<std::uint8_t>(whole >> surplus_bits_);
  };
  for (std::size_t x = 0; x < count; ++x, rgb += 3) {
    const float luma = static_cast<float>(row.luma[x] - black) * luma_stretch;
    const float blue = static_cast<float>(row.cb[x] - middle) * chroma_stretch;
    const float red = static_cast<float>(row.cr[x] - middle) * chroma_stretch;
    rgb[0] = shorten(luma + red_of_cr_ * red);
    rgb[1] = shorten(luma + green_of_cb_ * blue + green_of_cr_ * red);
    rgb[2] = shorten(luma + blue_of_cb_ * blue);
  }
}

void HeicConverter::convert(const HeicRow& row, std::size_t count,
                            std::uint8_t* rgb) const noexcept {
  const auto shorten = [&](int value) { return byte_of(value >> surplus_bits_); };
  switch (kind_) {
    case Kind::kGrey:
      for (std::size_t x = 0; x < count; ++x) std::fill_n(rgb + 3 * x, 3, shorten(row.luma[x]));
      return;
    case Kind::kClippedGrey:  // Pillow has 16 bits, and clips them
      for (std::size_t x = 0; x < count; ++x)
        std::fill_n(rgb + 3 * x, 3, byte_of(row.luma[x] << (8 - surplus_bits_)));
      return;
    case Kind::kIdentity:
      for (std::size_t x = 0; x < count; ++x, rgb += 3) {
        rgb[0] = shorten(row.cr[x]);
        rgb[1] = shorten(row.luma[x]);
        rgb[2] = shorten(row.cb[x]);
      }
      return;
    case Kind::kYCgCo:
      for (std::size_t x = 0; x < count; ++x, rgb += 3) {
        const int middle = 1 << (colors_.num_bits - 1);
        const int green = row.cb[x] - middle;
        const int orange = row.cr[x] - middle;
        rgb[0] = shorten(row.luma[x] - green + orange);
        rgb[1] = shorten(row.luma[x] + green);
        rgb[2] = shorten(row.luma[x] - green - orange);
      }
      return;
    case Kind::kFractions: convert_in_fractions(row, count, rgb); return;
    case Kind::kFloats: convert_in_floats(row, count, rgb); return;
  }
}

}  // namespace fovea::media
