#pragma once

// Bytes of golden images and videos against the checksums that golden files hold of them.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "fovea/tower/models/item_processor.h"
#include "media/decode_image.h"

namespace fovea::test {

/// CRC-32 as ZIP archives have it.
inline std::int64_t zip_crc32(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return std::int64_t{~crc};
}

/// Pixels of an item in the order of the reference's pixel values.
using InReferenceOrder = std::function<std::vector<std::uint8_t>(const ItemPlan& plan,
                                                                 std::vector<std::uint8_t> pixels)>;

/// Compares what a processor makes of frames with the checksum `key` of a file.
inline void expect_golden_bytes(const ItemProcessor& processor, const ItemPlan& plan,
                                std::span<const std::uint8_t> frames,
                                const checkpoint::SafetensorsFile& file, const std::string& key,
                                const InReferenceOrder& ordered) {
  SCOPED_TRACE(key);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  const std::size_t frame_bytes = frames.size() / static_cast<std::size_t>(plan.num_frames);
  for (std::int64_t f = 0; f < plan.num_frames; ++f) {
    processor.fill_frame(plan, f,
                         {frames.data() + static_cast<std::size_t>(f) * frame_bytes,
                          plan.source_width_px, plan.source_height_px},
                         pixels);
  }
  std::int64_t crc = 0;
  std::memcpy(&crc, file.tensor(key).data, sizeof(crc));
  EXPECT_EQ(zip_crc32(ordered(plan, std::move(pixels))), crc);
}

/// The images of a golden folder, those of its preprocess.safetensors, and its video, if any.
inline void expect_golden_folder_bytes(const ItemProcessor& processor, const std::string& folder,
                                       const InReferenceOrder& ordered) {
  const checkpoint::SafetensorsFile golden(folder + "/golden.safetensors");
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
    const std::string path = entry.path().string();
    const media::Image image = media::decode_image(read_file(path, 1 << 24), path, {});
    expect_golden_bytes(processor, processor.plan_image(image.width_px, image.height_px), image.rgb,
                        golden, entry.path().stem().string() + ".in.pixel_values_u8.crc32",
                        ordered);
  }
  const auto bytes_of = [](const ConstTensorView& view) {
    return std::span(view.as<std::uint8_t>(), view.bytes());
  };
  const checkpoint::SafetensorsFile sizes(folder + "/preprocess.safetensors");
  for (const checkpoint::TensorEntry& entry : sizes.header().tensors) {
    if (!entry.name.ends_with(".rgb")) continue;
    const std::string name = entry.name.substr(0, entry.name.size() - 4);
    if (sizes.find(name + ".pixel_values_u8.crc32") == nullptr) continue;
    expect_golden_bytes(processor, processor.plan_image(entry.shape[1], entry.shape[0]),
                        bytes_of(sizes.tensor(entry.name)), sizes, name + ".pixel_values_u8.crc32",
                        ordered);
  }
  const auto* const video = golden.find("video.frames");
  if (video == nullptr) return;
  expect_golden_bytes(processor,
                      processor.plan_video(video->shape[0], video->shape[2], video->shape[1]),
                      bytes_of(golden.tensor(video->name)), golden,
                      "video.in.pixel_values_videos_u8.crc32", ordered);
}

}  // namespace fovea::test
