#pragma once

#include <string>
#include <string_view>

namespace fovea::cli {

/// Directory where the Hugging Face libraries keep what they have downloaded: $HF_HUB_CACHE, else
/// $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else $HOME/.cache/huggingface/hub; empty
/// without any of these variables. Source: huggingface_hub 1.0, "Environment variables".
[[nodiscard]] std::string hub_cache_dir();

/// Whether a text is "<organisation>/<name>" in the characters that the hub allows.
[[nodiscard]] bool is_hub_name(std::string_view text);

/// Directory of the snapshot of the main branch of a repository in the cache; empty if it is not
/// there. @param kind "models" or "datasets". @param name that is_hub_name.
/// Source: huggingface_hub 1.0, "Understand caching": <kind>--<org>--<name>/{refs,snapshots}.
[[nodiscard]] std::string hub_snapshot(const std::string& kind, const std::string& name);

/// Replaces the name of a model on the hub, such as "Qwen/Qwen3-VL-8B-Instruct", by the directory
/// of the snapshot of its main branch in the cache. Anything else, and a name that is also a path
/// of this machine, stays as it is. Nothing is downloaded.
/// @returns what is wrong with a name that is no path and not in the cache, or "".
[[nodiscard]] std::string resolve_hub_name(std::string& model);

}  // namespace fovea::cli
