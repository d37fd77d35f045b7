// From a whole image to one square view.
#include "models/common/views/whole.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "media/resize/resize_fine.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/views/tiles.h"

namespace fovea::common {

namespace {

using media::ResizeFilter;

constexpr PixelScaling kImageNetScaling{.image_mean = {0.485f, 0.456f, 0.406f},
                                        .image_std = {0.229f, 0.224f, 0.225f}};

/// A processor class, with its values where a file is silent. All of them make 224 x 224.
struct ProcessorClass {
  std::string_view name;
  ResizeFilter filter;
  PixelScaling scaling;
  bool has_shortest_edge;  ///< the default, and the meaning of a size that is a number
  bool do_center_crop;
  bool in_floats;  ///< rescales before it resizes
};

constexpr std::int64_t kSide = 224;
constexpr ProcessorClass kClasses[] = {
    {"CLIPImageProcessor", ResizeFilter::kBicubic, kClipScaling, true, true, false},
    {"CLIPFeatureExtractor", ResizeFilter::kBicubic, kClipScaling, true, true, false},
    {"BitImageProcessor", ResizeFilter::kBicubic, kClipScaling, true, true, false},
    {"SiglipImageProcessor", ResizeFilter::kBicubic, {}, false, false, false},
    {"ViTImageProcessor", ResizeFilter::kBilinear, {}, false, false, false},
    {"DINOv3ViTImageProcessor", ResizeFilter::kBilinear, kImageNetScaling, false, false, true},
};

std::string class_names() {
  std::string names;
  for (const ProcessorClass& known : kClasses) names += cat(names.empty() ? "" : ", ", known.name);
  return names;
}

/// @param name with or without the ending of its class for tensors.
const ProcessorClass& find_class(std::string_view name, const std::string& where) {
  constexpr std::string_view kFast = "Fast";
  std::string_view stem = name;
  if (stem.ends_with(kFast)) stem.remove_suffix(kFast.size());
  const auto* const known = std::ranges::find(kClasses, stem, &ProcessorClass::name);
  FOVEA_CHECK(known != std::end(kClasses), kUnsupported, where, ": expected one of ", class_names(),
              ", got ", name);
  return *known;
}

const ProcessorClass& class_of(const std::optional<JsonView>& file, std::string_view otherwise) {
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    const auto type = file ? file->find(key) : std::nullopt;
    if (type) return find_class(type->as_string(), type->path());
  }
  return find_class(otherwise, "the processor of the family");
}

/// `size` of a processor file.
void read_resized(const JsonView& file, const ProcessorClass& reference, WholeImage& image) {
  constexpr std::int64_t kMaxSide = 4096;
  const auto size = file.find("size");
  if (!size) return;
  const bool is_object = size->is_object();
  if (is_object ? size->find("shortest_edge").has_value() : reference.has_shortest_edge) {
    FOVEA_CHECK(!is_object || !size->find("longest_edge"), kUnsupported, size->path(),
                ": shortest_edge and longest_edge together are not supported");
    image.shortest_edge =
        is_object ? read_size(*size, "shortest_edge", kSide, kMaxSide) : as_size(*size, kMaxSide);
    return;
  }
  image.shortest_edge = 0;
  image.height_px = is_object ? as_size(size->at("height"), kMaxSide) : as_size(*size, kMaxSide);
  image.width_px = is_object ? as_size(size->at("width"), kMaxSide) : image.height_px;
}

/// The side of the view: of the crop, or of the resized image.
std::int64_t read_side(const std::optional<JsonView>& file, const ProcessorClass& reference,
                       const WholeImage& image) {
  constexpr std::int64_t kMaxSide = 4096;
  const std::string where = file ? file->path() : std::string(reference.name);
  const bool do_center_crop =
      file ? file->bool_or("do_center_crop", reference.do_center_crop) : reference.do_center_crop;
  FOVEA_CHECK(!do_center_crop || !image.in_floats, kUnsupported, where,
              ".do_center_crop: true is not supported for ", reference.name);
  std::int64_t height = image.height_px;
  std::int64_t width = image.width_px;
  if (do_center_crop) {
    height = width = kSide;
    const auto crop = file ? file->find("crop_size") : std::nullopt;
    if (crop) {
      height = crop->is_object() ? as_size(crop->at("height"), kMaxSide) : as_size(*crop, kMaxSide);
      width = crop->is_object() ? as_size(crop->at("width"), kMaxSide) : height;
    }
  } else {
    FOVEA_CHECK(image.shortest_edge == 0, kUnsupported, where,
                ".do_center_crop: false with a shortest_edge makes views that are no squares");
  }
  FOVEA_CHECK(height == width, kUnsupported, where, ": expected square views, got ", width, "x",
              height);
  return height;
}

ResizeFilter read_filter(const JsonView& file, ResizeFilter fallback) {
  const auto resample = file.find("resample");
  if (!resample) return fallback;
  const double number = resample->as_number();
  FOVEA_CHECK(number == 2 || number == 3, kUnsupported, resample->path(),
              ": expected 2 (bilinear) or 3 (bicubic), got ", number);
  return number == 2 ? ResizeFilter::kBilinear : ResizeFilter::kBicubic;
}

/// Copies the middle of an image to a square, the rest of which is black.
void crop_middle(RgbView image, std::int64_t side_px, std::span<std::uint8_t> out) {
  // The columns or rows that are cut off in front, or if negative added.
  const auto margin = [&](std::int64_t length) {
    return length >= side_px ? (length - side_px) / 2 : -((side_px - length) / 2);
  };
  const std::int64_t left = margin(image.width_px);
  const std::int64_t top = margin(image.height_px);
  const std::int64_t begin = std::max<std::int64_t>(left, 0);
  const std::int64_t end = std::min(left + side_px, image.width_px);
  std::ranges::fill(out, std::uint8_t{0});
  for (std::int64_t y = std::max<std::int64_t>(top, 0);
       y < std::min(top + side_px, image.height_px); ++y) {
    std::copy_n(image.rgb + (y * image.width_px + begin) * 3, (end - begin) * 3,
                out.begin() + ((y - top) * side_px + begin - left) * 3);
  }
}

}  // namespace

