#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "fovea/atomic_file.h"

namespace fovea::cli {

/// Checks, before the work starts, that all outputs can be written and that none replaces a file
/// that the run reads.
/// @param outputs of the run; an empty path is an output that is not wanted.
/// @param inputs files that the run reads; names without a file are ignored.
/// @throws Error(kIo) as output_target() does, UsageError if two outputs are the same file or an
/// output is an input, also through links.
void check_output_paths(std::initializer_list<std::string> outputs,
                        std::span<const std::string> inputs);

/// Writes a text to the disk without making it visible, so that several outputs of one run can be
/// committed together. @throws Error(kIo) with the system's reason.
[[nodiscard]] AtomicFile prepare_text_file(const std::string& path, std::string_view content);

/// Writes one text file, complete or not at all. @throws Error(kIo) with the system's reason.
void write_text_file(const std::string& path, std::string_view content);

/// Most bytes of a list of sizes or inputs, or of a file of requests, for read_text_file().
inline constexpr std::size_t kMaxTextFileBytes = std::size_t{64} << 20;

}  // namespace fovea::cli
