#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace fovea::cuda {

/// Whether code for one architecture, as in CMAKE_CUDA_ARCHITECTURES ("86", "80-virtual",
/// "90a-real"), runs on a GPU of compute capability `major`.`minor`. Machine code runs on its own
/// major version from its minor version on, PTX on everything from its version on, and code with
/// instructions of one architecture ("a") on that alone.
[[nodiscard]] inline bool runs_on(std::string_view architecture, int major, int minor) {
  int number = 0;
  const auto [end, error] =
      std::from_chars(architecture.data(), architecture.data() + architecture.size(), number);
  if (error != std::errc()) return false;
  const std::string_view rest =
      architecture.substr(static_cast<std::size_t>(end - architecture.data()));
  const int own = 10 * major + minor;
  if (!rest.empty() && rest.front() == 'a') return number == own;
  const bool machine_code = rest != "-virtual" && number / 10 == major && number <= own;
  const bool ptx = rest != "-real" && number <= own;
  return machine_code || ptx;
}

/// Why a build for `architectures`, separated by commas, cannot use a GPU of compute capability
/// `major`.`minor`; empty if it can.
[[nodiscard]] inline std::string refusal_of_compute(std::string_view architectures, int major,
                                                    int minor) {
  for (std::string_view rest = architectures; !rest.empty();) {
    const std::size_t length = std::min(rest.find(','), rest.size());
    if (runs_on(rest.substr(0, length), major, minor)) return "";
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  return "the plugin was built for the architectures " + std::string(architectures) +
         "; it needs one that compute " + std::to_string(major) + "." + std::to_string(minor) +
         " runs, at least 8.0";
}

/// Which kernels serve a GPU that is not refused. @param has_hopper whether the build has those of
/// sm_90a.
[[nodiscard]] inline const char* kernels_of_compute(int major, int minor, bool has_hopper) {
  return has_hopper && major == 9 && minor == 0 ? "Hopper and portable kernels"
                                                : "portable kernels";
}

}  // namespace fovea::cuda
