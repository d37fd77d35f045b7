#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace fovea::cli {

/// A flag that there is no more, or that only vLLM has, and what to say in its place.
struct RemovedFlag {
  std::string_view name;
  std::string_view instead;
};

/// Names of vLLM that are translated on the command line are here for the environment and for
/// files of --config, where they are not.
inline constexpr std::array kRemovedFlags{
    RemovedFlag{"--mm-processor-kwargs",
                "--min-pixels and --max-pixels are for all items; `fovea encode` has the flag, and "
                "requests "
                "to a server have the member"},
    RemovedFlag{"--plot", "tools/chart.py draws what --output-json writes, and --stats of encode"},
    RemovedFlag{"--compilation-config",
                "its keys are --enforce-eager, --token-budgets, --max-items-per-batch and "
                "--max-frames-per-batch"},
    RemovedFlag{"--tensor-parallel-size", "replicas are --data-parallel-size"},
    RemovedFlag{"--mm-encoder-tp-mode", "replicas are --data-parallel-size"},
    RemovedFlag{"--limit-mm-per-prompt",
                "its keys are --max-images-per-prompt and --max-videos-per-prompt"},
    RemovedFlag{"--max-model-len", "budgets are bounded by --max-num-batched-tokens"},
    RemovedFlag{"--ec-transfer-config", "its folder is --ec-dir"}};

/// The entry of a flag, "--name"; nullptr for others.
constexpr const RemovedFlag* find_removed_flag(std::string_view name) {
  const auto* const found = std::ranges::find(kRemovedFlags, name, &RemovedFlag::name);
  return found == kRemovedFlags.end() ? nullptr : found;
}

}  // namespace fovea::cli
