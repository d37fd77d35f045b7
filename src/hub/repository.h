#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hub/http.h"
#include "hub/place.h"

namespace fovea::hub {

/// A repository at one of its commits.
struct Snapshot {
  std::string commit;
  std::vector<std::string> files;  ///< paths in the repository, as the hub lists them
};

/// A file of a repository.
struct HubFile {
  std::string name;
  std::string etag;  ///< the digest of its content; a plain file name
  std::uint64_t size = 0;
  std::string url;
};

/// A model's repository on the hub. Source: huggingface_hub 2.4, `HfApi.model_info` and
/// `get_hf_file_metadata`.
class Repository {
 public:
  /// @param name that is_hub_name.
  Repository(Place place, std::string name);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Asks which commit a revision is, and which files it has.
  /// @throws Error(kNotFound), Error(kInvalidArgument) where a token is missing or refused,
  /// Error(kUnavailable) if the hub does not answer or wants no more requests, Error(kCorruptData)
  /// for an answer that is none.
  [[nodiscard]] Snapshot snapshot(const std::string& revision);
  /// Asks what a file is. @throws as snapshot.
  [[nodiscard]] HubFile file(const Snapshot& snapshot, const std::string& name);

  /// Where the bytes of a file go.
  struct Sink {
    std::function<void()> restart;  ///< the file comes from its beginning after all
    std::function<void(std::span<const std::byte> bytes)> add;
  };
  /// Gets a file from a byte on. @returns why the connection ended early, or "".
  /// @throws as snapshot, Error(kUnsupported) for what another try would not change, a host that is
  /// not trusted for example, and what the sink throws.
  [[nodiscard]] std::string read(const HubFile& file, std::uint64_t begin, const Sink& sink);

 private:
  [[nodiscard]] std::vector<std::string> headers() const;
  [[nodiscard]] HttpHead head_of(std::string url);
  void check_status(const HttpHead& head, const std::string& what) const;
  [[noreturn]] void refuse(const HttpHead& head, const std::string& what) const;

  Place place_;
  std::string name_;
  HttpSession session_;
};

}  // namespace fovea::hub
