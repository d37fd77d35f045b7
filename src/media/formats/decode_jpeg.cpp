// JPEG, decoded by libjpeg-turbo with its defaults (accurate integer DCT, fancy upsampling), which
// are those of Pillow. Its own interface is used, not TurboJPEG's, because that one decodes whole
// images and cannot be interrupted.
// Damage that libjpeg warns of, lost restart markers for example, it mends, as for Pillow. A file
// is truncated if the decoder wants bytes behind its end before it has all rows.
//   APP1 (E1): "Exif\0\0" and a TIFF block, or "http://ns.adobe.com/xap/1.0/\0" and an XMP packet
//
// libjpeg reports errors by longjmp, which skips destructors. Code that it can leave in this way is
// a function object that owns nothing, run by JpegReader::run().
#include <cstddef>
#include <cstdio>
// libjpeg's header needs the two above.
#include <jpeglib.h>

#include <csetjmp>
#include <new>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/bytes.h"
#include "media/formats/decoders.h"
#include "media/formats/image_writer.h"
#include "media/formats/jpeg_segments.h"
#include "media/reduction.h"
#include "media/rgb_convert.h"

namespace fovea::media {
namespace {

using std::string_view_literals::operator""sv;

/// From the metadata in front of the pixels: the EXIF segments together and the last XMP packet.
Orientation find_orientation(Bytes file) {
  constexpr std::string_view kExif = "Exif\0\0"sv;
  constexpr std::string_view kXmp = "http://ns.adobe.com/xap/1.0/\0"sv;
  std::vector<std::uint8_t> exif;
  Bytes xmp;
  JpegSegments segments(file);
  while (const std::optional<JpegSegment> segment = segments.next()) {
    if (segment->marker == JpegSegments::kStartOfScan) break;
    if (segment->marker != JpegSegments::kApp1) continue;
    const Bytes payload = segment->payload;
    if (text_of(payload).starts_with(kExif))
      exif.insert(exif.end(), payload.begin() + kExif.size(), payload.end());
    else if (text_of(payload).starts_with(kXmp))
      xmp = payload.subspan(kXmp.size());
  }
  return read_orientation(exif, xmp);
}

/// The object that libjpeg reports errors to: it is handed the first member and hands it back.
struct ErrorReport {
  jpeg_error_mgr manager;
  std::jmp_buf before_calls;
  char reason[JMSG_LENGTH_MAX];
  bool is_truncated;
};

[[noreturn]] void keep_reason_and_leave(j_common_ptr codec) {
  auto& report = *reinterpret_cast<ErrorReport*>(codec->err);
  codec->err->format_message(codec, report.reason);
  std::longjmp(report.before_calls, 1);
}

/// Called when the decoder has read all of the file.
boolean leave_truncated(j_decompress_ptr codec) {
  auto& report = *reinterpret_cast<ErrorReport*>(codec->err);
  report.is_truncated = true;
  std::longjmp(report.before_calls, 1);
}

void print_nothing(j_common_ptr) {}

/// The decoder of libjpeg for one file.
class JpegReader {
 public:
  explicit JpegReader(std::string_view name) : name_(name) {
    codec_.err = jpeg_std_error(&report_.manager);
    codec_.err->error_exit = keep_reason_and_leave;
    codec_.err->output_message = print_nothing;
  }
  ~JpegReader() { jpeg_destroy_decompress(&codec_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  /// Reads up to the pixels, or all coefficients of a file of several scans. Call once, first.
  /// @param reduction of the sides: blocks of 8 x 8 coefficients become 4 x 4, 2 x 2 or 1 x 1
  /// pixels.
  void start(Bytes file, int reduction) {
    run([&] {
      jpeg_create_decompress(&codec_);
      jpeg_mem_src(&codec_, file.data(), static_cast<unsigned long>(file.size()));  // NOLINT
      insert_end_of_image_ = codec_.src->fill_input_buffer;
      codec_.src->fill_input_buffer = leave_truncated;
      (void)jpeg_read_header(&codec_, TRUE);
      codec_.out_color_space = is_cmyk() ? JCS_CMYK : JCS_RGB;
      codec_.scale_num = 1;
      codec_.scale_denom = static_cast<unsigned>(reduction);
      codec_.buffered_image = jpeg_has_multiple_scans(&codec_);
      (void)jpeg_start_decompress(&codec_);
      if (codec_.buffered_image == FALSE) return;
      while (jpeg_input_complete(&codec_) == FALSE) {
        check_interrupt();
        (void)jpeg_consume_input(&codec_);
      }
      (void)jpeg_start_output(&codec_, codec_.input_scan_number);
    });
  }

  [[nodiscard]] bool is_cmyk() const noexcept { return codec_.num_components == 4; }
  [[nodiscard]] std::int64_t width_px() const noexcept { return codec_.output_width; }
  [[nodiscard]] std::int64_t height_px() const noexcept { return codec_.output_height; }

  /// Decodes all rows and reads to the end of the image, which may be missing. `row(y)` gives the
  /// memory of a row, `done(y)` is called when it is complete. Both must own nothing.
  template <class Row, class Done>
  void read_rows(const Row& row, const Done& done) {
    run([&] {
      while (codec_.output_scanline < codec_.output_height) {
        check_interrupt();
        const std::int64_t y = codec_.output_scanline;
        JSAMPROW memory = row(y);
        (void)jpeg_read_scanlines(&codec_, &memory, 1);
        done(y);
      }
      codec_.src->fill_input_buffer = insert_end_of_image_;
      if (codec_.buffered_image != FALSE) (void)jpeg_finish_output(&codec_);
      (void)jpeg_finish_decompress(&codec_);
    });
  }

 private:
  /// Runs calls of libjpeg. `calls` must own nothing with a destructor. @throws what `calls` throws
  /// between calls of libjpeg.
  template <class Calls>
  void run(const Calls& calls) {
    if (setjmp(report_.before_calls) != 0) fail();
    calls();
  }

  [[noreturn]] void fail() const {
    FOVEA_CHECK(!report_.is_truncated, kCorruptData, name_,
                ": JPEG is truncated: it ends before its pixels do");
    const std::string_view reason = report_.reason;
    if (reason.starts_with("Insufficient memory"sv)) throw std::bad_alloc();
    throw Error(ErrorCode::kCorruptData, cat(name_, ": cannot decode JPEG: ", reason));
  }

  std::string_view name_;
  ErrorReport report_{};
  jpeg_decompress_struct codec_{};
  boolean (*insert_end_of_image_)(j_decompress_ptr) = nullptr;  ///< at the end of a file
};

}  // namespace

ImageHeader read_jpeg_header(const EncodedImage& source, int reduction) {
  const JpegFrame frame = read_jpeg_frame(source.bytes, source.name);
  FOVEA_CHECK(frame.precision_bits == 8, kUnsupported, source.name,
              ": expected a JPEG of 8 bits per sample, got ", frame.precision_bits);
  const ReducedSide width = reduced(frame.width_px, reduction);
  const ReducedSide height = reduced(frame.height_px, reduction);
  const std::size_t cmyk_row_bytes = static_cast<std::size_t>(width.side_px) * 4;
  return {{.format = ImageFormat::kJpeg,
           .width_px = width.side_px,
           .height_px = height.side_px,
           .decode_bytes = ImageWriter::memory_bytes(width.side_px, height.side_px) +
                           jpeg_decoder_bytes(frame) + cmyk_row_bytes + kDecoderBytes,
           .margins = {.right_px = width.margin_px, .bottom_px = height.margin_px}},
          find_orientation(source.bytes),
          reduction};
}

Image decode_jpeg(const EncodedImage& source, const ImageHeader& header,
                  std::vector<std::uint8_t> memory) {
  const std::int64_t width = header.info.width_px;
  const std::int64_t height = header.info.height_px;
  check_jpeg_scans(source.bytes, read_jpeg_frame(source.bytes, source.name), source.name);
  JpegReader reader(source.name);
  reader.start(source.bytes, header.reduction);
  FOVEA_CHECK(reader.width_px() == width && reader.height_px() == height, kCorruptData, source.name,
              ": JPEG of ", width, " x ", height, " pixels has another frame of ",
              reader.width_px(), " x ", reader.height_px());
  ImageWriter writer(width, height, header.orientation, std::move(memory));
  if (!reader.is_cmyk()) {
    reader.read_rows([&](std::int64_t y) { return writer.row(y); },
                     [&](std::int64_t y) { writer.finish_row(y); });
    return writer.take();
  }
  // Four components are CMYK, inverted whatever the Adobe marker says, as in Pillow.
  std::vector<std::uint8_t> cmyk(static_cast<std::size_t>(width) * 4);
  reader.read_rows([&](std::int64_t) { return cmyk.data(); },
                   [&](std::int64_t y) {
                     inverted_cmyk_to_rgb(cmyk.data(), cmyk.size() / 4, writer.row(y));
                     writer.finish_row(y);
                   });
  return writer.take();
}

}  // namespace fovea::media
