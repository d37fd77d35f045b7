#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea::hub {

/// The JSON files of a repository that a model is read from, in the order in which they are wanted:
/// config.json, those of the processor, and the index of the weights where there are shards.
/// @param listed the paths of all its files.
[[nodiscard]] std::vector<std::string> description_files(const std::vector<std::string>& listed);

/// Whether a folder with a model of these files would be read otherwise if this file lay in it,
/// too: one of another model, or of another revision. @param listed as above.
[[nodiscard]] bool is_foreign(const std::vector<std::string>& listed, std::string_view file);

/// The files with the tensors of the tower, ascending: model.safetensors, else the shards that the
/// index names for them, else the only other *.safetensors file, or all shards of one set.
/// @param directory that holds the description files. @param name of the model, for messages.
/// @throws Error(kNotFound) if there are no weights as safetensors, or no tower in them;
/// Error(kUnsupported) for models of no family, Error(kCorruptData) for broken description files.
[[nodiscard]] std::vector<std::string> weight_files(const std::vector<std::string>& listed,
                                                    const std::string& directory,
                                                    const std::string& name);

}  // namespace fovea::hub
