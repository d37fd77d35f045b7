// Text files, and the rule that no output destroys an input.
#include "output_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "errors.h"

namespace fovea::cli {
namespace {

/// The identity of a file, whatever it is called: device and inode.
using FileId = std::pair<dev_t, ino_t>;

std::optional<FileId> file_id(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId(status.st_dev, status.st_ino);
}

}  // namespace

void check_output_paths(std::initializer_list<std::string> outputs,
                        std::span<const std::string> inputs) {
  std::map<FileId, std::string> read;
  for (const std::string& input : inputs) {
    if (const std::optional<FileId> id = file_id(input)) read.emplace(*id, input);
  }
  std::set<std::filesystem::path> written;
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    if (!written.insert(std::filesystem::weakly_canonical(output_target(output))).second) {
      throw UsageError(output + ": expected a file for each output, got one for two of them");
    }
    const std::optional<FileId> id = file_id(output);
    if (const auto input = id ? read.find(*id) : read.end(); input != read.end()) {
      throw UsageError(output + ": expected a file of its own for the output, got the input " +
                       input->second);
    }
  }
}

AtomicFile prepare_text_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(content)));
  file.flush();
  return file;
}

void write_text_file(const std::string& path, std::string_view content) {
  prepare_text_file(path, content).commit();
}

}  // namespace fovea::cli
