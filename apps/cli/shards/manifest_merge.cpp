// All manifests of a folder as one.
#include "shards/manifest_check.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <tuple>
#include <utility>

#include "fovea/atomic_file.h"
#include "fovea/error.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;

/// The place of the line of an item.
struct Place {
  std::string name;       // ItemName::text()
  std::size_t shard = 0;  // index into FolderState::shards
  std::int64_t offset = 0;
};

class Merge {
 public:
  Merge(std::string folder, const FolderState& state) : folder_(std::move(folder)), state_(state) {}

  std::int64_t write(const std::string& output) {
    AtomicFile file(output);
    for (std::size_t shard = 0; shard < state_.shards.size(); ++shard) read(shard);
    sort();
    std::string text = merged_header(*state_.header) + "\n";
    for (const Place& place : places_) {
      text += line_at(place) + "\n";
      if (text.size() < kWriteBytes) continue;
      file.write(std::as_bytes(std::span(text)));
      text.clear();
    }
    file.write(std::as_bytes(std::span(text)));
    file.commit();
    return std::ssize(places_);
  }

 private:
  [[nodiscard]] std::string manifest_of(std::size_t shard) const {
    return (fs::path(folder_) / manifest_name(state_.shards[shard].shard)).string();
  }

  void read(std::size_t shard) {
    const std::string path = manifest_of(shard);
    std::set<std::string> lost;
    (void)read_manifest(path, {.lost = [&](const LostLine& line) { lost.insert(line.file); }});
    (void)read_manifest(path, {.part = [&](const PartLine& part, const std::vector<ItemLine>& items,
                                           const std::vector<std::int64_t>& offsets) {
                          for (std::size_t i = 0; i < items.size(); ++i) {
                            const bool has_rows = items[i].error.empty();
                            if (has_rows && lost.contains(part.file)) continue;
                            places_.push_back({items[i].name.text(), shard, offsets[i]});
                          }
                        }});
  }

  /// Sorts by path, and keeps the last line of each item.
  void sort() {
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      return std::tie(a.name, a.shard, b.offset) < std::tie(b.name, b.shard, a.offset);
    });
    const auto same = [](const Place& a, const Place& b) { return a.name == b.name; };
    places_.erase(std::unique(places_.begin(), places_.end(), same), places_.end());
  }

  std::string line_at(const Place& place) {
    if (!open_ || open_->first != place.shard) {
      open_.emplace(place.shard, std::ifstream(manifest_of(place.shard), std::ios::binary));
    }
    std::ifstream& file = open_->second;
    file.seekg(place.offset);
    std::string line;
    if (!std::getline(file, line)) {
      throw Error(ErrorCode::kIo, manifest_of(place.shard) + ": cannot read it again");
    }
    return line;
  }

  const std::string folder_;
  const FolderState& state_;
  std::vector<Place> places_;
  std::optional<std::pair<std::size_t, std::ifstream>> open_;
};

}  // namespace

std::int64_t merge_manifests(const std::string& folder, const FolderState& state,
                             const std::string& output) {
  return Merge(folder, state).write(output);
}

}  // namespace fovea::cli
