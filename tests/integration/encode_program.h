#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "integration/run_program.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea::test {

/// Runs `fovea encode` on the golden checkpoint of Qwen3-VL, with its output in a folder of its
/// own.
class EncodeProgram : public ::testing::Test {
 protected:
  [[nodiscard]] std::string image(const std::string& name) const {
    return model_ + "/images/" + name;
  }
  [[nodiscard]] std::string output() const { return folder_ / "rows.safetensors"; }

  [[nodiscard]] ProgramResult encode(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"encode", model_, "--output", output()});
    return run_fovea(arguments);
  }

  /// Rows of item i in the output.
  [[nodiscard]] std::vector<std::int64_t> shape_of(int i) const {
    const checkpoint::SafetensorsFile file(output());
    return file.find("item_" + std::to_string(i))->shape;
  }

  const std::string model_ = golden_folder("qwen3_vl", "model.safetensors");
  const std::string photo_ = image("photo_180x180.jpg");       // 36 rows
  const std::string gradient_ = image("gradient_64x200.png");  // 12 rows
  const std::string noise_ = image("noise_101x61.png");        // 6 rows
  const std::string frames_ = model_ + "/video_frames";        // 90 rows
  TemporaryDirectory folder_;
};

}  // namespace fovea::test
