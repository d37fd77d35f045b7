// Keys and certificates of a running server.
#include "serve/server_files.h"

#include <cstddef>
#include <sstream>

#include "fovea/error.h"
#include "fovea/text.h"

namespace fovea::serve {

std::vector<std::string> keys_in(const std::string& path) {
  constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
  std::vector<std::string> keys;
  std::istringstream lines(read_text_file(path, kMaxBytes));
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line.front() != '#') keys.push_back(line);
  }
  if (!keys.empty()) return keys;
  throw Error(ErrorCode::kInvalidArgument,
              path + ": expected an API key on a line of its own, got a file without one");
}

ServerFiles read_files(const ServerPaths& paths) {
  ServerFiles files;
  if (!paths.api_keys.empty()) files.api_keys = keys_in(paths.api_keys);
  if (paths.tls) files.tls = read_tls(*paths.tls);
  files.media_headers = paths.more_media_headers;
  if (!paths.media_headers.empty()) files.media_headers.read(paths.media_headers);
  return files;
}

}  // namespace fovea::serve
