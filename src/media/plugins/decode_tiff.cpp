// TIFF by libtiff: the first image of a file, strip by strip or tile by tile. Pillow reads files
// without compression by code of its own, with the same pixels. A strip or tile is decoded at one
// go, into memory that the header has named.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/formats/image_writer.h"
#include "media/plugins/image_plugin_abi.h"
#include "media/plugins/tiff_file.h"
#include "media/plugins/tiff_layout.h"
#include "media/plugins/tiff_rows.h"
#include "media/profile.h"
#include "media/rgb_convert.h"

namespace fovea::media {
namespace {

/// Most bytes that libtiff may allocate at once to read a directory: a table of offsets has 8 for 2
/// of the file.
std::size_t directory_bytes(std::size_t file_bytes) {
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  return kLeast + 4 * file_bytes;
}

/// One strip or tile of the image.
struct TiffChunk {
  std::int64_t x_px;
  std::int64_t y_px;
  std::int64_t width_px;   ///< inside of the image
  std::int64_t height_px;  ///< likewise
};

class TiffDecoder {
 public:
  TiffDecoder(const TiffFile& file, const TiffLayout& layout, const MediaOptions& options,
              std::vector<std::uint8_t> memory)
      : file_(file),
        layout_(layout),
        background_(composites(options) ? options.background : nullptr),
        chunk_(layout.chunk_bytes),
        plane_(layout.in_planes ? layout.chunk_bytes : 0),
        rgba_(static_cast<std::size_t>(layout.chunk_width_px) * 4),
        rgb_(static_cast<std::size_t>(layout.chunk_width_px) * 3),
        writer_(layout.width_px, layout.height_px, layout.orientation, std::move(memory)) {
    if (layout.in_planes) chunk_.resize(layout.chunk_bytes * layout.num_samples);
  }

  Image decode() {
    for (std::int64_t y = 0; y < layout_.height_px; y += layout_.chunk_height_px)
      for (std::int64_t x = 0; x < layout_.width_px; x += layout_.chunk_width_px) {
        check_interrupt();
        const TiffChunk chunk{x, y, std::min(layout_.chunk_width_px, layout_.width_px - x),
                              std::min(layout_.chunk_height_px, layout_.height_px - y)};
        if (layout_.color == TiffColor::kByLibrary)
          read_rgba(chunk);
        else
          read_samples(chunk);
        store(chunk);
      }
    return writer_.take();
  }

 private:
  [[nodiscard]] bool composites(const MediaOptions& options) const {
    const Compositing compositing = rules_of(options.profile).compositing;
    if (layout_.alpha == TiffAlpha::kNone) return false;
    return layout_.alpha == TiffAlpha::kOfGrey ? compositing == Compositing::kEvery
                                               : compositing != Compositing::kNone;
  }

  void read_samples(const TiffChunk& chunk) {
    if (!layout_.in_planes) return read_plane(chunk, 0, chunk_.data());
    const std::size_t sample_bytes = layout_.bits / 8;
    const std::size_t count = layout_.chunk_bytes / sample_bytes;
    for (std::size_t plane = 0; plane < layout_.num_samples; ++plane) {
      read_plane(chunk, plane, plane_.data());
      for (std::size_t i = 0; i < count; ++i)
        std::copy_n(plane_.data() + i * sample_bytes, sample_bytes,
                    chunk_.data() + (i * layout_.num_samples + plane) * sample_bytes);
    }
  }

  void read_plane(const TiffChunk& chunk, std::size_t plane, std::uint8_t* out) {
    TIFF* const tiff = file_.get();
    const auto x = static_cast<std::uint32_t>(chunk.x_px);
    const auto y = static_cast<std::uint32_t>(chunk.y_px);
    const auto sample = static_cast<std::uint16_t>(plane);
    const tmsize_t read =
        layout_.tiled ? TIFFReadTile(tiff, out, x, y, 0, sample)
                      : TIFFReadEncodedStrip(tiff, TIFFComputeStrip(tiff, y, sample), out, -1);
    file_.check(read >= 0);
  }

  /// Into rows of RGBA from the top down.
  void read_rgba(const TiffChunk& chunk) {
    TIFF* const tiff = file_.get();
    auto* const pixels = reinterpret_cast<std::uint32_t*>(chunk_.data());
    const auto x = static_cast<std::uint32_t>(chunk.x_px);
    const auto y = static_cast<std::uint32_t>(chunk.y_px);
    if (layout_.tiled) {
      file_.check(TIFFReadRGBATileExt(tiff, x, y, pixels, 1) == 1);
      const std::size_t row_bytes = static_cast<std::size_t>(layout_.chunk_width_px) * 4;
      for (std::size_t top = 0, bottom = chunk_.size() - row_bytes; top < bottom;
           top += row_bytes, bottom -= row_bytes)
        std::swap_ranges(&chunk_[top], &chunk_[top] + row_bytes, &chunk_[bottom]);
      return;
    }
    std::array<char, 1024> reason{};
    TIFFRGBAImage image;
    file_.check(TIFFRGBAImageOK(tiff, reason.data()) == 1 &&
                TIFFRGBAImageBegin(&image, tiff, 1, reason.data()) == 1);
    image.orientation = ORIENTATION_TOPLEFT;  // the writer turns rows, and so the library must not
    image.req_orientation = ORIENTATION_TOPLEFT;
    image.row_offset = static_cast<int>(y);
    const int status =
        TIFFRGBAImageGet(&image, pixels, image.width, static_cast<std::uint32_t>(chunk.height_px));
    TIFFRGBAImageEnd(&image);
    file_.check(status == 1);
  }

