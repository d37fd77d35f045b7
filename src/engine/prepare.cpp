// From files and bytes to what the tower reads: read, plan, decode, resize. Runs on the decode
// threads; touches no device.
#include "engine/prepare.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/row_dtype.h"
#include "core/stopwatch.h"
#include "engine/planned_item.h"
#include "engine/prepare/check_item.h"
#include "engine/prepare/item_deadline.h"
#include "engine/prepare/lost_frames.h"
#include "fovea/text.h"
#include "media/decode_image.h"
#include "media/limits.h"
#include "media/reduction.h"
#include "media/video.h"
#include "rows/row_target.h"

namespace fovea {

namespace {

/// Thrown where an item is not prepared, at least not now: what it comes with.
struct Unprepared {
  PreparedMedia item;
};

ItemPlan plan_values(const ItemProcessor& processor, const MediaItem& media,
                     const std::array<std::int64_t, 3>& grid_thw, const MediaLimits& limits) {
  const auto* const block = std::get_if<PixelBlock>(&media.source);
  ItemPlan plan = block != nullptr
                      ? processor.plan_patches(media.modality, grid_thw, block->patch_dim)
                      : processor.plan_grid(media.modality, grid_thw);
  check_plan(plan, media.name);
  const std::int64_t all = plan.spec.input_rows;
  media::check_num_patches(all, all, media.name, limits);
  return plan;
}

/// The way of one item from its source to resized bytes.
class Preparation {
 public:
  /// @param result is filled in. All must outlive this object.
  Preparation(const PrepareContext& context, const MediaItem& media, const PrepareUse& use,
              PreparedMedia& result)
      : context_(context),
        processing_(processing_of(context.processors, media)),
        processor_(processing_ ? *processing_->processor : context.model.processor()),
        media_(media),
        use_(use),
        place_(use.place),
        result_(result),
        deadline_(media.name, limits().decode_deadline),
        writer_(processor_, media, limits(), result.item, use.ahead) {
    if (!comes_in_units()) return;
    const auto hold = [this](PreparedItem units, const UnitRange& range) { send(units, range); };
    writer_.send_units(hold,
                       use.sink != nullptr ? use.sink->most_bytes : use.ahead.plan->pixel_bytes);
  }

  /// @throws Unprepared.
  void run() {
    if (place_ != nullptr && place_->is_too_late()) throw Unprepared{{.postponed = true}};
    check_source(media_);
    std::visit([this](const auto& source) { add(source); }, media_.source);
    if (!comes_in_units()) return;
    result_.item = std::move(held_.item);
    result_.units = held_.units;
  }

 private:
  [[nodiscard]] const MediaLimits& limits() const { return context_.options.limits; }

  [[nodiscard]] double target_fps() const {
    return processing_ && processing_->fps ? *processing_->fps : media_.fps;
  }

  [[nodiscard]] bool is_video() const noexcept { return media_.modality == Modality::kVideo; }

  /// Whether pixels are not collected in the item, but in the units that came last.
  [[nodiscard]] bool comes_in_units() const noexcept {
    return use_.sink != nullptr || use_.ahead.is_part();
  }

  // Rows that need no tower: do they fit their description, and the model?

  void add(const PrecomputedRows& known) const {
    check_matrix(known.rows, media_.name, "rows");
    check_width(known.rows.row_width);
  }

  void add(const PrecomputedBlock& known) const {
    check_width(known.row_width);
    check_block(known.block, known.row_width, media_.name);
  }

  void check_width(std::int64_t got) const {
    const std::int64_t width = context_.model.graph_spec().out_width;
    FOVEA_CHECK(got == width, kInvalidArgument, media_.name, ": rows of this model are ", width,
                " wide, got ", got);
  }

  // Pixels.

  void add(const PixelValues& values) {
    add_patches(check_matrix(values.patches, media_.name, "patches"), values.grid_thw);
  }

  void add(const PixelBytes& pixels) {
    add_patches(check_matrix(pixels, media_.name, "patches"), pixels.grid_thw);
  }

  void add(const PixelBlock& block) {
    const ItemPlan& plan = plan_patches(block.num_patches, block.grid_thw);
    result_.item.on_device = {block.data, plan.pixel_bytes};
    result_.item.written_by = block.stream;
  }

  const ItemPlan& plan_patches(std::int64_t got, const std::array<std::int64_t, 3>& grid_thw) {
    const auto& [t, h, w] = grid_thw;
    ItemPlan& plan = result_.item.plan;
    plan = use_.ahead.plan != nullptr ? *use_.ahead.plan
                                      : plan_values(processor_, media_, grid_thw, limits());
    FOVEA_CHECK(plan.spec.input_rows == got, kInvalidArgument, media_.name, ": grid_thw ", t, "x",
                h, "x", w, " has ", plan.spec.input_rows, " patches, got pixel values of ", got);
    claim(plan);
    return plan;
  }

