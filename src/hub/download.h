#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fovea/log.h"
#include "hub/repository.h"

namespace fovea::hub {

/// Where a file of the hub goes on its way.
struct FilePaths {
  std::string lock;
  std::string partial;  ///< as it grows, in the same file system
  std::string final;    ///< appears complete
};

/// What a download tells.
struct DownloadWatch {
  std::function<void(std::uint64_t bytes)> on_bytes;  ///< of the file that are there
  LogSink* log = nullptr;
};

/// Whether `path` is a file with the content of `file`. Reads all of it where the length is right.
/// @throws Error(kIo), and as check_interrupt().
[[nodiscard]] bool has_content(const std::string& path, const HubFile& file);

/// Downloads a file to paths.final, from where an earlier download has stopped; nothing if it is
/// there. A connection that breaks is made again, at once as long as it brought bytes that no
/// earlier one had, else 4 times after 1, 2, 4 and 8 s.
/// @param trusts_name whether a file of the right length under paths.final is taken for the file:
/// its name is its digest.
/// @throws Error(kCorruptData) if what came is not the file, whose bytes are then gone,
/// Error(kUnavailable), Error(kIo), also where the disk has too little room, and as
/// Repository::read.
void download(Repository& repository, const HubFile& file, const FilePaths& paths, bool trusts_name,
              const DownloadWatch& watch);

}  // namespace fovea::hub