WholeImage read_whole_image(const checkpoint::HfConfig& files, const MediaOptions& media,
                            std::string_view processor_class) {
  const auto file = files.image_processor();
  const ProcessorClass& reference = class_of(file, processor_class);
  WholeImage image{.shortest_edge = reference.has_shortest_edge ? kSide : 0,
                   .height_px = kSide,
                   .width_px = kSide,
                   .in_floats = reference.in_floats,
                   .engine = resize_engine(media, media::ResizeEngine::kTorchvision),
                   .filter = reference.filter,
                   .scaling = reference.scaling,
                   .assumptions = {},
                   .sources = {}};
  if (file) {
    image.scaling = read_scaling(*file, reference.scaling);
    image.filter = read_filter(*file, reference.filter);
    read_resized(*file, reference, image);
  }
  image.side_px = read_side(file, reference, image);
  const std::string where = file ? file->path() : files.directory + "/preprocessor_config.json";
  FOVEA_CHECK(!image.in_floats || image.filter == ResizeFilter::kBilinear, kUnsupported, where,
              ".resample: expected 2 (bilinear) for ", reference.name, ", which resizes floats");
  FOVEA_CHECK(!image.in_floats || media.image_backend != ImageBackend::kPillow, kUnsupported,
              "image_backend: ", reference.name, " resizes floats, which pil does not");
  image.assumptions = missing_text(
      where, file.has_value(),
      {assumed(file, "size", cat(image.shortest_edge > 0 ? image.shortest_edge : image.height_px)),
       assumed(file, "image_mean", channel_text(image.scaling.image_mean)),
       assumed(file, "image_std", channel_text(image.scaling.image_std))});
  image.sources = sources_text("image", file,
                               sourced(file, {"size", "crop_size", "do_center_crop", "image_mean",
                                              "image_std", "rescale_factor", "resample"}));
  return image;
}

void check_view_side(const checkpoint::HfConfig& files, const WholeImage& image,
                     std::int64_t side_px) {
  const auto file = files.image_processor();
  FOVEA_CHECK(image.side_px == side_px, kUnsupported,
              file ? file->path() : files.directory + "/preprocessor_config.json", ": views of ",
              image.side_px, " pixels a side contradict config.json, which says ", side_px);
}

WholeImageProcessor::WholeImageProcessor(WholeImage image, const SquareView& view,
                                         WholeImageRows rows)
    : image_(std::move(image)), view_(view), rows_(rows) {}

ItemPlan WholeImageProcessor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;
  check_area(width_px, height_px);
  ItemPlan plan = plan_views(width_px, height_px, {}, {{view_, 1}});
  plan.resized_width_px = image_.width_px;
  plan.resized_height_px = image_.height_px;
  if (const std::int64_t edge = image_.shortest_edge; edge > 0) {
    const std::int64_t shorter = std::min(width_px, height_px);
    const auto scaled = [&](std::int64_t side) {
      return side == shorter ? edge
                             : static_cast<std::int64_t>(static_cast<double>(edge * side) /
                                                         static_cast<double>(shorter));
    };
    plan.resized_width_px = scaled(width_px);
    plan.resized_height_px = scaled(height_px);
    FOVEA_CHECK(plan.resized_width_px <= kMostPixels / plan.resized_height_px, kInvalidArgument,
                "image of ", width_px, "x", height_px, " pixels becomes ", plan.resized_width_px,
                "x", plan.resized_height_px, " with a shortest edge of ", edge, ", above ",
                kMostPixels, " pixels");
  }
  if (!image_.in_floats) {
    plan.target_width_px = plan.resized_width_px;
    plan.target_height_px = plan.resized_height_px;
  }
  plan.spec.units[0].rows = rows_.tokens;
  plan.spec.path_tokens[0] = rows_.tokens;
  plan.spec.out_rows = rows_.vector ? 1 : rows_.tokens;
  return plan;
}

void WholeImageProcessor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                                     std::span<std::uint8_t> out) const {
  check_frame(plan, index, frame, out);
  const std::int64_t width = plan.resized_width_px;
  const std::int64_t height = plan.resized_height_px;
  if (image_.in_floats) {
    return resize_fine(frame, width, height, media::FineFilter::kBilinear, out);
  }
  if (width == image_.side_px && height == image_.side_px) {
    return resize(frame, width, height, image_.engine, image_.filter, out);
  }
  const media::Image whole = resized(frame, width, height, image_.engine, image_.filter);
  crop_middle(view_of(whole), image_.side_px, out);
}

}  // namespace fovea::common