  void add_patches(const ConstTensorView& patches, const std::array<std::int64_t, 3>& grid_thw) {
    const Stopwatch watch;
    const ItemPlan& plan = plan_patches(patches.shape[0], grid_thw);
    result_.item.pixels.resize(plan.pixel_bytes);
    processor_.fill_pixel_values(plan, patches, result_.item.pixels);
    result_.times.resize_ms = watch.elapsed_ms();
  }

  void add(const RgbFrames& rgb) {
    check_rgb(rgb, media_.name, limits());
    writer_.expect(rgb.num_frames);
    claim(writer_.plan_for(rgb.width_px, rgb.height_px));
    const std::span<const std::uint8_t> bytes = rgb.bytes.view();
    const std::size_t frame_bytes = bytes.size() / static_cast<std::size_t>(rgb.num_frames);
    while (const std::optional<std::size_t> frame = next_frame()) {
      add_frame({bytes.data() + *frame * frame_bytes, rgb.width_px, rgb.height_px});
    }
    finish_frames();
  }

  void add(const FrameFiles& files) {
    add_files(files.paths);
    finish_frames();
  }

  void add(const EncodedFrames& encoded) {
    writer_.expect(std::ssize(encoded.frames));
    while (const std::optional<std::size_t> frame = next_frame()) {
      add_image_bytes(encoded.frames[*frame].view(), frame_name(media_, *frame));
    }
    finish_frames();
  }

  void add(const EncodedBytes& encoded) {
    const std::span<const std::uint8_t> bytes = encoded.bytes.view();
    if (is_video()) {
      add_container({.bytes = bytes, .name = media_.name});
    } else {
      add_image_bytes(bytes, media_.name);
    }
    finish();
  }

  void add(const EncodedFile& encoded) {
    if (is_video()) {
      const InputFile file(encoded.path);
      add_container(
          {.file = file.descriptor(), .file_bytes = file.size_bytes(), .name = media_.name});
    } else {
      add_files({&encoded.path, 1});
    }
    finish();
  }

  void finish() {
    result_.times.resize_ms = writer_.resize_ms();
    if (is_video()) result_.timestamps = processor_.timestamps(seconds_);
  }

  /// Frames that were not sampled here are `fps` apart.
  void finish_frames() {
    for (std::int64_t i = 0; is_video() && media_.fps > 0 && i < writer_.num_frames(); ++i) {
      seconds_.push_back(static_cast<double>(i) / media_.fps);
    }
    finish();
  }

  /// The frame that the writer waits for; absent: it has all that are wanted.
  [[nodiscard]] std::optional<std::size_t> next_frame() const {
    if (writer_.next_frame() == writer_.end_frame()) return std::nullopt;
    return static_cast<std::size_t>(writer_.next_frame());
  }

  void add_files(std::span<const std::string> paths) {
    writer_.expect(std::ssize(paths));
    while (const std::optional<std::size_t> frame = next_frame()) {
      const std::string& path = paths[*frame];
      const Stopwatch watch;
      const std::vector<std::uint8_t> bytes = read_file(path, limits().max_image_bytes);
      result_.times.read_ms += watch.elapsed_ms();
      add_image(bytes, path);
    }
  }

  void add_image_bytes(std::span<const std::uint8_t> bytes, const std::string& name) {
    FOVEA_CHECK(bytes.size() <= limits().max_image_bytes, kInvalidArgument, name, ": ",
                bytes.size(), " bytes, the limit is ", limits().max_image_bytes);
    add_image(bytes, name);
  }

  void add_image(std::span<const std::uint8_t> bytes, const std::string& name) {
    media::ImageInfo info = media::probe_image(bytes, name, context_.options);
    writer_.announce(info.width_px, info.height_px);
    claim(result_.item.plan);
    const int reduction = reduction_of(result_.item.plan);
    if (reduction > 1) info = media::probe_image(bytes, name, context_.options, reduction);
    DecodeBudget::Share share = take(info.decode_bytes);
    const Stopwatch watch;
    media::DecodeProcesses* const others = context_.processes;
    media::Image image = others != nullptr ? others->decode_image(bytes, name, info, reduction)
                                           : media::decode_image(bytes, name, context_.options,
                                                                 reduction, share.take_memory());
    result_.times.decode_ms += watch.elapsed_ms();
    writer_.add({image.rgb.data(), image.width_px, image.height_px, image.margins});
    share.leave(std::move(image.rgb));
  }

