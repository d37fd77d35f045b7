#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fovea/call_bounds.h"
#include "fovea/export.h"
#include "fovea/log.h"

namespace fovea {

/// Models by their names on the hub of Hugging Face, and the cache that its libraries share on a
/// machine. Places and tokens are those of the environment, as huggingface_hub reads it:
/// HF_HUB_CACHE, HF_HOME and XDG_CACHE_HOME, HF_ENDPOINT, HF_TOKEN and HF_TOKEN_PATH,
/// HF_HUB_OFFLINE. Source: huggingface_hub 2.4, "Environment variables" and "Understand caching".

/// What to get of a model.
inline constexpr const char* kMainRevision = "main";

/// Whether a text is "<organisation>/<name>" in the characters that the hub allows.
[[nodiscard]] FOVEA_API bool is_hub_name(std::string_view text) noexcept;

/// Directory of the hub cache: $HF_HUB_CACHE, else $HF_HOME/hub, else
/// $XDG_CACHE_HOME/huggingface/hub, else $HOME/.cache/huggingface/hub; empty without any of these.
[[nodiscard]] FOVEA_API std::string hub_cache_dir();

/// Kind of a repository.
enum class HubKind : std::uint8_t { kModel, kDataset };

/// Directory of a snapshot in the hub cache; nothing if it is not there. Asks nobody.
/// @param name that is_hub_name. @param revision a branch, a tag or the number of a commit.
[[nodiscard]] FOVEA_API std::optional<std::string> find_on_disk(
    const std::string& name, const std::string& revision = kMainRevision,
    HubKind kind = HubKind::kModel);

/// How far a pull is.
struct PullProgress {
  std::string file;              ///< that is being downloaded
  std::uint64_t done_bytes = 0;  ///< of all files whose sizes are known so far
  std::uint64_t total_bytes = 0;
};

struct PullOptions {
  std::string revision = kMainRevision;  ///< a branch, a tag or the number of a commit
  /// Folder that gets the files, which is made if there is none; empty: the hub cache gets them.
  std::string output = {};
  /// Called on the calling thread, some times a second. What it throws leaves the call as it is.
  std::function<void(const PullProgress& progress)> progress = {};
  LogSink* log = nullptr;  ///< files, retries and waits; may be null
};

/// Downloads what an engine needs of a model: its configuration, its processor's files, and of its
/// safetensors files those that hold tensors of the vision tower, where an index tells. What is
/// there already is not downloaded again, and what was begun is continued. Every file is compared
/// with the digest that the hub gives, before it appears under its name; the branch of the hub
/// cache moves when all files are there. Pulls of several processes, those of huggingface_hub too,
/// wait for each other file by file.
/// @param name that is_hub_name. @returns the directory for Engine::load().
/// @throws Error(kNotFound) if there is no such model, revision or weights; Error(kInvalidArgument)
/// for a name that is none and where a token is missing or refused; Error(kUnsupported) for models
/// of no family of Fovea, before weights are downloaded, for redirects and certificates that are
/// not trusted, and in builds without libcurl; Error(kUnavailable) if the hub does not answer, and
/// where HF_HUB_OFFLINE is set; Error(kCorruptData) if a file is not what the hub said; Error(kIo),
/// also if the disk has too little room; Error(kCancelled), Error(kDeadline).
[[nodiscard]] FOVEA_API std::string pull_model(const std::string& name,
                                               const PullOptions& options = {},
                                               const CallBounds& bounds = {});

}  // namespace fovea
