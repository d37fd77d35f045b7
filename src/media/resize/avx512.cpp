// Inner loops of the resize for AVX-512 (F, BW, VL): as those for AVX2, with two source rows side
// by side along x and blocks of 64 bytes, the last one masked, along y.
#include <immintrin.h>

#include <cstring>

#include "media/resize/leaf.h"

namespace fovea::media {
namespace {

constexpr std::size_t kBlockBytes = 64;

/// Weights j and j + 1 in every 32-bit element.
__m512i pair_of_weights(const std::int16_t* weights) {
  std::int32_t pair;
  std::memcpy(&pair, weights, sizeof(pair));
  return _mm512_set1_epi32(pair);
}

/// Weights j to j + 3 in every 64-bit element.
__m512i four_weights(const std::int16_t* weights) {
  std::int64_t four;
  std::memcpy(&four, weights, sizeof(four));
  return _mm512_set1_epi64(four);
}

__m512i join_planes(__m512i high, __m512i low) {
  return _mm512_add_epi32(_mm512_slli_epi32(high, kLowPlaneBits), low);
}

/// 16 bytes of the first row in the lower two quarters, of the second row in the upper two.
__m512i load_two_rows(const std::uint8_t* first, const std::uint8_t* second) {
  constexpr __mmask16 kUpperHalf = 0xFF00;
  const __m512i both =
      _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(first)));
  return _mm512_mask_broadcast_i32x4(both, kUpperHalf,
                                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(second)));
}

/// Four pixels RGBRGBRGBRGB per quarter to 16-bit pairs (taps 0 and 1, taps 2 and 3):
/// R01 R23 G01 G23 | B01 B23 - - for the first row, then for the second.
__m512i pairs_by_channel(__m512i pixels) {
  constexpr char z = -128;  // gives a zero byte
  const __m256i order = _mm256_setr_epi8(0, z, 3, z, 6, z, 9, z, 1, z, 4, z, 7, z, 10, z,  //
                                         2, z, 5, z, 8, z, 11, z, z, z, z, z, z, z, z, z);
  return _mm512_shuffle_epi8(pixels, _mm512_broadcast_i64x4(order));
}

/// Sums of one output pixel of two rows as R R G G | B B - - | R R G G | B B - -.
template <bool kTwoPlanes>
__m512i filter_pixel(const AxisView& axis, const std::uint8_t* const* rows, std::int64_t x) {
  const std::int64_t first_byte = std::int64_t{axis.first[x]} * kChannels;
  const std::int64_t begin = x * axis.taps;
  __m512i sum = _mm512_setzero_si512();
  __m512i low_sum = _mm512_setzero_si512();
  for (std::int64_t j = 0; j < axis.taps; j += kTapGroup) {
    const std::int64_t offset = first_byte + j * kChannels;
    const __m512i pairs = pairs_by_channel(load_two_rows(rows[0] + offset, rows[1] + offset));
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, four_weights(axis.planes[0] + begin + j)));
    if constexpr (kTwoPlanes)
      low_sum = _mm512_add_epi32(
          low_sum, _mm512_madd_epi16(pairs, four_weights(axis.planes[1] + begin + j)));
  }
  return kTwoPlanes ? join_planes(sum, low_sum) : sum;
}

/// Adds neighbouring elements of each quarter: a0+a1, a2+a3, b0+b1, b2+b3.
__m512i add_neighbours(__m512i a, __m512i b) {
  const __m512 left = _mm512_castsi512_ps(a);
  const __m512 right = _mm512_castsi512_ps(b);
  return _mm512_add_epi32(
      _mm512_castps_si512(_mm512_shuffle_ps(left, right, _MM_SHUFFLE(2, 0, 2, 0))),
      _mm512_castps_si512(_mm512_shuffle_ps(left, right, _MM_SHUFFLE(3, 1, 3, 1))));
}

/// Adds the two parts of each channel of two pixels and rounds: R G R G | B - B - | ...
__m512i round_pixels(__m512i a, __m512i b, __m512i half, __m128i shift) {
  return _mm512_sra_epi32(_mm512_add_epi32(add_neighbours(a, b), half), shift);
}

/// Interleaves RGRGRGRG (twice) | B-B-B-B- (twice) | second row likewise to four pixels of either
/// row in the two quarters of the result.
__m256i interleave_channels(__m512i bytes) {
  const __m512i even_quads = _mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6);
  const __m256i order = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 8, 2, 3, 10, 4, 5, 12, 6, 7, 14, -128, -128, -128, -128));
  const __m256i joined = _mm512_castsi512_si256(_mm512_permutexvar_epi64(even_quads, bytes));
  return _mm256_shuffle_epi8(joined, order);
}

