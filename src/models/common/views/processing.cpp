// The processor files of families over square views of one size.
#include "models/common/views/processing.h"

#include <vector>

#include "models/common/config_reader.h"
#include "models/common/frames.h"

namespace fovea::common {

namespace {

/// Pillow's number of a filter, which files have under "resample".
double number_of(media::ResizeFilter filter) {
  switch (filter) {
    case media::ResizeFilter::kBilinear: return 2;
    case media::ResizeFilter::kBicubic: return 3;
    case media::ResizeFilter::kLanczos: return 1;
  }
  return 0;
}

}  // namespace

ViewProcessing read_view_processing(const checkpoint::HfConfig& files, const SquareView& view,
                                    const MediaOptions& media, const ViewProcessorClass& reference,
                                    std::initializer_list<std::string_view> keys) {
  ViewProcessing p{.view = view,
                   .engine = resize_engine(media, media::ResizeEngine::kTorchvision),
                   .filter = reference.filter,
                   .scaling = reference.without_file,
                   .assumptions = {},
                   .sources = {}};
  const auto file = files.image_processor();
  if (file) {
    p.scaling = read_scaling(*file, reference.scaling);
    check_size(*file, view.side_px);
    require_number(*file, "resample", number_of(reference.filter));
  }
  p.assumptions = missing_text(file ? file->path() : files.directory + "/preprocessor_config.json",
                               file.has_value(),
                               {assumed(file, "image_mean", channel_text(p.scaling.image_mean)),
                                assumed(file, "image_std", channel_text(p.scaling.image_std))});
  std::vector<SourcedKey> all =
      sourced(file, {"size", "image_mean", "image_std", "rescale_factor", "resample"});
  const std::vector<SourcedKey> own = sourced(file, keys);
  all.insert(all.end(), own.begin(), own.end());
  p.sources = sources_text("image", file, all);
  return p;
}

void ViewProcessor::fill_view(const RgbView& image, std::span<std::uint8_t> out) const {
  const std::int64_t side = processing_.view.side_px;
  resize(image, side, side, processing_.engine, processing_.filter, out);
}

}  // namespace fovea::common
