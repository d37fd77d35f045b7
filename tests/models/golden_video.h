#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "models/golden_model.h"

namespace fovea::test {

/// The video of a golden checkpoint as the processor of its family prepares it, all frames sampled.
inline PreparedItem golden_video(const ItemProcessor& processor,
                                 const checkpoint::SafetensorsFile& file) {
  const ConstTensorView frames = file.tensor("video.frames");  // [frames, height, width, 3] u8
  const std::int64_t height = frames.shape[1];
  const std::int64_t width = frames.shape[2];
  PreparedItem item{.plan = processor.plan_video(frames.shape[0], width, height), .pixels = {}};
  item.pixels.resize(item.plan.pixel_bytes);
  for (std::int64_t i = 0; i < frames.shape[0]; ++i) {
    const auto* const rgb = frames.as<std::uint8_t>() + i * height * width * 3;
    processor.fill_frame(item.plan, i, {rgb, width, height}, item.pixels);
  }
  return item;
}

/// Compares the rows of the video of a golden checkpoint with those of the reference.
/// @param tolerance of the norm of their difference, relative to that of the rows.
inline void expect_golden_video(const std::string& folder, double tolerance) {
  const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
  const GoldenModel golden(folder);
  const PreparedItem item = golden_video(golden.model->processor(), file);
  const PreparedItem* const pointer = &item;
  const std::vector<std::byte> rows = golden.run_alone({&pointer, 1}).front();
  const ConstTensorView want = file.tensor("video.out.pooler_output");
  ASSERT_EQ(rows.size(), want.bytes());
  const auto* const got = reinterpret_cast<const float*>(rows.data());
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < rows.size() / sizeof(float); ++i) {
    const auto reference = double{want.as<float>()[i]};
    difference += std::pow(double{got[i]} - reference, 2);
    norm += reference * reference;
  }
  EXPECT_LE(std::sqrt(difference / norm), tolerance);
}

}  // namespace fovea::test
