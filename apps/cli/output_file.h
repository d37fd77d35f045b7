#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "fovea/atomic_file.h"

namespace fovea::cli {

/// Finds out before the work starts what an output would fail at or destroy.
/// @param outputs of a run; an empty path stands for one that is not wanted.
/// @param inputs files that the run reads; names without a file behind them do not matter.
/// @throws Error(kIo) as output_target() does, UsageError if an output is another one or an input,
/// under whatever name.
void check_output_paths(std::initializer_list<std::string> outputs,
                        std::span<const std::string> inputs);

/// A text that is on the disk, but not yet visible: several outputs of one run are prepared first
/// and committed together. @throws Error(kIo) with the system's reason.
[[nodiscard]] AtomicFile prepare_text_file(const std::string& path, std::string_view content);

/// Writes one text file, complete or not at all. @throws Error(kIo) with the system's reason.
void write_text_file(const std::string& path, std::string_view content);

/// Reads a text file the user named on the command line (lists of sizes or inputs).
/// @throws Error(kNotFound), Error(kIo).
[[nodiscard]] std::string read_text_file(const std::string& path);

}  // namespace fovea::cli