  /// At which fraction of its size an image is decoded, if its format can.
  [[nodiscard]] int reduction_of(const ItemPlan& plan) const {
    if (!context_.options.jpeg_scaling) return 1;
    return media::choose_reduction(plan.source_width_px, plan.source_height_px,
                                   plan.target_width_px, plan.target_height_px);
  }

  /// A frame that is there already.
  void add_frame(const RgbView& frame) {
    writer_.announce(frame.width_px, frame.height_px);
    writer_.add(frame);
  }

  /// Sampled frames of a video container. Reading it counts as decoding.
  void add_container(const media::EncodedVideo& video) {
    const Stopwatch watch;
    DecodeBudget::Share share;
    const auto sampler = [&](const media::VideoInfo& info) {
      std::vector<std::int64_t> indices = choose_frames(info);
      writer_.expect(std::ssize(indices));
      claim(writer_.plan_for(info.width_px, info.height_px));  // refuses what would be too large
      keep_seconds(indices, info.fps);
      if (info.unreadable.empty()) share = take(info.decode_bytes);
      return indices;
    };
    const auto sink = [&](const media::Image& frame) {
      add_frame({frame.rgb.data(), frame.width_px, frame.height_px});
    };
    const media::VideoInfo info = context_.processes != nullptr
                                      ? context_.processes->decode_video(video, sampler, sink)
                                      : media::decode_video(video, sampler, limits(), sink);
    if (has_lost_frames(info)) {
      log_to(context_.log, LogLevel::kWarning,
             lost_frames_line(media_.name, info, writer_.num_frames()));
    }
    result_.times.decode_ms = watch.elapsed_ms() - waited_ms_ - writer_.resize_ms();
  }

  /// The frames that the model takes of a video, but for those that cannot be read. Where there are
  /// no others, or they are to be refused, all of them: the decoder says why it cannot read them.
  [[nodiscard]] std::vector<std::int64_t> choose_frames(const media::VideoInfo& info) const {
    FOVEA_CHECK(target_fps() > 0, kInvalidArgument, media_.name,
                ": expected a number of frames per second above 0, got ", target_fps());
    std::vector<std::int64_t> chosen =
        processor_.sample_frames(info.num_frames, info.fps, target_fps());
    if (context_.options.damaged_frames == DamagedFrames::kRefuse) {
      check_end(media_.name, info);
      return chosen;
    }
    std::vector<std::int64_t> others;
    std::ranges::copy_if(chosen, std::back_inserter(others), [&](std::int64_t index) {
      return !std::ranges::binary_search(info.unreadable, index);
    });
    return others.empty() ? chosen : others;
  }

  void keep_seconds(std::span<const std::int64_t> indices, double fps) {
    seconds_.clear();
    if (fps <= 0) return;
    for (const std::int64_t index : indices) {
      seconds_.push_back(static_cast<double>(index) / fps);
    }
  }

  /// Waiting for others is no time of the item.
  template <class Take>
  [[nodiscard]] auto wait(Take&& take) {
    const Stopwatch watch;
    auto taken = deadline_.exclude(take);
    waited_ms_ += watch.elapsed_ms();
    return taken;
  }

  /// Hands on the units before; the last ones stay until everything is known.
  void send(PreparedItem& units, const UnitRange& range) {
    if (range.first > use_.ahead.units.first) {
      (void)wait([&] {
        use_.sink->take(std::move(held_));
        return true;
      });
    }
    held_ = {.item = std::move(units), .units = range, .is_last = false};
  }

  /// Room for the rows of the item, and in the window for its pixels, which is asked for once.
  /// Before anything is decoded.
  void claim(const ItemPlan& plan) {
    const ItemPlan wanted = plan_of_units(plan, use_.ahead.units);
    const std::int64_t rows = final_rows(wanted, context_.pruning);
    if (use_.has_room != nullptr && !use_.has_room(rows)) {
      throw Unprepared{{.item = {.plan = plan}, .times = result_.times, .lacks_room = true}};
    }
    constexpr std::size_t kAddressable = std::numeric_limits<std::int32_t>::max();
    const bool is_cut = context_.most_bytes > 0 && is_row_of_frames(plan);
    FOVEA_CHECK(is_cut || plan.pixel_bytes <= kAddressable, kInvalidArgument, media_.name, ": ",
                plan.pixel_bytes, " bytes of resized pixels are more than one item can have (",
                kAddressable, "), but for videos with packing by units");
    if (is_cut && use_.sink == nullptr && wanted.pixel_bytes > context_.most_bytes) {
      throw Unprepared{{.is_long = true}};
    }
    WindowBudget::Place* const place = std::exchange(place_, nullptr);
    if (place == nullptr) return;
    if (!wait([&] { return place->take(wanted.pixel_bytes); })) {
      throw Unprepared{{.postponed = true}};
    }
  }

