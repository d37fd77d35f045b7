// Magic bytes: the supported formats first, then other common formats, so that the message can name
// them.
#include "media/decode_image.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/check.h"
#include "media/bytes.h"

namespace fovea::media {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kFormats = "JPEG, PNG, WebP, BMP, GIF, TIFF, AVIF or HEIC";

struct Signature {
  std::size_t offset;
  std::string_view magic;
  std::string_view format;
};

// ISO base media files say "ftyp" at byte 4 and their brand at byte 8.
constexpr std::array kForeign = {
    Signature{0, "MM\0+"sv, "BigTIFF with the highest byte first"sv},
    Signature{4, "ftyp"sv, "video (ISO media)"sv},
    Signature{0, "\xFF\x0A"sv, "JPEG XL"sv},
    Signature{0, "\0\0\0\x0CJXL "sv, "JPEG XL"sv},
    Signature{0, "\0\0\0\x0CjP  "sv, "JPEG 2000"sv},
    Signature{0, "%PDF-"sv, "PDF"sv},
    Signature{0, "<svg"sv, "SVG"sv},
};

/// The bytes in which a signature stands.
std::string_view head_of(Bytes file) {
  constexpr std::size_t kLongestMagic = 12;
  return text_of(file.first(std::min(file.size(), kLongestMagic)));
}

bool stands_in(const Signature& signature, std::string_view head) {
  return head.size() > signature.offset &&
         head.substr(signature.offset).starts_with(signature.magic);
}

/// An ISO base media file begins with a box of brands: length 4, "ftyp", the major one, a version,
/// and others that the file agrees with. HEIF files of any codec may have the major brands mif1 and
/// msf1; those that do not agree with AVIF are taken for HEIC.
std::optional<ImageFormat> format_of_brands(Bytes file) {
  constexpr std::size_t kMajor = 8;
  constexpr std::size_t kOthers = 16;
  constexpr std::size_t kMostBytes = 1024;
  if (file.size() < kMajor + 4 || text_of(file.subspan(4, 4)) != "ftyp") return std::nullopt;
  const auto brand_at = [&](std::size_t at) { return text_of(file.subspan(at, 4)); };
  const auto is_avif = [](std::string_view brand) { return brand == "avif" || brand == "avis"; };
  const std::string_view major = brand_at(kMajor);
  if (is_avif(major)) return ImageFormat::kAvif;
  constexpr std::array kHevcBrands{"heic"sv, "heix"sv, "heim"sv, "heis"sv,
                                   "hevc"sv, "hevx"sv, "hevm"sv, "hevs"sv};
  if (std::ranges::find(kHevcBrands, major) != kHevcBrands.end()) return ImageFormat::kHeic;
  if (major != "mif1" && major != "msf1") return std::nullopt;
  const std::size_t end = std::min({std::size_t{big_endian_u32(file)}, file.size(), kMostBytes});
  for (std::size_t at = kOthers; at + 4 <= end; at += 4)
    if (is_avif(brand_at(at))) return ImageFormat::kAvif;
  return ImageFormat::kHeic;
}

std::optional<ImageFormat> supported_format(std::string_view head) {
  if (head.starts_with("\xFF\xD8\xFF"sv)) return ImageFormat::kJpeg;
  if (head.starts_with("\x89PNG\r\n\x1A\n"sv)) return ImageFormat::kPng;
  if (head.starts_with("RIFF"sv) && head.substr(4).substr(0, 8).ends_with("WEBP"sv))
    return ImageFormat::kWebp;
  if (head.starts_with("BM"sv)) return ImageFormat::kBmp;
  if (head.starts_with("GIF87a"sv) || head.starts_with("GIF89a"sv)) return ImageFormat::kGif;
  for (const std::string_view magic : {"II*\0"sv, "MM\0*"sv, "II+\0"sv})
    if (head.starts_with(magic)) return ImageFormat::kTiff;
  return std::nullopt;
}

}  // namespace

std::optional<ImageFormat> find_image_format(std::span<const std::uint8_t> bytes) {
  const std::optional<ImageFormat> format = supported_format(head_of(bytes));
  return format ? format : format_of_brands(bytes);
}

ImageFormat detect_image_format(std::span<const std::uint8_t> bytes, std::string_view name) {
  FOVEA_CHECK(!bytes.empty(), kCorruptData, name, ": expected an image, got an empty file");
  if (const std::optional<ImageFormat> format = find_image_format(bytes)) return *format;
  const std::string_view head = head_of(bytes);
  for (const Signature& foreign : kForeign)
    FOVEA_CHECK(!stands_in(foreign, head), kUnsupported, name, ": ", foreign.format,
                " is not supported, expected ", kFormats);
  throw Error(ErrorCode::kUnsupported,
              cat(name, ": not an image: its first bytes are not those of ", kFormats));
}

}  // namespace fovea::media
