// Plan before memory: pixels are allocated when the first frame is there and its plan is allowed.
#include "engine/prepare/frame_writer.h"

#include <algorithm>

#include "core/check.h"
#include "core/interrupt.h"
#include "core/stopwatch.h"
#include "engine/prepare/check_item.h"
#include "media/limits.h"

namespace fovea {

void check_frames(const MediaItem& media, std::int64_t num_frames, const MediaLimits& limits) {
  FOVEA_CHECK(media.modality == Modality::kVideo || num_frames == 1, kInvalidArgument,
              "an image has 1 frame, got ", num_frames);
  media::check_num_frames(num_frames, media.name, limits);
}

bool is_row_of_frames(const ItemPlan& plan) noexcept {
  return plan.modality == Modality::kVideo && plan.layout == PixelLayout::kImages &&
         ItemShare::path_of(plan.spec) == 0 && plan.unit_bytes[0] > 0;
}

ItemPlan plan_of_units(const ItemPlan& plan, const UnitRange& units) {
  ItemPlan part = plan;
  part.spec = ItemShare{.units = units}.spec_of(plan.spec);
  if (!ItemAhead{&plan, units}.is_part()) return part;
  const std::size_t first = static_cast<std::size_t>(units.first) * plan.unit_bytes[0];
  part.pixel_bytes = std::min(static_cast<std::size_t>(units.count) * plan.unit_bytes[0],
                              plan.pixel_bytes - first);
  return part;
}

ItemPlan plan_size(const ItemProcessor& processor, const ItemSize& size, const std::string& name,
                   const MediaLimits& limits) {
  const bool is_video = size.modality == Modality::kVideo || size.num_frames != 1;
  if (is_video) {
    media::check_video_size(size.num_frames, size.width_px, size.height_px, name, limits);
  }
  ItemPlan plan = is_video ? processor.plan_video(size.num_frames, size.width_px, size.height_px)
                           : processor.plan_image(size.width_px, size.height_px);
  check_plan(plan, name);
  const std::int64_t all = plan.spec.input_rows;
  const std::int64_t at_once = is_row_of_frames(plan) ? plan.spec.units_on(0).patches : all;
  media::check_num_patches(all, at_once, name, limits);
  return plan;
}

namespace {

std::size_t bytes_per_frame(const ItemPlan& plan) {
  return plan.pixel_bytes / static_cast<std::size_t>(plan.num_frames);
}

/// The frames of each unit of a row of frames; the last may have fewer.
std::int64_t frames_per_unit(const ItemPlan& plan) {
  return static_cast<std::int64_t>(plan.unit_bytes[0] / bytes_per_frame(plan));
}

}  // namespace

void FrameWriter::expect(std::int64_t num_frames) {
  check_frames(media_, num_frames, limits_);
  num_frames_ = num_frames;
  next_ = 0;
  end_ = num_frames;
  if (ahead_.is_part()) {
    const std::int64_t per_unit = frames_per_unit(*ahead_.plan);
    next_ = ahead_.units.first * per_unit;
    end_ = std::min(end_, next_ + ahead_.units.count * per_unit);
  }
  is_planned_ = false;
  item_.pixels.clear();
  units_ = {};
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
  if (!is_planned_) {
    item_.plan = ahead_.units.count > 0 ? *ahead_.plan : plan_for(width_px, height_px);
  }
  is_planned_ = true;
  const ItemPlan& plan = item_.plan;
  FOVEA_CHECK(width_px == plan.source_width_px && height_px == plan.source_height_px,
              kInvalidArgument, "frame ", next_, " is ", width_px, "x", height_px,
              " pixels, the first one is ", plan.source_width_px, "x", plan.source_height_px);
}

void FrameWriter::add(const RgbView& frame) {
  check_interrupt();
  if (sink_) return add_to_units(frame);
  const Stopwatch watch;
  item_.pixels.resize(item_.plan.pixel_bytes);
  processor_.fill_frame(item_.plan, next_++, frame, item_.pixels);
  resize_ms_ += watch.elapsed_ms();
}

void FrameWriter::add_to_units(const RgbView& frame) {
  const Stopwatch watch;
  const ItemPlan& plan = item_.plan;
  const std::size_t frame_bytes = bytes_per_frame(plan);
  const std::size_t unit_bytes = plan.unit_bytes[0];
  const std::size_t most_units = std::max<std::size_t>(most_bytes_ / unit_bytes, 1);
  const std::size_t begin = static_cast<std::size_t>(next_) * frame_bytes;  // in the item
  if (units_.pixels.empty()) {
    const std::size_t end = static_cast<std::size_t>(end_) * frame_bytes;
    const std::size_t bytes = std::min(most_units * unit_bytes, end - begin);
    units_ = {.plan = plan, .pixels = std::vector<std::uint8_t>(bytes), .first_byte = begin};
  }
  // As a video that begins with these frames: that is where frames are resized to.
  ItemPlan part = plan;
  part.pixel_bytes = units_.pixels.size();
  part.num_frames = static_cast<std::int64_t>(part.pixel_bytes / frame_bytes);
  processor_.fill_frame(part, static_cast<std::int64_t>((begin - units_.first_byte) / frame_bytes),
                        frame, units_.pixels);
  ++next_;
  resize_ms_ += watch.elapsed_ms();
  if (begin + frame_bytes < units_.first_byte + units_.pixels.size()) return;
  const auto first = static_cast<std::int64_t>(units_.first_byte / unit_bytes);
  const auto count =
      static_cast<std::int64_t>((units_.pixels.size() + unit_bytes - 1) / unit_bytes);
  sink_(std::exchange(units_, {}), {first, count});
}

}  // namespace fovea
