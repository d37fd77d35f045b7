#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/fnv1a.h"
#include "fovea/fovea.h"
#include "support/property.h"

namespace fovea::test {

/// Images of random sizes, one of them large enough for tiles, and short videos where the model
/// takes them. The same in every process.
inline std::vector<MediaItem> mixed_items(const ModelReport& model, unsigned seed,
                                          std::size_t count) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned end) { return static_cast<std::int64_t>(random() % end); };
  std::vector<MediaItem> items;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_video = model.videos && below(4) == 0;
    const std::int64_t width = i == 1 ? 700 : 32 + below(160);
    const std::int64_t height = i == 1 ? 330 : 32 + below(160);
    const std::int64_t frames = is_video ? 1 + below(4) : 1;
    std::vector<std::uint8_t> rgb =
        random_bytes(static_cast<std::size_t>(frames * width * height * 3), random);
    const std::string name = cat("item ", i);
    items.push_back(is_video ? video_rgb(std::move(rgb), frames, width, height, 2.0, name)
                             : image_rgb(std::move(rgb), width, height, name));
  }
  return items;
}

/// Everything about an embedding but its times, as text: two are equal if these are.
inline std::string text_of(const Embedding& item) {
  const auto bytes =
      std::string_view(reinterpret_cast<const char*>(item.data.data()), item.data.size());
  std::string text = cat(item.name, ' ', static_cast<int>(item.modality), ' ', item.rows, ' ',
                         item.width, ' ', static_cast<int>(item.dtype), ' ', fnv1a(bytes), ' ',
                         item.source_width_px, ' ', item.source_height_px, ' ', item.num_frames,
                         ' ', item.resized_width_px, ' ', item.resized_height_px);
  if (item.grid_thw) {
    for (const std::int64_t side : *item.grid_thw) text += cat(" grid ", side);
  }
  if (item.retained) {
    for (const std::int64_t row : *item.retained) text += cat(" retained ", row);
  }
  for (const double time : item.timestamps) text += cat(" time ", time);
  if (item.error) text += cat(" error ", to_string(item.error->code()), ' ', item.error->what());
  return text;
}

inline std::vector<std::string> texts_of(std::span<const Embedding> items) {
  std::vector<std::string> texts;
  for (const Embedding& item : items) texts.push_back(text_of(item));
  return texts;
}

}  // namespace fovea::test
