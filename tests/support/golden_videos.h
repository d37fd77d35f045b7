#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace fovea::test {

/// A file of tests/media/golden_videos, and what PyAV reads of it (tools/golden_videos.py).
struct GoldenVideo {
  std::string name;
  std::string path;
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  double fps = 0;
  std::vector<std::string> frame_hashes;  ///< SHA-256 of the RGB bytes of each frame, in hex
};

inline std::vector<GoldenVideo> golden_videos() {
  const std::string folder = FOVEA_TEST_SOURCE_DIR "/tests/media/golden_videos/";
  std::ifstream stream(folder + "frames.json");
  std::vector<GoldenVideo> videos;
  const nlohmann::json contents = nlohmann::json::parse(stream);
  for (const auto& [name, file] : contents.at("files").items()) {
    videos.push_back({.name = name,
                      .path = folder + name,
                      .width_px = file.at("width"),
                      .height_px = file.at("height"),
                      .fps = file.at("fps"),
                      .frame_hashes = file.at("frames")});
  }
  return videos;
}

}  // namespace fovea::test
