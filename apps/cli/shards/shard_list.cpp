// The paths of a shard, out of a list of any length.
#include "shards/shard_list.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <utility>

#include "errors.h"
#include "fovea/text.h"
#include "report/text.h"
#include "shards/lines.h"

namespace fovea::cli {
namespace {

/// A manifest holds UTF-8, and lines of a limited length. The system opens no longer path.
void require_writable(std::string_view path, const std::string& place) {
  if (path.size() >= PATH_MAX) {
    throw Error(ErrorCode::kInvalidArgument, place + ": expected a path of less than " +
                                                 std::to_string(PATH_MAX) + " bytes, got " +
                                                 std::to_string(path.size()));
  }
  for (std::string_view rest = path; !rest.empty();) {
    const Character character = first_character(rest);
    if (!character.code) {
      throw Error(ErrorCode::kInvalidArgument,
                  place + ": expected a path in UTF-8, which is what a manifest can hold, got " +
                      one_line(path));
    }
    rest.remove_prefix(character.bytes);
  }
}

}  // namespace

ShardList::ShardList(std::span<const InputArgument> arguments, const Shard& shard,
                     CallBounds bounds)
    : arguments_(arguments.begin(), arguments.end()), shard_(shard), bounds_(std::move(bounds)) {
  for_each_listed([this](const std::string& path) {
    ++listed_;
    const PathHash hash = hash_of_path(path);
    if (shard_.holds(hash)) digests_.push_back(hash.digest);
  });
  std::sort(digests_.begin(), digests_.end());
  digests_.erase(std::unique(digests_.begin(), digests_.end()), digests_.end());
  used_.resize(digests_.size());
}

void ShardList::for_each(const Use& use) {
  for_each_listed([&](const std::string& path) {
    const PathHash hash = hash_of_path(path);
    if (!shard_.holds(hash)) return;
    const auto found = std::lower_bound(digests_.begin(), digests_.end(), hash.digest);
    if (found == digests_.end() || *found != hash.digest) return;  // the list has grown
    const auto index = static_cast<std::size_t>(found - digests_.begin());
    if (used_[index]) return;
    used_[index] = true;
    use(path, hash.digest);
  });
}

void ShardList::for_each_listed(const std::function<void(const std::string& path)>& use) const {
  for (const InputArgument& argument : arguments_) {
    if (!is_list(argument.text)) {
      for (const std::string& path : image_files(argument.text, bounds_)) {
        require_writable(path, argument.text);
        use(path);
      }
      continue;
    }
    const std::string list = argument.text.substr(1);
    LineReader lines(list);
    while (const std::optional<std::string_view> line = lines.next()) {
      if (bounds_.stop.stop_requested()) throw Error(ErrorCode::kCancelled, list + ": cancelled");
      const std::optional<std::string> path = listed_path(list, *line, lines.number());
      if (!path) continue;
      require_writable(*path, lines.place());
      use(*path);
    }
  }
}

}  // namespace fovea::cli