template <bool kTwoPlanes>
void filter_rows(const HorizontalArgs& args) {
  const AxisView& axis = *args.axis;
  const __m512i half = _mm512_set1_epi32(1 << (axis.shift - 1));
  const __m128i shift = _mm_cvtsi32_si128(axis.shift);
  const auto filter_two = [&](std::int64_t x) {
    return round_pixels(filter_pixel<kTwoPlanes>(axis, args.src, x),
                        filter_pixel<kTwoPlanes>(axis, args.src, x + 1), half, shift);
  };
  for (std::int64_t x = 0; x < axis.out_size; x += kTapGroup) {
    const __m512i words = _mm512_packs_epi32(filter_two(x), filter_two(x + 2));
    const __m256i pixels = interleave_channels(_mm512_packus_epi16(words, words));
    const std::int64_t offset = x * kChannels;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(args.dst[0] + offset),
                     _mm256_castsi256_si128(pixels));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(args.dst[1] + offset),
                     _mm256_extracti128_si256(pixels, 1));
  }
}

void horizontal(const HorizontalArgs& args) {
  if (args.axis->planes[1] != nullptr)
    filter_rows<true>(args);
  else
    filter_rows<false>(args);
}

/// Sums of 64 neighbouring bytes, in the order in which unpacking leaves them.
struct BlockSums {
  __m512i part[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                     _mm512_setzero_si512()};

  /// `pairs`: bytes of two source rows, interleaved and widened to 16 bits.
  void add(const __m512i (&pairs)[4], __m512i weights) {
    for (int i = 0; i < 4; ++i)
      part[i] = _mm512_add_epi32(part[i], _mm512_madd_epi16(pairs[i], weights));
  }
};

/// Filters the bytes of one block that `mask` selects.
template <bool kTwoPlanes>
void filter_block(const VerticalArgs& args, std::size_t offset, __mmask64 mask) {
  const AxisView& axis = *args.axis;
  const std::int64_t begin = args.row * axis.taps;
  const __m512i zero = _mm512_setzero_si512();
  BlockSums sums;
  BlockSums low_sums;
  for (std::int32_t j = 0; j < axis.count[args.row]; j += 2) {
    const __m512i even = _mm512_maskz_loadu_epi8(mask, args.src[j] + offset);
    const __m512i odd = _mm512_maskz_loadu_epi8(mask, args.src[j + 1] + offset);
    const __m512i low = _mm512_unpacklo_epi8(even, odd);
    const __m512i high = _mm512_unpackhi_epi8(even, odd);
    const __m512i pairs[4] = {_mm512_unpacklo_epi8(low, zero), _mm512_unpackhi_epi8(low, zero),
                              _mm512_unpacklo_epi8(high, zero), _mm512_unpackhi_epi8(high, zero)};
    sums.add(pairs, pair_of_weights(axis.planes[0] + begin + j));
    if constexpr (kTwoPlanes) low_sums.add(pairs, pair_of_weights(axis.planes[1] + begin + j));
  }
  const __m512i half = _mm512_set1_epi32(1 << (axis.shift - 1));
  const __m128i shift = _mm_cvtsi32_si128(axis.shift);
  for (int i = 0; i < 4; ++i) {
    if constexpr (kTwoPlanes) sums.part[i] = join_planes(sums.part[i], low_sums.part[i]);
    sums.part[i] = _mm512_sra_epi32(_mm512_add_epi32(sums.part[i], half), shift);
  }
  const __m512i bytes = _mm512_packus_epi16(_mm512_packs_epi32(sums.part[0], sums.part[1]),
                                            _mm512_packs_epi32(sums.part[2], sums.part[3]));
  _mm512_mask_storeu_epi8(args.dst + offset, mask, bytes);
}

template <bool kTwoPlanes>
void filter_blocks(const VerticalArgs& args) {
  std::size_t offset = 0;
  for (; offset + kBlockBytes <= args.row_bytes; offset += kBlockBytes)
    filter_block<kTwoPlanes>(args, offset, ~__mmask64{0});
  if (offset < args.row_bytes)
    filter_block<kTwoPlanes>(args, offset, (__mmask64{1} << (args.row_bytes - offset)) - 1);
}

void vertical(const VerticalArgs& args) {
  if (args.axis->planes[1] != nullptr)
    filter_blocks<true>(args);
  else
    filter_blocks<false>(args);
}

}  // namespace

const ResizeLeaf kAvx512Leaf = {.rows_at_once = 2, .horizontal = horizontal, .vertical = vertical};

}  // namespace fovea::media
