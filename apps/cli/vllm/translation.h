#pragma once

#include <map>
#include <string>
#include <vector>

namespace fovea::cli {

/// A command line that was given in words of vLLM, in flags of this program.
struct Translation {
  std::vector<std::string> arguments;
  std::vector<std::string>
      warnings;  ///< about flags without effect and values with another meaning
  std::map<std::string, std::string> sources;  ///< flags that were put there, and what was typed

  /// The complaint about a flag that was put there, as one about what was typed:
  /// "--token-budgets: expected ..." becomes "--compilation-config:
  /// encoder_cudagraph_token_budgets: expected ...".
  [[nodiscard]] std::string in_typed_words(std::string complaint) const;
};

/// Replaces names of vLLM, which docs/cli.md lists. This is the only place that knows them: the
/// flags that the verbs have are those of this program, which win where both are given.
/// @param arguments those after the name of the program, without underscores in names of flags.
/// @throws UsageError for values that vLLM would refuse as well, for a tower that is to be divided,
/// and for limits of prompts that change nothing because the verb has no prompts.
/// Source: vLLM 0.33, ParallelConfig, MultiModalConfig, CompilationConfig, ECTransferConfig and
/// `vllm bench mm-processor`; docs/reference/encoder_graphs.md, "Compilation config".
[[nodiscard]] Translation translate_vllm(std::vector<std::string> arguments);

}  // namespace fovea::cli