  [[nodiscard]] DecodeBudget::Share take(std::size_t bytes) {
    return wait([&] { return context_.budget.take(bytes); });
  }

  const PrepareContext& context_;
  PreparedMedia held_;                                      // the units that came last
  const std::shared_ptr<const ItemProcessing> processing_;  // null: the engine's
  const ItemProcessor& processor_;
  const MediaItem& media_;
  const PrepareUse& use_;
  WindowBudget::Place* place_;  // null: there is room
  PreparedMedia& result_;
  ItemDeadline deadline_;
  FrameWriter writer_;
  double waited_ms_ = 0;
  std::vector<double> seconds_;  // of each frame of a video; empty where they are not known
};

media::ImageInfo probe(const MediaItem& media, const MediaOptions& options) {
  constexpr std::size_t kHeaderBytes = 128 << 10;  // EXIF of 64 KiB and a colour profile included
  if (const auto* const encoded = std::get_if<EncodedBytes>(&media.source)) {
    return media::probe_image(encoded->bytes.view(), media.name, options);
  }
  if (const auto* const encoded = std::get_if<EncodedFrames>(&media.source)) {
    return media::probe_image(encoded->frames.front().view(), frame_name(media, 0), options);
  }
  return media::probe_image(read_file_start(media.paths().front(), kHeaderBytes), media.name,
                            options);
}

/// As plan_ahead. @throws whatever stands in the way of it.
std::optional<ItemPlan> plan_undecoded(const ItemProcessor& processor, const MediaItem& media,
                                       const MediaOptions& options) {
  check_source(media);
  const bool is_video = media.modality == Modality::kVideo;
  if (is_finished(media) || (is_video && is_encoded(media))) return {};
  if (const auto* const grid = patch_grid(media)) {
    return plan_values(processor, media, *grid, options.limits);
  }
  const auto plan = [&](std::int64_t num_frames, std::int64_t width_px, std::int64_t height_px) {
    check_frames(media, num_frames, options.limits);
    return plan_size(processor, {width_px, height_px, num_frames, media.modality}, media.name,
                     options.limits);
  };
  if (const auto* const rgb = std::get_if<RgbFrames>(&media.source)) {
    check_rgb(*rgb, media.name, options.limits);
    return plan(rgb->num_frames, rgb->width_px, rgb->height_px);
  }
  const media::ImageInfo size = probe(media, options);
  return plan(media.num_frames(), size.width_px, size.height_px);
}

/// The error with the item's name in front, unless that, or the path of one of its files, is there
/// already.
Error named(const MediaItem& media, const Error& error) {
  const std::string text = error.what();
  if (media.name.empty() && text.starts_with(": ")) return {error.code(), "item" + text};
  const auto begins = [&](const std::string& name) {
    return text.starts_with(printable(name) + ": ");
  };
  if (media.name.empty() || begins(media.name) || std::ranges::any_of(media.paths(), begins)) {
    return error;
  }
  const bool is_of_frames = std::holds_alternative<EncodedFrames>(media.source);
  if (is_of_frames && text.starts_with(media.name + "[")) return error;
  return {error.code(), cat(printable(media.name), ": ", text)};
}

}  // namespace

std::optional<ItemPlan> plan_ahead(const EncoderGraphModel& model, const MediaItem& media,
                                   const MediaOptions& options, ItemProcessors* processors) {
  try {
    const auto own = processing_of(processors, media);
    return plan_undecoded(own ? *own->processor : model.processor(), media, options);
  } catch (const Error&) {
    return std::nullopt;  // prepare_media says why
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

PreparedMedia prepare_media(const PrepareContext& context, const MediaItem& media,
                            const PrepareUse& use) {
  PreparedMedia result;
  try {
    Preparation(context, media, use, result).run();
  } catch (Unprepared& instead) {
    return std::move(instead.item);
  } catch (const Error& error) {
    check_interrupt();  // what ends the call is no error of the item
    result.error = named(media, error);
  } catch (const std::bad_alloc&) {
    result.error = Error(ErrorCode::kOutOfMemory, cat(printable(media.name), ": out of memory"));
  }
  if (result.error) result.item = {};
  return result;
}

std::vector<PreparedMedia> prepare_all(const PrepareContext& context,
                                       std::span<const MediaItem> media, ThreadPool& pool) {
  std::vector<PreparedMedia> results(media.size());
  pool.parallel_for(std::ssize(media), [&](std::int64_t i, int) {
    const auto index = static_cast<std::size_t>(i);
    results[index] = prepare_media(context, media[index]);
  });
  return results;
}

}  // namespace fovea
