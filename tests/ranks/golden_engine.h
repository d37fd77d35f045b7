#pragma once

#include <string>

#include "fovea/engine.h"
#include "support/golden.h"

namespace fovea::test {

/// The checkpoint of a small Qwen3-VL.
inline std::string golden_qwen() { return golden_folder("qwen3_vl", "model.safetensors"); }

/// An engine with one thread on the CPU.
inline Engine load_on_cpu(const std::string& model, EngineOptions options = {}) {
  options.device = "cpu";
  options.num_threads = 1;
  return Engine::load(model, options);
}

}  // namespace fovea::test
