#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "core/lru.h"
#include "fovea/embedding.h"
#include "serve/http/message.h"

namespace fovea::serve {

/// A folder that language models read rows from.
struct PublisherOptions {
  std::string directory;  ///< must exist; on one host best a tmpfs
  /// Bytes of all files under their names; one that is replaced takes its room twice for a moment.
  std::int64_t max_bytes = std::int64_t{16} << 30;
  /// No younger file goes: a reader may have looked whether it is there, and open it later.
  std::chrono::milliseconds min_age = std::chrono::minutes(15);
  std::function<Clock::time_point()> now = Clock::now;
};

struct PublisherStats {
  std::int64_t entries = 0;
  std::int64_t bytes = 0;
  std::int64_t max_bytes = 0;
  std::int64_t published = 0;  ///< since the start
  std::int64_t pruned = 0;     ///< since the start
};

/// Checks a name under which rows are to be found. It becomes the name of a folder as it is,
/// because readers look for them under that very name.
/// @throws ApiError(400, "invalid_uuid") unless it is 1 to 255 bytes of UTF-8 without '/' and
/// control characters, which no path of a URL holds, and neither "." nor "..".
void check_key(std::string_view key, const std::string& param);

/// Writes rows where vLLM's ECExampleConnector looks for them:
/// `<directory>/<key>/encoder_cache.safetensors` with the tensor `ec_cache` [rows, width]. A file
/// is there complete or not at all. Those published longest ago go when room is needed. Several
/// servers may write to one folder, but each knows of the files of others only what it found when
/// it started. Thread-safe. Source: vLLM,
/// vllm/distributed/ec_transfer/ec_connector/example_connector.py.
class Publisher {
 public:
  /// Reads what is in the folder, and removes what writers left unfinished long ago.
  /// @throws Error(kNotFound) without a folder, Error(kIo) with the system's reason.
  explicit Publisher(PublisherOptions options);

  /// Makes the rows visible under the key, in place of what was there.
  /// @throws ApiError(400, "invalid_uuid"); ApiError(507, "ec_storage_full") if nothing that may go
  /// makes enough room, and nothing goes then; ApiError(500, "ec_publish_failed") with the system's
  /// reason, and the old file, if there is one, remains.
  void publish(const std::string& key, const Embedding& item);

  [[nodiscard]] PublisherStats stats() const;
  [[nodiscard]] const PublisherOptions& options() const noexcept { return options_; }

 private:
  /// By the bytes of the file of each key, 0 before there is one. A writer pins its key: neither
  /// file nor folder goes.
  using Files = Lru<std::string, Clock::time_point>;  // when it was published

  void scan();
  std::int64_t promise_room(const std::string& key, std::int64_t bytes);
  void prune(std::int64_t needed, const std::string& except);
  void leave(const std::string& key, std::int64_t promised);
  [[nodiscard]] std::string folder_of(std::string_view key) const;

  PublisherOptions options_;
  mutable std::mutex mutex_;
  Files files_;                // the one published longest ago goes first
  std::int64_t promised_ = 0;  // to writers, beyond what they replace
  std::int64_t published_ = 0;
  std::int64_t pruned_ = 0;
};

}  // namespace fovea::serve
