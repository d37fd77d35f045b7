// Models by their names on the hub.
#include "flags/hub_cache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "fovea/error.h"
#include "fovea/text.h"
#include "output_file.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The commit that a branch or tag of a cached repository stands for; empty if it is not there or
/// is no number in base 16: anything else might lead out of the cache.
std::string commit_of(const fs::path& repository, const std::string& revision) {
  try {
    const std::string text =
        read_text_file((repository / "refs" / revision).string(), kMaxTextFileBytes);
    const std::string_view commit = trimmed(text);
    const bool is_number = commit.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    return is_number ? std::string(commit) : "";
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::string hub_cache_dir() {
  if (std::string cache = variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = variable("HF_HOME"); !home.empty()) return home + "/hub";
  if (const std::string caches = variable("XDG_CACHE_HOME"); !caches.empty()) {
    return caches + "/huggingface/hub";
  }
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/huggingface/hub";
}

bool is_hub_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '/';
  };
  const std::size_t slash = text.find('/');
  return std::ranges::all_of(text, allowed) && std::ranges::count(text, '/') == 1 && slash > 0 &&
         slash + 1 < text.size() && text.front() != '.' && text[slash + 1] != '.';
}

std::string hub_snapshot(const std::string& kind, const std::string& name) {
  const std::string cache = hub_cache_dir();
  std::string folder = kind + "--" + name;
  folder.replace(folder.find('/'), 1, "--");
  const fs::path repository = fs::path(cache) / folder;
  const std::string commit = commit_of(repository, "main");
  const fs::path snapshot = repository / "snapshots" / commit;
  std::error_code failure;
  const bool found = !cache.empty() && !commit.empty() && fs::is_directory(snapshot, failure);
  return found ? snapshot.string() : "";
}

std::string resolve_hub_name(std::string& model) {
  std::error_code failure;
  if (!is_hub_name(model) || fs::exists(model, failure)) return "";
  const std::string snapshot = hub_snapshot("models", model);
  if (snapshot.empty()) {
    const std::string cache = hub_cache_dir();
    return "expected a directory, or a model in the hub cache " +
           (cache.empty() ? "(no HF_HOME, no HOME)" : cache) + ", got \"" + model +
           "\"; `hf download " + model + "` puts it there";
  }
  model = snapshot;
  return "";
}

}  // namespace fovea::cli