  void store(const TiffChunk& chunk) {
    const auto width = static_cast<std::size_t>(chunk.width_px);
    const bool is_rgba = layout_.color == TiffColor::kByLibrary;
    const std::size_t row_bytes = is_rgba ? static_cast<std::size_t>(layout_.chunk_width_px) * 4
                                          : layout_.row_bytes() * planes();
    for (std::int64_t y = 0; y < chunk.height_px; ++y) {
      const std::uint8_t* row = chunk_.data() + static_cast<std::size_t>(y) * row_bytes;
      if (!is_rgba) {
        tiff_row_to_rgba(layout_, row, width, rgba_.data());
        row = rgba_.data();
      }
      if (background_ != nullptr)
        composite_rgba(row, width, background_, rgb_.data());
      else
        drop_alpha(row, width, rgb_.data());
      writer_.store(chunk.y_px + y, chunk.x_px, 1, chunk.width_px, rgb_.data());
    }
  }

  [[nodiscard]] std::size_t planes() const { return layout_.in_planes ? layout_.num_samples : 1; }

  const TiffFile& file_;
  const TiffLayout& layout_;
  const std::uint8_t* background_;   ///< null: alpha is dropped
  std::vector<std::uint8_t> chunk_;  ///< interleaved samples, or RGBA
  std::vector<std::uint8_t> plane_;
  std::vector<std::uint8_t> rgba_;  ///< a row
  std::vector<std::uint8_t> rgb_;   ///< likewise
  ImageWriter writer_;
};

/// Memory of a strip or tile, the library's own included: a progressive JPEG keeps 2 bytes per
/// sample, the others some tables.
std::size_t chunk_bytes(const TiffFile& file, const TiffLayout& layout) {
  const std::size_t planes = layout.in_planes ? layout.num_samples + 1 : 1;
  const auto pixels = static_cast<std::size_t>(layout.chunk_width_px) *
                      static_cast<std::size_t>(layout.chunk_height_px);
  const bool is_jpeg =
      file.field<std::uint16_t>(TIFFTAG_COMPRESSION, COMPRESSION_NONE) == COMPRESSION_JPEG;
  const bool is_converted = layout.color == TiffColor::kByLibrary;
  return layout.chunk_bytes * planes + static_cast<std::size_t>(layout.chunk_width_px) * 7 +
         (is_jpeg ? pixels * layout.num_samples * 2 : 0) +
         (is_converted ? pixels * layout.num_samples : 0);
}

ImageHeader read_tiff_header(const EncodedImage& source, const MediaLimits&) {
  const TiffFile file(source.bytes, source.name, directory_bytes(source.bytes.size()));
  const TiffLayout layout = read_tiff_layout(file);
  ImageHeader header{.info = {.format = ImageFormat::kTiff,
                              .width_px = layout.width_px,
                              .height_px = layout.height_px},
                     .orientation = layout.orientation,
                     .turned_by_reader = true};
  if (layout.chunk_width_px == 0) return header;  // without pixels
  constexpr std::size_t kBytesPerChunk = 16;      // an offset and a length
  header.info.decode_bytes =
      ImageWriter::memory_bytes(layout.width_px, layout.height_px) + chunk_bytes(file, layout) +
      static_cast<std::size_t>(layout.num_chunks()) * kBytesPerChunk + kDecoderBytes;
  return header;
}

Image decode_tiff(const EncodedImage& source, const ImageHeader& header,
                  const MediaOptions& options, std::vector<std::uint8_t> memory,
                  const Interrupt* interrupt) {
  const InterruptScope scope(interrupt);
  const TiffFile file(source.bytes, source.name,
                      std::max(header.info.decode_bytes, directory_bytes(source.bytes.size())));
  const TiffLayout layout = read_tiff_layout(file);
  return TiffDecoder(file, layout, options, std::move(memory)).decode();
}

[[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr PluginNote kNote{
    .build = image_plugin_build("tiff")};

}  // namespace
}  // namespace fovea::media

extern "C" __attribute__((visibility("default"))) const fovea::media::ImagePlugin*
fovea_image_plugin() {
  static const std::string library = [] {
    const std::string version = TIFFGetVersion();  // "LIBTIFF, Version 4.5.0", and who wrote it
    return version.substr(0, version.find('\n'));
  }();
  static const fovea::media::ImagePlugin plugin{.library = library.c_str(),
                                                .read_header = &fovea::media::read_tiff_header,
                                                .decode = &fovea::media::decode_tiff};
  return &plugin;
}
