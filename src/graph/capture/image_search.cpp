// Which image has so many patches or tokens? The model knows, so it is asked.
#include "graph/capture/image_search.h"

#include <algorithm>

#include "core/check.h"

namespace fovea {

namespace {

/// Longest side that is tried; beyond it every processor shrinks.
constexpr std::int64_t kLongestSidePx = 16'384;

/// Images or videos of one shape, from the smallest to the largest.
class ImageShape {
 public:
  /// @param columns >= rows >= 1.
  ImageShape(const EncoderGraphModel& model, const ImageCount& count, std::int64_t num_frames,
             std::int64_t columns, std::int64_t rows)
      : processor_(model.processor()),
        count_(count),
        num_frames_(num_frames),
        columns_(columns),
        rows_(rows) {}

  [[nodiscard]] std::int64_t most_height_px() const {
    return std::max<std::int64_t>(kLongestSidePx * rows_ / columns_, 1);
  }
  /// Absent if the model refuses the size.
  [[nodiscard]] std::optional<ItemPlan> plan(std::int64_t height_px) const {
    const std::int64_t width_px = (height_px * columns_ + rows_ / 2) / rows_;
    try {
      return num_frames_ == 0 ? processor_.plan_image(width_px, height_px)
                              : processor_.plan_video(num_frames_, width_px, height_px);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument) throw;
      return std::nullopt;
    }
  }
  [[nodiscard]] std::int64_t count(std::int64_t height_px) const {
    const std::optional<ItemPlan> image = plan(height_px);
    return image ? count_(*image) : 0;
  }

 private:
  const ItemProcessor& processor_;
  const ImageCount& count_;
  std::int64_t num_frames_;
  std::int64_t columns_;
  std::int64_t rows_;
};

/// The smallest height in [1, end) with property(height), which holds from some height on; `end` if
/// it holds for none. The result has the property, and the height below does not, in any case.
template <class Property>
std::int64_t first_height(std::int64_t end, Property&& property) {
  std::int64_t below = 0;
  while (below + 1 < end) {
    const std::int64_t height = below + (end - below) / 2;
    (property(height) ? end : below) = height;
  }
  return end;
}

}  // namespace

NearestImages find_images(const EncoderGraphModel& model, std::int64_t wanted,
                          const ImageCount& count, std::int64_t num_frames) {
  FOVEA_CHECK(wanted >= 1, kInternal, "an image search needs a count of at least 1, got ", wanted);
  NearestImages nearest;
  std::int64_t most = 0;              // of nearest.up_to
  std::optional<std::int64_t> least;  // of nearest.above
  std::int64_t rows = 1;
  while ((rows + 1) * (rows + 1) <= wanted) ++rows;
  for (; rows >= 1 && most < wanted; --rows) {
    const ImageShape shape(model, count, num_frames, wanted / rows, rows);
    const std::int64_t end = shape.most_height_px() + 1;
    const std::int64_t above =
        first_height(end, [&](std::int64_t height) { return shape.count(height) > wanted; });
    if (above < end && (!least || shape.count(above) < *least)) {
      least = shape.count(above);
      nearest.above = shape.plan(above);
    }
    const std::int64_t found = above == 1 ? 0 : shape.count(above - 1);
    if (found <= most) continue;
    most = found;
    nearest.up_to = shape.plan(
        first_height(above - 1, [&](std::int64_t height) { return shape.count(height) == found; }));
  }
  return nearest;
}

std::optional<ItemPlan> fullest_image(const EncoderGraphModel& model, PathId path,
                                      std::int64_t tokens) {
  const auto index = static_cast<std::size_t>(path);
  return find_images(model, tokens,
                     [&](const ItemPlan& plan) { return plan.spec.path_tokens[index]; })
      .up_to;
}

}  // namespace fovea
