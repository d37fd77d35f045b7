// A NAL unit has a head of 2 bytes, whose bits 1 to 6 are its type. Types below 32 are slices,
// whose first bit says whether they begin a picture; 33 has the parameters of a sequence: numbers
// of bits, and such as are coded as n zeros, a one, and n bits. Where the contents have two zero
// bytes before one of at most 3, the byte 3 stands between them. Source: ITU-T
// H.265, 7.3.1.1, 7.3.1.2, 7.3.2.2.1, 7.3.3 and 9.2.
#include "media/plugins/hevc_units.h"

#include <algorithm>
#include <array>

#include "core/check.h"

namespace fovea::media {
namespace {

constexpr std::size_t kHeadBytes = 2;
constexpr int kFirstParameters = 32;
constexpr int kSequence = 33;

class BitReader {
 public:
  BitReader(Bytes bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  std::uint32_t bit() {
    if (bits_left_ == 0) next_byte();
    return byte_ >> --bits_left_ & 1U;
  }

  std::uint32_t bits(int count) {
    std::uint32_t value = 0;
    for (; count > 0; --count) value = value << 1 | bit();
    return value;
  }

  void skip(int count) {
    for (; count > 0; --count) (void)bit();
  }

  /// ue(v), below 2^31. @throws also for more.
  std::int64_t number() {
    int zeros = 0;
    while (bit() == 0) {
      ++zeros;
      FOVEA_CHECK(zeros < 31, kCorruptData, name_, ": HEVC parameter of more than 31 bits");
    }
    return (std::int64_t{1} << zeros) - 1 + bits(zeros);
  }

 private:
  void next_byte() {
    if (num_zeros_ >= 2 && at_ < bytes_.size() && bytes_[at_] == 3) {
      ++at_;
      num_zeros_ = 0;
    }
    FOVEA_CHECK(at_ < bytes_.size(), kCorruptData, name_, ": HEVC parameters that end too early");
    byte_ = bytes_[at_++];
    num_zeros_ = byte_ == 0 ? num_zeros_ + 1 : 0;
    bits_left_ = 8;
  }

  Bytes bytes_;
  std::string_view name_;
  std::size_t at_ = 0;
  int num_zeros_ = 0;
  int bits_left_ = 0;
  std::uint32_t byte_ = 0;
};

/// profile_tier_level() for so many layers beside the first.
void skip_profiles(BitReader& reader, std::size_t num_layers) {
  constexpr int kProfileBits = 88;
  constexpr int kLevelBits = 8;
  constexpr std::size_t kMostLayers = 8;
  reader.skip(kProfileBits + kLevelBits);
  std::array<int, kMostLayers> layer_bits{};
  for (std::size_t i = 0; i < num_layers; ++i) {
    if (reader.bit() != 0) layer_bits[i] += kProfileBits;
    if (reader.bit() != 0) layer_bits[i] += kLevelBits;
  }
  if (num_layers > 0) reader.skip(2 * static_cast<int>(kMostLayers - num_layers));
  for (const int bits : layer_bits) reader.skip(bits);
}

/// Sides of a picture, whole blocks, and bits of its samples beyond 8.
struct PictureSize {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t more_bits = 0;
};

PictureSize read_size(BitReader& reader) {
  reader.skip(4);  // number of the video's parameters
  const std::size_t num_layers = reader.bits(3);
  reader.skip(1);
  skip_profiles(reader, num_layers);
  (void)reader.number();  // number of these parameters
  constexpr std::int64_t kFullChroma = 3;
  if (reader.number() == kFullChroma) reader.skip(1);
  const std::int64_t width = reader.number();
  const std::int64_t height = reader.number();
  if (reader.bit() != 0)  // what is cut off the picture
    for (int side = 0; side < 4; ++side) (void)reader.number();
  const std::int64_t more_bits = reader.number();
  const std::int64_t more_chroma_bits = reader.number();
  (void)reader.number();  // bits of a counter
  const bool has_each_layer = reader.bit() != 0;
  for (std::size_t left = has_each_layer ? num_layers + 1 : 1; left > 0; --left)
    for (int limit = 0; limit < 3; ++limit) (void)reader.number();
  return {width, height, std::max(more_bits, more_chroma_bits)};
}

/// The sizes of blocks, which follow. libde265 refuses the same, but tells stderr why.
void check_blocks(BitReader& reader, const PictureSize& size, std::string_view name) {
  constexpr std::int64_t kLargest = 6;
  constexpr std::int64_t kLargestTransform = 5;
  const std::int64_t least = 3 + reader.number();
  const std::int64_t most = least + reader.number();
  const std::int64_t least_transform = 2 + reader.number();
  const std::int64_t most_transform = least_transform + reader.number();
  const std::int64_t depth = std::max(reader.number(), reader.number());
  FOVEA_CHECK(most <= kLargest && least_transform <= least &&
                  most_transform <= std::min(most, kLargestTransform) &&
                  depth <= most - least_transform && size.width % (1 << least) == 0 &&
                  size.height % (1 << least) == 0,
              kCorruptData, name, ": HEVC blocks that do not fit into each other or the image");
}

PictureSize read_sequence(BitReader reader, std::string_view name) {
  const PictureSize size = read_size(reader);
  check_blocks(reader, size, name);
  return size;
}

}  // namespace

void HevcUnits::add(Bytes unit, std::string_view name) {
  if (unit.size() <= kHeadBytes) return;
  const int type = unit[0] >> 1 & 63;
  const Bytes contents = unit.subspan(kHeadBytes);
  if (type == kSequence) {
    const PictureSize size = read_sequence({contents, name}, name);
    picture_pixels_ = std::max(picture_pixels_, size.width * size.height);  // each below 2^31
    num_bits_ = std::max(num_bits_, 8 + size.more_bits);
  }
  if (type < kFirstParameters && (contents[0] & 0x80) != 0) ++num_pictures_;
}

}  // namespace fovea::media
