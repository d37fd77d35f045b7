#pragma once

#include <cstdint>
#include <string_view>

#include "media/ffmpeg/handles.h"
#include "media/image.h"

namespace fovea::media::ffmpeg {

/// Quarter turns, clockwise, that put the images of a stream upright: 0 to 3.
[[nodiscard]] int quarter_turns(const AVStream& stream);

/// Converts the frames of one stream to upright RGB images of one size. Keeps its memory and its
/// conversion tables from frame to frame.
class Converter {
 public:
  /// @param name of the video, for messages; must outlive the converter.
  Converter(int quarter_turns, std::string_view name)
      : quarter_turns_(quarter_turns), name_(name) {}

  /// @param index of the frame, for messages. @return the image, until the next call.
  /// @throws Error(kCorruptData) if the size is not that of the first frame, before anything is
  /// converted; Error(kUnsupported) if there is no conversion from the format of the frame, or from
  /// its colour matrix.
  [[nodiscard]] const Image& convert(const AVFrame& frame, std::int64_t index);

 private:
  void check_size(const AVFrame& frame, std::int64_t index);
  void prepare(const AVFrame& frame);
  void scale(const AVFrame& frame);

  int quarter_turns_;
  std::string_view name_;
  Scaler scaler_;
  int width_px_ = 0;  // of the first frame, as stored
  int height_px_ = 0;
  Image image_;
  Image turned_;
};

}  // namespace fovea::media::ffmpeg
