#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/http/server.h"
#include "serve/media/fetch_headers.h"

namespace fovea::serve {

/// Files that an operator may replace while the server runs.
struct ServerPaths {
  std::string api_keys;  ///< empty: none
  std::optional<TlsFiles> tls;
  std::string media_headers;        ///< as FetchHeaders::read() has it; empty: none
  FetchHeaders more_media_headers;  ///< beside those of the file
};

/// The contents of these files.
struct ServerFiles {
  std::vector<std::string> api_keys;
  std::optional<TlsTexts> tls;
  FetchHeaders media_headers;  ///< of the file and beside it
};

/// @throws as keys_in(), read_tls() and FetchHeaders::read().
[[nodiscard]] ServerFiles read_files(const ServerPaths& paths);

/// Keys of a file, one per line; empty lines and those that begin with '#' are none.
/// @throws Error(kInvalidArgument) for a file without a key, because a server without keys is open
/// to all, or with more than 4 MiB; Error(kNotFound), Error(kIo), also for what is no regular file.
[[nodiscard]] std::vector<std::string> keys_in(const std::string& path);

}  // namespace fovea::serve
