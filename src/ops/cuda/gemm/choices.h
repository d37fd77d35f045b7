#pragma once

#include <map>
#include <string>

#include "ops/cuda/gemm/gemm.h"

namespace fovea::cuda {

/// Reads the choices stored at `path` for `identity` (GPU model and software). Empty if
/// there is no path, no file, or the file is damaged or of another identity: choices are only a
/// shortcut.
[[nodiscard]] std::map<GemmKey, GemmChoice> load_gemm_choices(const std::string& path,
                                                              const std::string& identity);

/// Replaces the file at `path`, and makes its folder if there is none; does nothing without a path.
/// A file that cannot be written costs the next process its measurements and nothing else, so it is
/// no error.
void save_gemm_choices(const std::string& path, const std::string& identity,
                       const std::map<GemmKey, GemmChoice>& choices);

}  // namespace fovea::cuda
