#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "fovea/options.h"

namespace fovea::test {

/// Profiles by the names that the golden file and the command line have for them.
inline const std::map<std::string, MediaProfile> kMediaProfiles = {
    {"vllm", MediaProfile::kVllm},
    {"vllm-0.23", MediaProfile::kVllm023},
    {"transformers", MediaProfile::kTransformers},
    {"sglang", MediaProfile::kSglang}};

/// An encoded image and the pixels that a loader made of it.
struct MediaProfileCase {
  std::string name;
  std::vector<std::uint8_t> file;
  std::int64_t width_px;
  std::int64_t height_px;
  std::vector<std::uint8_t> rgb;
};

inline std::vector<std::uint8_t> bytes_of_tensor(const checkpoint::SafetensorsFile& golden,
                                                 const std::string& tensor) {
  const ConstTensorView view = golden.tensor(tensor);
  return {view.as<std::uint8_t>(), view.as<std::uint8_t>() + view.bytes()};
}

/// The images of a golden file of tests/media that no loader takes; those without pixels.
inline std::vector<MediaProfileCase> refused_images(const std::string& file) {
  const checkpoint::SafetensorsFile golden(FOVEA_TEST_SOURCE_DIR "/tests/media/" + file);
  std::set<std::string> taken;
  for (const checkpoint::TensorEntry& tensor : golden.header().tensors)
    if (tensor.name.find(':') != std::string::npos)
      taken.insert(tensor.name.substr(0, tensor.name.find(':')));
  std::vector<MediaProfileCase> cases;
  for (const checkpoint::TensorEntry& tensor : golden.header().tensors)
    if (tensor.name.find(':') == std::string::npos && !taken.contains(tensor.name))
      cases.push_back({tensor.name, bytes_of_tensor(golden, tensor.name), 0, 0, {}});
  return cases;
}

/// All images of a golden file of tests/media that the loader takes. The file holds an image as
/// NAME and its pixels as NAME:PROFILE, or NAME:PROFILE,PROFILE,... where several agree.
inline std::vector<MediaProfileCase> media_profile_cases(
    const std::string& profile, const std::string& file = "profiles.safetensors") {
  const checkpoint::SafetensorsFile golden(FOVEA_TEST_SOURCE_DIR "/tests/media/" + file);
  const auto bytes_of = [&](const std::string& tensor) { return bytes_of_tensor(golden, tensor); };
  std::vector<MediaProfileCase> cases;
  for (const checkpoint::TensorEntry& tensor : golden.header().tensors) {
    const std::size_t colon = tensor.name.find(':');
    if (colon == std::string::npos) continue;
    const std::string profiles = "," + tensor.name.substr(colon + 1) + ",";
    if (profiles.find("," + profile + ",") == std::string::npos) continue;
    const std::string image = tensor.name.substr(0, colon);
    cases.push_back(
        {image, bytes_of(image), tensor.shape[1], tensor.shape[0], bytes_of(tensor.name)});
  }
  return cases;
}

}  // namespace fovea::test
