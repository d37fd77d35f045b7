// Where the hub is, where its cache lies, and what is in there.
//   <cache>/models--<organisation>--<name>/refs/<branch>          the number of a commit
//                                         /snapshots/<commit>/    links to blobs
//                                         /blobs/<digest>         the files
//   <cache>/.locks/models--<organisation>--<name>/<digest>.lock   held while a blob is written
// Source: huggingface_hub 2.4, "Understand caching".
#include "hub/place.h"

#include <algorithm>
#include <cstdlib>

#include "core/boundary.h"
#include "core/check.h"
#include "core/file.h"
#include "fovea/text.h"

namespace fovea::hub {
namespace {

constexpr std::size_t kMaxSmallFileBytes = 4096;  // of a reference, and of a token

std::string variable(const char* name) {
  const char* const value = secure_getenv(name);
  return value == nullptr ? "" : value;
}

/// The path in a variable. A "~" in front is $HOME, which no shell has put there in a Dockerfile.
/// Source: huggingface_hub 2.4, constants.py (os.path.expanduser).
std::string path_variable(const char* name) {
  std::string path = variable(name);
  const std::string home = variable("HOME");
  if (!home.empty() && (path == "~" || path.starts_with("~/"))) path.replace(0, 1, home);
  return path;
}

bool is_set(const char* name) {
  std::string value = variable(name);
  std::ranges::transform(value, value.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

/// $HF_HOME, else where it is by default; empty without any of the variables.
std::string hub_home() {
  if (std::string home = path_variable("HF_HOME"); !home.empty()) return home;
  if (const std::string caches = path_variable("XDG_CACHE_HOME"); !caches.empty()) {
    return caches + "/huggingface";
  }
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/huggingface";
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

/// The first line of a small file, empty if it cannot be read.
std::string small_file(const std::string& path) {
  try {
    return std::string(trimmed(read_text_file(path, kMaxSmallFileBytes)));
  } catch (const Error&) {
    return "";
  }
}

std::string token_of_environment(const std::string& file) {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (std::string token(trimmed(variable(name))); !token.empty()) return token;
  }
  return is_set("HF_HUB_DISABLE_IMPLICIT_TOKEN") || file.empty() ? "" : small_file(file);
}

bool is_base_16(std::string_view text) noexcept {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

Place place_of_environment() {
  Place place{.endpoint = variable("HF_ENDPOINT"),
              .token = {},
              .token_file = path_variable("HF_TOKEN_PATH"),
              .is_offline = is_set("HF_HUB_OFFLINE")};
  if (place.endpoint.empty()) place.endpoint = "https://huggingface.co";
  while (place.endpoint.ends_with('/')) place.endpoint.pop_back();
  FOVEA_CHECK(place.endpoint.starts_with("https://") || place.endpoint.starts_with("http://"),
              kInvalidArgument, "HF_ENDPOINT: expected a URL with http:// or https://, got \"",
              printable(place.endpoint), "\"");
  if (place.token_file.empty() && !hub_home().empty()) place.token_file = hub_home() + "/token";
  place.token = token_of_environment(place.token_file);
  const bool is_visible =
      std::ranges::all_of(place.token, [](char c) { return c > ' ' && c <= '~'; });
  FOVEA_CHECK(is_visible, kInvalidArgument, "the token of the hub (HF_TOKEN, ", place.token_file,
              "): expected visible characters of ASCII only");
  return place;
}

std::string repository_folder(std::string_view name, HubKind kind) {
  std::string folder = kind == HubKind::kModel ? "models--" : "datasets--";
  folder += name;
  folder.replace(folder.find('/'), 1, "--");
  return folder;
}

bool is_commit(std::string_view text) noexcept {
  constexpr std::size_t kDigits = 40;
  return text.size() == kDigits && is_base_16(text);
}

bool is_revision(std::string_view text) noexcept {
  if (text.empty() || text.find_first_of(std::string_view("\\\0", 2)) != text.npos) return false;
  while (true) {
    const std::string_view part = text.substr(0, text.find('/'));
    if (part.empty() || part.starts_with('.')) return false;
    if (part.size() == text.size()) return true;
    text.remove_prefix(part.size() + 1);
  }
}

}  // namespace fovea::hub

namespace fovea {

bool is_hub_name(std::string_view text) noexcept {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '/';
  };
  const std::size_t slash = text.find('/');
  return std::ranges::all_of(text, is_allowed) && std::ranges::count(text, '/') == 1 && slash > 0 &&
         slash + 1 < text.size() && text.front() != '.' && text[slash + 1] != '.';
}

std::string hub_cache_dir() try {
  if (std::string cache = hub::path_variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  const std::string home = hub::hub_home();
  return home.empty() ? "" : home + "/hub";
} catch (...) {
  rethrow_as_error();
}

std::optional<std::string> find_on_disk(const std::string& name, const std::string& revision,
                                        HubKind kind) try {
  const std::string cache = hub_cache_dir();
  if (cache.empty() || !is_hub_name(name) || !hub::is_revision(revision)) return std::nullopt;
  const std::string repository = cache + "/" + hub::repository_folder(name, kind);
  // Anything but a number in base 16 might lead out of the cache.
  std::string commit = hub::small_file(repository + "/refs/" + revision);
  if (!hub::is_base_16(commit)) commit = revision;
  if (!hub::is_base_16(commit)) return std::nullopt;
  std::string snapshot = repository + "/snapshots/" + commit;
  return directory_exists(snapshot) ? std::optional(std::move(snapshot)) : std::nullopt;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
