// Models by their names on the hub.
#include "flags/hub_model.h"

#include <filesystem>
#include <utility>

#include "errors.h"
#include "fovea/error.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

/// The snapshot in the cache after a download, or that of before where the hub cannot be asked.
std::string downloaded(const EngineFlags& flags, Console& console) {
  try {
    return pull_with_status(flags.model, {.revision = flags.revision}, console);
  } catch (const Error& error) {
    const auto kept = find_on_disk(flags.model, flags.revision);
    if (error.code() != ErrorCode::kUnavailable || !kept) throw;
    console.warn(std::string(error.what()) + "; the hub cache has " + *kept);
    return *kept;
  }
}

std::string complaint_about_name(const EngineFlags& flags) {
  const std::string cache = hub_cache_dir();
  const bool is_main = flags.revision == kMainRevision;
  return "MODEL: expected a directory, or a model in the hub cache " +
         (cache.empty() ? "(no HF_HOME, no HOME)" : cache) + ", got \"" + flags.model + "\"" +
         (is_main ? "" : " at revision " + flags.revision) +
         "; --download gets it, or `fovea pull " + flags.model +
         (is_main ? "`" : " --revision " + flags.revision + "`");
}

}  // namespace

std::string pull_with_status(const std::string& name, PullOptions options, Console& console) {
  options.log = &console;
  options.progress = [&console](const PullProgress& progress) {
    console.set_status("downloading " + progress.file + ", " + bytes_text(progress.done_bytes) +
                       " of " + bytes_text(progress.total_bytes));
  };
  console.set_status("asking the hub for " + name);
  try {
    std::string directory = pull_model(name, options);
    console.set_status("");
    return directory;
  } catch (...) {
    console.set_status("");
    throw;
  }
}

void find_model(EngineFlags& flags, Console& console) {
  std::error_code failure;
  const bool is_path = std::filesystem::exists(flags.model, failure);
  if (is_path || !is_hub_name(flags.model)) {
    const std::string got = ": expected a name on the hub as MODEL, got " +
                            std::string(is_path ? "the path \"" : "\"") + flags.model + "\"";
    if (flags.download) throw UsageError("--download" + got);
    if (flags.revision != kMainRevision) throw UsageError("--revision" + got);
    return;
  }
  if (flags.download) {
    flags.model = downloaded(flags, console);
    return;
  }
  std::optional<std::string> snapshot = find_on_disk(flags.model, flags.revision);
  if (!snapshot) throw UsageError(complaint_about_name(flags));
  flags.model = *std::move(snapshot);
}

}  // namespace fovea::cli
