#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/json.h"
#include "support/temporary_directory.h"

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
  std::vector<GoldenVideo> videos;
  const Json files = Json::parse(read_text(folder + "frames.json")).at("files");
  for (const std::string& name : files.names()) {
    const Json& file = files[name];
    videos.push_back({.name = name,
                      .path = folder + name,
                      .width_px = file["width"].get<std::int64_t>(),
                      .height_px = file["height"].get<std::int64_t>(),
                      .fps = file["fps"].get<double>(),
                      .frame_hashes = {file["frames"].begin(), file["frames"].end()}});
  }
  return videos;
}

}  // namespace fovea::test
