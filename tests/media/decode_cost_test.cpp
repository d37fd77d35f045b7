// What decoding costs is known from the header: images of every kind, decoded in that much memory.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <turbojpeg.h>
#include <unistd.h>
#include <webp/encode.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "media/plugins/image_plugins.h"
#include "media/test_images.h"
#include "support/expect_error.h"

namespace fovea::media {
namespace {

using test::Bytes;
using test::expect_error;
using test::PngColor;

constexpr int kWidth = 1200;
constexpr int kHeight = 900;

Bytes samples(int channels) {
  return test::make_samples<std::uint8_t>(kWidth, kHeight, channels, [](int x, int y, int c) {
    return c == 3 ? x % 256 : (x / 8 + y / 16 * c) % 256;
  });
}

Bytes jpeg(bool progressive, int subsampling) {
  return test::encode_jpeg(
      {.width = kWidth, .height = kHeight, .progressive = progressive, .subsampling = subsampling},
      samples(3));
}

Bytes cmyk_jpeg(bool progressive) {
  return test::encode_jpeg(
      {.width = kWidth, .height = kHeight, .progressive = progressive, .cmyk = true}, samples(4));
}

Bytes png(PngColor color, int bits, bool interlaced) {
  const test::PngSpec spec{.width = kWidth,
                           .height = kHeight,
                           .color = color,
                           .bits = bits,
                           .interlaced = interlaced,
                           .palette = Bytes(color == PngColor::kPalette ? 768 : 0),
                           .transparent = color == PngColor::kPalette};
  const auto num_samples =
      std::size_t{kWidth} * kHeight * static_cast<std::size_t>(test::num_channels(color));
  return test::encode_png(spec, std::vector<std::uint16_t>(num_samples, 7));
}

Bytes lossy_webp(bool opaque) {
  const Bytes rgba = samples(4);
  std::uint8_t* data = nullptr;
  const std::size_t size =
      opaque ? WebPEncodeRGB(samples(3).data(), kWidth, kHeight, kWidth * 3, 50, &data)
             : WebPEncodeRGBA(rgba.data(), kWidth, kHeight, kWidth * 4, 50, &data);
  Bytes file(data, data + size);
  WebPFree(data);
  return file;
}

Bytes lossless_webp(bool opaque) {
  Bytes rgba = samples(4);
  for (std::size_t i = 3; opaque && i < rgba.size(); i += 4) rgba[i] = 255;
  return test::encode_lossless_webp(kWidth, kHeight, rgba);
}

Bytes bmp_of_rows() {
  Bytes file{'B', 'M', 0, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0};
  for (const int side : {kWidth, kHeight})
    for (int shift = 0; shift < 32; shift += 8)
      file.push_back(static_cast<std::uint8_t>(side >> shift));
  file.insert(file.end(), {1, 0, 24, 0});
  file.resize(54 + static_cast<std::size_t>((kWidth * 3 + 3) / 4 * 4 * kHeight));
  return file;
}

/// 3000 x 2000 pixels of one colour, 4:4:4 with alpha.
Bytes flat_avif() {
  return read_file(FOVEA_TEST_SOURCE_DIR "/tests/media/images/flat_alpha.avif", 1 << 16);
}

Bytes flat_heic() {
  return read_file(FOVEA_TEST_SOURCE_DIR "/tests/media/images/flat_alpha.heic", 1 << 16);
}

/// Address space that a process has in use.
std::size_t mapped_bytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Memory that malloc holds would be used without being counted.
void use_up_freed_memory() {
  constexpr std::size_t kPieceBytes = 32 << 10;
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(2 * kPieceBytes));  // more is asked of the system
  for (int i = 0; i < 8192 && mallinfo2().fordblks > 4 * kPieceBytes; ++i)
    if (std::malloc(kPieceBytes) == nullptr) return;
}

enum class Outcome : std::uint8_t { kDecoded, kOutOfMemory, kOther };

/// Decodes in a process that cannot have more than `bytes` of memory in addition.
Outcome decode_within(const Bytes& file, std::size_t bytes) {
  constexpr std::size_t kHeapStepBytes = 256 << 10;  // what malloc asks for beyond what it needs
  const pid_t child = fork();
  if (child == 0) {
    use_up_freed_memory();
    const rlim_t most = mapped_bytes() + bytes + kHeapStepBytes;
    const rlimit limit{most, most};
    Outcome outcome = setrlimit(RLIMIT_AS, &limit) == 0 ? Outcome::kDecoded : Outcome::kOther;
    try {
      (void)decode_image(file, "x", {});
    } catch (const Error& error) {
      outcome = error.code() == ErrorCode::kOutOfMemory ? Outcome::kOutOfMemory : Outcome::kOther;
    }
    _exit(static_cast<int>(outcome));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? static_cast<Outcome>(WEXITSTATUS(status)) : Outcome::kOther;
}

/// Sanitizers need much address space of their own. GCC tells of them by macros, clang by features.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FOVEA_TEST_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FOVEA_TEST_SANITIZED
#endif
constexpr bool limits_memory() noexcept {
#if defined(FOVEA_TEST_SANITIZED)
  return false;
#else
  return true;
#endif
}

struct Kind {
  const char* name;
  std::function<Bytes()> make;
};

class DecodeCost : public ::testing::TestWithParam<Kind> {};

TEST_P(DecodeCost, IsAtMostWhatTheHeaderSays) {
  if (!limits_memory()) GTEST_SKIP() << "a sanitizer needs the address space";
  const Bytes file = GetParam().make();
  for (const ImagePluginStatus& plugin : image_plugin_status())
    if (std::string_view(GetParam().name).starts_with(plugin.format) &&
        plugin.text.starts_with("not used"))
      GTEST_SKIP() << plugin.text;
  const std::size_t said = probe_image(file, "x", {}).decode_bytes;
  EXPECT_EQ(decode_within(file, said), Outcome::kDecoded) << said;
  EXPECT_EQ(decode_within(file, said / 3), Outcome::kOutOfMemory) << "out of proportion";
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DecodeCost,
    ::testing::Values(
        Kind{"JpegRgb", [] { return jpeg(false, TJSAMP_444); }},
        Kind{"JpegSubsampled", [] { return jpeg(false, TJSAMP_420); }},
        Kind{"JpegProgressive", [] { return jpeg(true, TJSAMP_444); }},
        Kind{"JpegProgressiveSubsampled", [] { return jpeg(true, TJSAMP_420); }},
        Kind{"JpegProgressiveGrey", [] { return jpeg(true, TJSAMP_GRAY); }},
        Kind{"JpegCmyk", [] { return cmyk_jpeg(false); }},
        Kind{"JpegProgressiveCmyk", [] { return cmyk_jpeg(true); }},
        Kind{"JpegTurned",
             [] {
               return test::with_jpeg_exif(jpeg(false, TJSAMP_420), test::exif_block(6, true));
             }},
        Kind{"PngRgb", [] { return png(PngColor::kRgb, 8, false); }},
        Kind{"PngRgba16Interlaced", [] { return png(PngColor::kRgba, 16, true); }},
        Kind{"PngRgbaInterlaced", [] { return png(PngColor::kRgba, 8, true); }},
        Kind{"PngPalette", [] { return png(PngColor::kPalette, 8, false); }},
        Kind{"PngGrey16", [] { return png(PngColor::kGrey, 16, false); }}, Kind{"Bmp", bmp_of_rows},
        Kind{"avifWithAlpha", flat_avif}, Kind{"heicWithAlpha", flat_heic},
        Kind{"WebpLossy", [] { return lossy_webp(true); }},
        Kind{"WebpLossyWithAlpha", [] { return lossy_webp(false); }},
        Kind{"WebpLossless", [] { return lossless_webp(true); }},
        Kind{"WebpLosslessWithAlpha", [] { return lossless_webp(false); }},
        Kind{"WebpAnimation",
             [] {
               const Bytes frame = test::encode_lossless_webp(64, 64, Bytes(64 * 64 * 4, 100));
               return test::webp_animation(kWidth, kHeight, 2, 2, 64, 64, frame, true);
             }}),
    [](const auto& kind) { return std::string(kind.param.name); });

TEST(DecodeBytes, AreCheckedBeforeMemoryIsTaken) {
  for (const Bytes& file : {jpeg(true, TJSAMP_420), png(PngColor::kPalette, 8, false)}) {
    MediaOptions options;
    options.limits.max_item_bytes = probe_image(file, "x", {}).decode_bytes;
    EXPECT_NO_THROW((void)decode_image(file, "x", options));
    const std::size_t needed = options.limits.max_item_bytes--;
    const std::string refusal = cat("x: expected an image that takes at most ", needed - 1,
                                    " bytes to decode, got ", needed);
    const auto expect_refused = [&](const auto& read) {
      expect_error(ErrorCode::kInvalidArgument, refusal, read);
    };
    expect_refused([&] { (void)probe_image(file, "x", options); });
    expect_refused([&] { (void)decode_image(file, "x", options); });
  }
}

}  // namespace
}  // namespace fovea::media
