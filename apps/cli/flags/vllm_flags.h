#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "console.h"
#include "fovea/options.h"

namespace fovea::cli {

/// Flags under which vLLM has settings that Fovea names otherwise, as the user gave them.
struct VllmFlags {
  std::int64_t tensor_parallel_size = 1;
  std::string mm_encoder_tp_mode = "weights";
  std::string limit_mm_per_prompt;  ///< JSON, or empty
  bool has_prompts = false;         ///< of the command, which then holds to all of those limits
  std::int64_t max_model_len = 0;   ///< tokens; 0: no limit
};

/// Adds them under a heading of their own.
void add_vllm_flags(CLI::App& verb, VllmFlags& flags);

/// Translates them: replicas instead of shards of the tower, no graphs for videos that no prompt
/// may have, and budgets within the length of a prompt.
/// @throws UsageError for a tower that is to be sharded, for JSON that is not understood, and for
/// limits that change nothing because the command has no prompts.
/// Source: vLLM 0.26, ParallelConfig, MultiModalConfig and the budget ranges of its encoder graphs.
void apply_vllm_flags(const VllmFlags& flags, EngineOptions& options);

/// Most media of a modality, "image" or "video", in a prompt; absent: not limited.
/// @param json_text value of --limit-mm-per-prompt, counts or objects with "count"; or empty.
/// @throws UsageError for JSON that is not understood.
[[nodiscard]] std::optional<std::int64_t> prompt_limit(const std::string& json_text,
                                                       std::string_view modality);

/// The attention backend behind one of vLLM's names, or of Fovea's; tells `console` what another
/// name stands for.
/// @param name one of attention_names().
[[nodiscard]] AttentionBackend attention_backend(const std::string& name, Console& console);
[[nodiscard]] std::vector<std::string> attention_names();

}  // namespace fovea::cli
