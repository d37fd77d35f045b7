#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_descriptor.h"

namespace fovea::serve {

/// Opens a regular file for reading that lies below an open folder, wherever symbolic links on the
/// way lead; the last component may be none. Not open if there is none, and for a path that is
/// absolute or has a component "..". Each look at the tree is the one that opens, so no one can
/// change the tree between a check and its use. Source: openat2(2), RESOLVE_BENEATH.
[[nodiscard]] FileDescriptor open_beneath(const FileDescriptor& folder, const std::string& path);
/// The same for systems without openat2(): follows no symbolic link at all.
[[nodiscard]] FileDescriptor open_by_components(const FileDescriptor& folder,
                                                const std::string& path);

/// The files that clients may name.
class LocalFiles {
 public:
  /// @param folder that they lie in, or empty: there are none.
  /// @throws Error(kInvalidArgument) if it is no folder.
  explicit LocalFiles(const std::string& folder);

  /// The bytes that a file: URL names; those of a file larger than max_bytes end one byte behind
  /// them. @param param for messages, as in ApiError.
  /// @throws ApiError(403, "local_media_forbidden") for everything that is no readable regular file
  /// below the folder; the message does not say which of these it is.
  [[nodiscard]] std::vector<std::uint8_t> read(std::string_view url, std::size_t max_bytes,
                                               const std::string& param) const;

 private:
  std::vector<std::string> prefixes_;  ///< the folder as it was given, and without symbolic links
  FileDescriptor folder_;
};

}  // namespace fovea::serve
