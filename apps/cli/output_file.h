#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace fovea::cli {

/// Finds out before the work starts that a result could not be written: the directory must exist
/// and be writable, and what is at `path` must be a file or nothing.
/// @throws Error(kIo) naming the path and the reason.
void check_output_path(const std::string& path);

/// The same for all outputs of a run; an empty path stands for one that is not wanted.
/// @throws UsageError if two outputs are one file.
void check_output_paths(std::initializer_list<std::string> paths);

/// A text file that appears under its name complete or not at all. The text is on disk when the
/// constructor returns; commit() makes it visible; without commit it leaves no trace. Several
/// outputs of one run are prepared first and committed together.
class PendingFile {
 public:
  /// @throws Error(kIo) with the system's reason.
  PendingFile(std::string path, std::string_view content);
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();

  /// @throws Error(kIo) with the system's reason.
  void commit();

 private:
  std::string path_;
  std::string temporary_;  // empty: committed or moved from
};

/// Writes one text file, complete or not at all. @throws Error(kIo) with the system's reason.
void write_text_file(const std::string& path, std::string_view content);

/// Reads a text file the user named on the command line (lists of sizes or inputs).
/// @throws Error(kNotFound), Error(kIo).
[[nodiscard]] std::string read_text_file(const std::string& path);

}  // namespace fovea::cli
