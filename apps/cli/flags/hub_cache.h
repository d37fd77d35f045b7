#pragma once

#include <string>

namespace fovea::cli {

/// Directory where the Hugging Face libraries keep what they have downloaded: $HF_HUB_CACHE, else
/// $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else $HOME/.cache/huggingface/hub; empty
/// without any of these variables. Source: huggingface_hub 1.0, "Environment variables".
[[nodiscard]] std::string hub_cache_dir();

/// Replaces the name of a model on the hub, such as "Qwen/Qwen3-VL-8B-Instruct", by the directory
/// of the snapshot of its main branch in the cache. Anything else, and a name that is also a path
/// of this machine, stays as it is. Nothing is downloaded.
/// @returns what is wrong with a name that is no path and not in the cache, or "".
/// Source: huggingface_hub 1.0, "Understand caching": models--<org>--<name>/{refs,snapshots}.
[[nodiscard]] std::string resolve_hub_name(std::string& model);

}  // namespace fovea::cli
