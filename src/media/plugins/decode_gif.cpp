// GIF: the blocks are read by gif_frame.h, the codes of the first frame by giflib, which is given a
// file of its own that holds nothing else. So the rest of a file costs neither time nor memory, and
// files are read that giflib alone would refuse: those with bytes between blocks, or cut off behind
// the last pixel.
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <utility>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/formats/image_writer.h"
#include "media/plugins/gif_frame.h"
#include "media/plugins/image_plugin_abi.h"
#include "media/profile.h"

namespace fovea::media {
namespace {

/// A header, a frame without a palette, and the codes of the file.
class CodedFrame {
 public:
  CodedFrame(const GifFrame& frame, Bytes file) : codes_(file.subspan(frame.data_at)) {
    const std::array<std::int64_t, 2> sides{frame.width_px, frame.height_px};
    constexpr std::size_t kScreenSides = 6;
    constexpr std::size_t kFrameSides = 18;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto byte = static_cast<std::uint8_t>(sides[i / 2] >> 8 * (i % 2));
      head_[kScreenSides + i] = byte;
      head_[kFrameSides + i] = byte;
    }
  }

  /// As many bytes as are left; behind the last one, the empty piece that ends the codes.
  int read(GifByteType* out, std::size_t count) {
    if (count == 1 && head_at_ == head_.size() && codes_.empty()) {
      *out = 0;
      return 1;
    }
    const std::size_t of_head = std::min(count, head_.size() - head_at_);
    std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(head_at_), of_head, out);
    head_at_ += of_head;
    const std::size_t of_codes = std::min(count - of_head, codes_.size());
    std::copy_n(codes_.begin(), of_codes, out + of_head);
    codes_ = codes_.subspan(of_codes);
    return static_cast<int>(of_head + of_codes);
  }

 private:
  std::array<std::uint8_t, 23> head_{'G', 'I', 'F', '8', '9', 'a', 0, 0, 0, 0, 0, 0,
                                     0,   ',', 0,   0,   0,   0,   0, 0, 0, 0, 0};
  std::size_t head_at_ = 0;
  Bytes codes_;
};

int read_coded_frame(GifFileType* gif, GifByteType* out, int count) {
  return static_cast<CodedFrame*>(gif->UserData)->read(out, static_cast<std::size_t>(count));
}

/// giflib's reading half for one frame.
class GifDecoder {
 public:
  GifDecoder(CodedFrame& frame, std::string_view name) : name_(name) {
    int code = D_GIF_SUCCEEDED;
    gif_.reset(DGifOpen(&frame, read_coded_frame, &code));
    check(gif_ != nullptr, code);
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    check(DGifGetRecordType(gif_.get(), &type) == GIF_OK);
    check(DGifGetImageDesc(gif_.get()) == GIF_OK);
  }

  void read_row(std::span<GifPixelType> indices) {
    check(DGifGetLine(gif_.get(), indices.data(), static_cast<int>(indices.size())) == GIF_OK);
  }

 private:
  struct Close {
    void operator()(GifFileType* gif) const noexcept { (void)DGifCloseFile(gif, nullptr); }
  };

  void check(bool is_good) const { check(is_good, gif_->Error); }
  void check(bool is_good, int code) const {
    if (is_good) return;
    if (code == D_GIF_ERR_NOT_ENOUGH_MEM) throw std::bad_alloc();
    const char* const reason = GifErrorString(code);
    throw Error(
        ErrorCode::kCorruptData,
        cat(name_, ": cannot decode GIF: ", reason != nullptr ? reason : "its codes are damaged"));
  }

  std::string_view name_;
  std::unique_ptr<GifFileType, Close> gif_;
};

/// The rows of a frame as its file stores them. `visit(y)` is called for each.
template <class Visit>
void for_each_stored_row(const GifFrame& frame, const Visit& visit) {
  struct Pass {
    std::int64_t first;
    std::int64_t step;
  };
  constexpr std::array kInterlaced{Pass{0, 8}, Pass{4, 8}, Pass{2, 4}, Pass{1, 2}};
  constexpr std::array kStraight{Pass{0, 1}};
  for (const Pass& pass : frame.interlaced ? std::span<const Pass>(kInterlaced) : kStraight)
    for (std::int64_t y = pass.first; y < frame.height_px; y += pass.step) visit(y);
}

