// Plan before memory: pixels are allocated when the first frame is there and its plan is allowed.
#include "engine/prepare/frame_writer.h"

#include "core/check.h"
#include "core/interrupt.h"
#include "core/stopwatch.h"
#include "media/limits.h"

namespace fovea {

void check_frames(const MediaItem& media, std::int64_t num_frames, const MediaLimits& limits) {
  FOVEA_CHECK(media.modality == Modality::kVideo || num_frames == 1, kInvalidArgument,
              "an image has 1 frame, got ", num_frames);
  media::check_num_frames(num_frames, media.name, limits);
}

ItemPlan plan_size(const ItemProcessor& processor, const ItemSize& size, const std::string& name,
                   const MediaLimits& limits) {
  const bool is_video = size.modality == Modality::kVideo || size.num_frames != 1;
  ItemPlan plan = is_video ? processor.plan_video(size.num_frames, size.width_px, size.height_px)
                           : processor.plan_image(size.width_px, size.height_px);
  media::check_num_patches(plan.spec.input_rows, name, limits);
  return plan;
}

void FrameWriter::expect(std::int64_t num_frames) {
  check_frames(media_, num_frames, limits_);
  num_frames_ = num_frames;
  next_ = 0;
  is_planned_ = false;
  item_.pixels.clear();
}

const ItemPlan& FrameWriter::plan_for(std::int64_t width_px, std::int64_t height_px) {
  const bool fits = plan_ && plan_->source_width_px == width_px &&
                    plan_->source_height_px == height_px && plan_->num_frames == num_frames_;
  if (!fits) {
    const ItemSize size{width_px, height_px, num_frames_, media_.modality};
    plan_ = plan_size(processor_, size, media_.name, limits_);
  }
  return *plan_;
}

void FrameWriter::announce(std::int64_t width_px, std::int64_t height_px) {
  if (!is_planned_) item_.plan = plan_for(width_px, height_px);
  is_planned_ = true;
  const ItemPlan& plan = item_.plan;
  FOVEA_CHECK(width_px == plan.source_width_px && height_px == plan.source_height_px,
              kInvalidArgument, "frame ", next_, " is ", width_px, "x", height_px,
              " pixels, the first one is ", plan.source_width_px, "x", plan.source_height_px);
}

void FrameWriter::add(const RgbView& frame) {
  check_interrupt();
  const Stopwatch watch;
  item_.pixels.resize(item_.plan.pixel_bytes);
  processor_.fill_frame(item_.plan, next_++, frame, item_.pixels);
  resize_ms_ += watch.elapsed_ms();
}

}  // namespace fovea
