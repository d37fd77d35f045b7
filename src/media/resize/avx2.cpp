// Inner loops of the resize for AVX2: products of 16-bit pairs (vpmaddwd) on pixels widened to 16
// bits, sums in 32 bits. Weights of more than 16 bits come as two planes whose sums are put
// together at the end; all of it is exact, so every order gives the same bytes.
#include <immintrin.h>

#include <cstring>

#include "media/resize/leaf.h"
#include "media/resize/row_blocks.h"

namespace fovea::media {
namespace {

constexpr std::size_t kBlockBytes = 32;

__m256i load(const std::uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

/// Weights j and j + 1 in every 32-bit element.
__m256i pair_of_weights(const std::int16_t* weights) {
  std::int32_t pair = 0;
  std::memcpy(&pair, weights, sizeof(pair));
  return _mm256_set1_epi32(pair);
}

/// Weights j to j + 3 in every 64-bit element.
__m256i four_weights(const std::int16_t* weights) {
  std::int64_t four = 0;
  std::memcpy(&four, weights, sizeof(four));
  return _mm256_set1_epi64x(four);
}

__m256i join_planes(__m256i high, __m256i low) {
  return _mm256_add_epi32(_mm256_slli_epi32(high, kLowPlaneBits), low);
}

/// Four pixels RGBRGBRGBRGB, in both halves, to 16-bit pairs (taps 0 and 1, taps 2 and 3):
/// R01 R23 G01 G23 | B01 B23 - -
__m256i pairs_by_channel(__m256i pixels) {
  constexpr char z = -128;  // gives a zero byte
  const __m256i order = _mm256_setr_epi8(0, z, 3, z, 6, z, 9, z, 1, z, 4, z, 7, z, 10, z,  //
                                         2, z, 5, z, 8, z, 11, z, z, z, z, z, z, z, z, z);
  return _mm256_shuffle_epi8(pixels, order);
}

/// Sums of one output pixel as R R G G | B B - -: each channel in two parts.
template <bool kTwoPlanes>
__m256i filter_pixel(const AxisView& axis, const std::uint8_t* row, std::int64_t x) {
  const std::uint8_t* src = row + std::int64_t{axis.first[x]} * kChannels;
  const std::int64_t begin = x * axis.taps;
  __m256i sum = _mm256_setzero_si256();
  __m256i low_sum = _mm256_setzero_si256();
  for (std::int64_t j = 0; j < axis.taps; j += kTapGroup, src += kTapGroup * kChannels) {
    const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src));
    const __m256i pairs = pairs_by_channel(_mm256_broadcastsi128_si256(four));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, four_weights(axis.planes[0] + begin + j)));
    if constexpr (kTwoPlanes)
      low_sum = _mm256_add_epi32(
          low_sum, _mm256_madd_epi16(pairs, four_weights(axis.planes[1] + begin + j)));
  }
  return kTwoPlanes ? join_planes(sum, low_sum) : sum;
}

/// Adds the two parts of each channel of two pixels and rounds: R G R G | B - B -
__m256i round_pixels(__m256i a, __m256i b, __m256i half, __m128i shift) {
  return _mm256_sra_epi32(_mm256_add_epi32(_mm256_hadd_epi32(a, b), half), shift);
}

template <bool kTwoPlanes>
void filter_row(const AxisView& axis, const std::uint8_t* src, std::uint8_t* dst) {
  const __m256i half = _mm256_set1_epi32(1 << (axis.shift - 1));
  const __m128i shift = _mm_cvtsi32_si128(axis.shift);
  const __m128i interleave =
      _mm_setr_epi8(0, 1, 8, 2, 3, 10, 4, 5, 12, 6, 7, 14, -128, -128, -128, -128);
  for (std::int64_t x = 0; x < axis.out_size; x += kTapGroup) {
    const __m256i first_two = round_pixels(filter_pixel<kTwoPlanes>(axis, src, x),
                                           filter_pixel<kTwoPlanes>(axis, src, x + 1), half, shift);
    const __m256i last_two = round_pixels(filter_pixel<kTwoPlanes>(axis, src, x + 2),
                                          filter_pixel<kTwoPlanes>(axis, src, x + 3), half, shift);
    const __m256i words = _mm256_packs_epi32(first_two, last_two);
    const __m256i bytes = _mm256_packus_epi16(words, words);  // RGRGRGRG x2 | B-B-B-B- x2
    const __m256i joined = _mm256_permute4x64_epi64(bytes, 0b1000);
    const __m128i pixels = _mm_shuffle_epi8(_mm256_castsi256_si128(joined), interleave);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + x * kChannels), pixels);
  }
}

void horizontal(const HorizontalArgs& args) {
  if (args.axis->planes[1] != nullptr)
    filter_row<true>(*args.axis, args.src[0], args.dst[0]);
  else
    filter_row<false>(*args.axis, args.src[0], args.dst[0]);
}

/// Sums of 32 neighbouring bytes, in the order in which unpacking leaves them.
struct BlockSums {
  __m256i part[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                     _mm256_setzero_si256()};

  /// `pairs`: bytes of two source rows, interleaved and widened to 16 bits.
  void add(const __m256i (&pairs)[4], __m256i weights) {
    for (int i = 0; i < 4; ++i)
      part[i] = _mm256_add_epi32(part[i], _mm256_madd_epi16(pairs[i], weights));
  }
};

template <bool kTwoPlanes>
void filter_block(const VerticalArgs& args, std::size_t offset) {
  const AxisView& axis = *args.axis;
  const std::int64_t begin = args.row * axis.taps;
  const __m256i zero = _mm256_setzero_si256();
  BlockSums sums;
  BlockSums low_sums;
  for (std::int32_t j = 0; j < axis.count[args.row]; j += 2) {
    const __m256i even = load(args.src[j] + offset);
    const __m256i odd = load(args.src[j + 1] + offset);
    const __m256i low = _mm256_unpacklo_epi8(even, odd);
    const __m256i high = _mm256_unpackhi_epi8(even, odd);
    const __m256i pairs[4] = {_mm256_unpacklo_epi8(low, zero), _mm256_unpackhi_epi8(low, zero),
                              _mm256_unpacklo_epi8(high, zero), _mm256_unpackhi_epi8(high, zero)};
    sums.add(pairs, pair_of_weights(axis.planes[0] + begin + j));
    if constexpr (kTwoPlanes) low_sums.add(pairs, pair_of_weights(axis.planes[1] + begin + j));
  }
  const __m256i half = _mm256_set1_epi32(1 << (axis.shift - 1));
  const __m128i shift = _mm_cvtsi32_si128(axis.shift);
  for (int i = 0; i < 4; ++i) {
    if constexpr (kTwoPlanes) sums.part[i] = join_planes(sums.part[i], low_sums.part[i]);
    sums.part[i] = _mm256_sra_epi32(_mm256_add_epi32(sums.part[i], half), shift);
  }
  const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(sums.part[0], sums.part[1]),
                                            _mm256_packs_epi32(sums.part[2], sums.part[3]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(args.dst + offset), bytes);
}

struct Block {
  static constexpr std::size_t kBytes = kBlockBytes;
  template <bool kTwoPlanes>
  static void filter(const VerticalArgs& args, std::size_t offset) {
    filter_block<kTwoPlanes>(args, offset);
  }
};

}  // namespace

const ResizeLeaf kAvx2Leaf = {
    .rows_at_once = 1, .horizontal = horizontal, .vertical = filter_row_in_blocks<Block>};

}  // namespace fovea::media
