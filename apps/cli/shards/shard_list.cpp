// The items of a shard, out of a list of any length.
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

constexpr std::size_t kMostOptionBytes = std::size_t{8} << 10;

/// A manifest holds UTF-8, and lines of a limited length. The system opens no longer path.
void require_writable(const ListedItem& item, const std::string& place) {
  const std::string_view path = item.path;
  if (const std::size_t bytes = item.options().size(); bytes > kMostOptionBytes) {
    throw Error(ErrorCode::kInvalidArgument, place + ": expected options of at most " +
                                                 std::to_string(kMostOptionBytes) + " bytes, got " +
                                                 std::to_string(bytes));
  }
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

ItemName name_of(const ListedItem& item) {
  return {.path = item.path, .modality = item.modality, .options = item.options()};
}

ShardList::ShardList(std::span<const InputArgument> arguments, const Shard& shard,
                     CallBounds bounds)
    : arguments_(arguments.begin(), arguments.end()), shard_(shard), bounds_(std::move(bounds)) {
  for_each_listed([this](const ListedItem& item) {
    ++listed_;
    const PathHash hash = hash_of_item(name_of(item));
    if (shard_.holds(hash)) digests_.push_back(hash.digest);
  });
  std::sort(digests_.begin(), digests_.end());
  digests_.erase(std::unique(digests_.begin(), digests_.end()), digests_.end());
  used_.resize(digests_.size());
}

void ShardList::for_each(const Use& use) {
  for_each_listed([&](const ListedItem& item) {
    const PathHash hash = hash_of_item(name_of(item));
    if (!shard_.holds(hash)) return;
    const auto found = std::lower_bound(digests_.begin(), digests_.end(), hash.digest);
    if (found == digests_.end() || *found != hash.digest) return;  // the list has grown
    const auto index = static_cast<std::size_t>(found - digests_.begin());
    if (used_[index]) return;
    used_[index] = true;
    use(item, hash.digest);
  });
}

void ShardList::require_all_used() const {
  const auto gone = std::ranges::count(used_, false);
  if (gone == 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              "INPUT: the list has changed since the run began: " + counted(gone, "item") +
                  " of the shard left it; --resume goes on with what it holds now");
}

void ShardList::for_each_listed(const std::function<void(const ListedItem& item)>& use) const {
  for (const InputArgument& argument : arguments_) {
    if (!is_list(argument.text)) {
      const bool is_video = argument.modality == Modality::kVideo;
      for (std::string& path : is_video ? std::vector<std::string>{argument.text}
                                        : image_files(argument.text, bounds_)) {
        const ListedItem item{.modality = argument.modality, .path = std::move(path)};
        require_writable(item, argument.text);
        use(item);
      }
      continue;
    }
    const std::string list = argument.text.substr(1);
    LineReader lines(list);
    while (const std::optional<std::string_view> line = lines.next()) {
      if (bounds_.stop.stop_requested()) throw Error(ErrorCode::kCancelled, list + ": cancelled");
      const std::optional<ListedItem> item =
          listed_item(list, *line, lines.number(), argument.modality);
      if (!item) continue;
      require_writable(*item, lines.place());
      use(*item);
    }
  }
}

}  // namespace fovea::cli