class GifCanvas {
 public:
  /// @param background null: the transparent index has its own colour.
  GifCanvas(const GifFrame& frame, const std::uint8_t* background, std::vector<std::uint8_t> memory)
      : frame_(frame),
        colors_(frame.colors),
        rgb_(static_cast<std::size_t>(frame.canvas_width_px) * 3),
        writer_(frame.canvas_width_px, frame.canvas_height_px, Orientation::kUpright,
                std::move(memory)) {
    if (background != nullptr && frame.transparent)
      std::copy_n(background, 3, color(*frame.transparent));
  }

  /// Around a frame, a canvas is transparent, or of the first colour.
  void fill() {
    if (frame_.width_px == frame_.canvas_width_px && frame_.height_px == frame_.canvas_height_px)
      return;
    for (std::size_t i = 0; i < rgb_.size(); i += 3)
      std::copy_n(color(frame_.transparent.value_or(0)), 3, &rgb_[i]);
    for (std::int64_t y = 0; y < frame_.canvas_height_px; ++y) {
      check_interrupt();
      writer_.store(y, 0, 1, frame_.canvas_width_px, rgb_.data());
    }
  }

  void put_row(std::int64_t y, std::span<const GifPixelType> indices) {
    for (std::size_t x = 0; x < indices.size(); ++x)
      std::copy_n(color(indices[x]), 3, &rgb_[3 * x]);
    writer_.store(frame_.y_px + y, frame_.x_px, 1, frame_.width_px, rgb_.data());
  }

  [[nodiscard]] Image take() { return writer_.take(); }

 private:
  [[nodiscard]] std::uint8_t* color(std::size_t index) { return &colors_[3 * index]; }

  const GifFrame& frame_;
  std::array<std::uint8_t, 768> colors_;
  std::vector<std::uint8_t> rgb_;  ///< a row
  ImageWriter writer_;
};

ImageHeader read_gif_header(const EncodedImage& source, const MediaLimits&) {
  const GifFrame frame = read_gif_frame(source.bytes, source.name);
  return {
      {.format = ImageFormat::kGif,
       .width_px = frame.canvas_width_px,
       .height_px = frame.canvas_height_px,
       .decode_bytes = ImageWriter::memory_bytes(frame.canvas_width_px, frame.canvas_height_px) +
                       kDecoderBytes}};
}

Image decode_gif(const EncodedImage& source, const ImageHeader&, const MediaOptions& options,
                 std::vector<std::uint8_t> memory, const Interrupt* interrupt) {
  const InterruptScope scope(interrupt);
  const GifFrame frame = read_gif_frame(source.bytes, source.name);
  CodedFrame coded(frame, source.bytes);
  GifDecoder decoder(coded, source.name);
  const bool composites = rules_of(options.profile).compositing == Compositing::kEvery;
  GifCanvas canvas(frame, composites ? options.background : nullptr, std::move(memory));
  canvas.fill();
  std::vector<GifPixelType> indices(static_cast<std::size_t>(frame.width_px));
  for_each_stored_row(frame, [&](std::int64_t y) {
    check_interrupt();
    decoder.read_row(indices);
    canvas.put_row(y, indices);
  });
  return canvas.take();
}

[[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr PluginNote kNote{
    .build = image_plugin_build("gif")};

}  // namespace
}  // namespace fovea::media

extern "C" __attribute__((visibility("default"))) const fovea::media::ImagePlugin*
fovea_image_plugin() {
  static const std::string library =
      fovea::cat("giflib ", GIFLIB_MAJOR, ".", GIFLIB_MINOR, ".", GIFLIB_RELEASE);
  static const fovea::media::ImagePlugin plugin{.library = library.c_str(),
                                                .read_header = &fovea::media::read_gif_header,
                                                .decode = &fovea::media::decode_gif};
  return &plugin;
}
