// The input buffers of towers over square views: declared, filled and read in one place.
#include "models/common/views/inputs.h"

#include <algorithm>

#include "models/common/frames.h"
#include "models/common/numbers.h"

namespace fovea::common {

namespace {

constexpr const char* kLive = "live";
constexpr const char* kCuSeqlens = "cu_seqlens";
constexpr const char* kSources = "sources";
constexpr const char* kPixels = "pixels";

std::int64_t num_chunks(const ViewLayout& layout, std::int64_t views) {
  const std::int64_t step = layout.views_per_chunk;
  return step == 0 ? 0 : (views + step - 1) / step;
}

/// Live counts of a batch: those of ViewBatch, then those of its stages.
constexpr std::int64_t kNamedCounts = 3;

/// Length of the buffer "live": the counts of all views, then those of every chunk.
std::int64_t num_live(const ViewLayout& layout, std::int64_t views) {
  return kNamedCounts + std::ssize(layout.stages) +
         num_chunks(layout, views) * (kNamedCounts + std::ssize(layout.chunk_stages));
}

/// The live counts of a batch of which `views` are live. @return the place after them.
std::int32_t* write_live(const ViewLayout& layout, std::span<const std::int64_t> stages,
                         std::int64_t views, std::int32_t* live) {
  for (const std::int64_t rows : {std::int64_t{1}, layout.view.patches(), layout.sequence.rows()}) {
    *live++ = narrow(views * rows);
  }
  for (const std::int64_t rows : stages) *live++ = narrow(views * rows);
  return live;
}

/// Patch rows of one view. @param begin byte of its first pixel.
/// @return the place after them.
std::int32_t* write_sources(const SquareView& view, std::int64_t begin, std::int32_t* sources) {
  const std::int64_t row_stride = view.side_px * 3;
  const std::int64_t plane_stride = view.planes > 1 ? view.plane_bytes() : 0;
  for_each_patch(view, [&](std::int64_t y, std::int64_t x) {
    const std::int64_t offset = begin + (y * row_stride + x * 3) * view.patch_px;
    for (const std::int64_t value : {offset, row_stride, plane_stride, std::int64_t{0}}) {
      *sources++ = narrow(value);
    }
  });
  return sources;
}

}  // namespace

std::vector<BufferDecl> ViewInputs::declare(const ViewLayout& layout, std::int64_t views) {
  const auto view_bytes = static_cast<std::int64_t>(layout.view.pixel_bytes());
  return {{kLive, DType::kI32, {num_live(layout, views)}},
          {kCuSeqlens, DType::kI32, {views + 1}, PadRule::kRepeatLast},
          {kSources, DType::kI32, {views * layout.view.patches(), 4}},
          {kPixels, DType::kU8, {views * view_bytes}}};
}

std::byte* ViewInputs::fill(const ViewLayout& layout, std::int64_t capacity, std::int64_t views,
                            std::size_t num_items, InputWriter& writer) {
  const SquareView& view = layout.view;
  const auto view_bytes = static_cast<std::int64_t>(view.pixel_bytes());
  check_pixel_offsets(views * view_bytes, num_items);

  auto* live = writer.claim(kLive, num_live(layout, capacity)).as<std::int32_t>();
  live = write_live(layout, layout.stages, views, live);
  for (std::int64_t chunk = 0; chunk < num_chunks(layout, capacity); ++chunk) {
    const std::int64_t step = layout.views_per_chunk;
    const std::int64_t here = std::clamp<std::int64_t>(views - chunk * step, 0, step);
    live = write_live(layout, layout.chunk_stages, here, live);
  }
  auto* offsets = writer.claim(kCuSeqlens, views + 1).as<std::int32_t>();
  for (std::int64_t v = 0; v <= views; ++v) offsets[v] = narrow(v * layout.sequence.rows());
  auto* sources = writer.claim(kSources, views * view.patches()).as<std::int32_t>();
  for (std::int64_t v = 0; v < views; ++v) sources = write_sources(view, v * view_bytes, sources);
  return writer.claim(kPixels, views * view_bytes).data;
}

ViewInputs ViewInputs::of(const ViewLayout& layout, std::int64_t views, const NamedTensors& in) {
  const auto* live = in[kLive].as<std::int32_t>();
  const std::int64_t patches = layout.view.patches();
  const auto batch = [&](std::int64_t first, std::int64_t count,
                         std::span<const std::int64_t> stages) {
    const ConstTensorView offsets = in[kCuSeqlens];
    ViewBatch views_here{.view = layout.view,
                         .sequence = layout.sequence,
                         .first = first,
                         .count = count,
                         .pixels = in[kPixels],
                         .sources = row_range(in[kSources], first * patches, count * patches),
                         // Sequences count from the first row of a batch.
                         .cu_seqlens = {offsets.data, offsets.dtype, {count + 1}},
                         .views = {live++},
                         .patches = {live++},
                         .rows = {live++},
                         .stages = {}};
    for (std::size_t i = 0; i < stages.size(); ++i) views_here.stages.push_back({live++});
    return views_here;
  };
  ViewInputs inputs{.all = batch(0, views, layout.stages), .chunks = {}};
  const std::int64_t step = layout.views_per_chunk;
  for (std::int64_t chunk = 0; chunk < num_chunks(layout, views); ++chunk) {
    const std::int64_t first = chunk * step;
    inputs.chunks.push_back(batch(first, std::min(step, views - first), layout.chunk_stages));
  }
  return inputs;
}

}  // namespace fovea::common
