// Whether the files of all shards are there, whole, and each item once.
#include "shards/manifest_check.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "fovea/error.h"
#include "report/text.h"
#include "shards/item_index.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

/// Collects problems of one shard.
class ShardCheck {
 public:
  ShardCheck(std::string folder, const Shard& shard, FolderState& result)
      : folder_(std::move(folder)), shard_(shard), result_(result), state_{.shard = shard} {}

  void run(const std::set<std::string>& files) {
    try {
      const ManifestEnd end = read_manifest(
          path_of(name_), {.part = [this](const PartLine& part, const std::vector<ItemLine>& items,
                                          const std::vector<std::int64_t>&) { take(part, items); },
                           .lost = [this](const LostLine& lost) { lost_.insert(lost.file); }});
      check_end(end);
    } catch (const Error& error) {
      problem(error.what());
    }
    drop_lost();
    check_copies();
    check_unknown(files);
    state_.parts = std::ssize(parts_);
    for (const auto& [name, part] : parts_) state_.bytes += part.bytes;
    for (const std::string& text : problems_) {
      if (std::ssize(result_.problems) < FolderState::kMostProblems) {
        result_.problems.push_back(text);
      }
    }
    state_.problems = std::ssize(problems_);
    result_.problem_count += state_.problems;
    result_.shards.push_back(state_);
  }

 private:
  struct Part {
    std::int64_t bytes = 0;
    std::optional<std::string> problem;
  };

  void take(const PartLine& part, const std::vector<ItemLine>& items) {
    const std::optional<std::int64_t> number = part_number(shard_, part.file);
    if (!part.file.empty() && !number) {
      problem(name_ + ": " + part.file + " is no part of this shard");
    } else if (number && !parts_.emplace(part.file, Part{.bytes = part.bytes}).second) {
      problem(name_ + ": " + part.file + " is written down twice");
    } else if (number) {
      parts_[part.file].problem = problem_of_part(path_of(part.file), part, items);
    }
    for (const ItemLine& item : items) {
      const PathHash hash = hash_of_item(item.name);
      if (!shard_.holds(hash)) problem(name_ + ": " + item.name.path + " belongs to another shard");
      const bool has_rows = item.error.empty() && number;
      index_.add({.digest = hash.digest,
                  .size = item.size,
                  .mtime_ns = item.mtime_ns,
                  .part = has_rows ? *number : ItemIndex::kFailed,
                  .place = lines_++});
    }
  }

  void check_end(const ManifestEnd& end) {
    if (!end.header) {
      problem(name_ + ": nothing is encoded yet");
      return;
    }
    if (end.header->shard != shard_) {
      problem(name_ + ": is the manifest of " + manifest_name(end.header->shard));
    }
    if (!result_.header) result_.header = end.header;
    const std::string first = manifest_name(result_.header->shard);
    if (end.header->fingerprint != result_.header->fingerprint) {
      problem(name_ + ": made with another model than " + first);
    }
    if (end.header->options != result_.header->options) {
      problem(name_ + ": made with other options than " + first);
    }
    if (!end.done || end.torn) problem(name_ + ": the list was not worked off; --resume goes on");
  }

  void drop_lost() {
    index_.remove([this](const ItemIndex::Entry& entry) {
      return entry.part != ItemIndex::kFailed && lost_.contains(part_name(shard_, entry.part));
    });
    for (const std::string& name : lost_) parts_.erase(name);
    for (const auto& [name, part] : parts_) {
      if (part.problem) problem(*part.problem);
    }
  }

  /// A file that has changed has a new line. The same file in two lines is a mistake.
  void check_copies() {
    index_.sort();
    const std::vector<ItemIndex::Entry>& entries = index_.entries();
    std::int64_t copies = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const ItemIndex::Entry& entry = entries[i];
      const bool last = i + 1 == entries.size() || entries[i + 1].digest != entry.digest;
      if (last) ++(entry.part == ItemIndex::kFailed ? state_.failed : state_.items);
      if (last || entry.part == ItemIndex::kFailed) continue;
      const ItemIndex::Entry& next = entries[i + 1];
      copies += next.part != ItemIndex::kFailed && next.size == entry.size &&
                        next.mtime_ns == entry.mtime_ns
                    ? 1
                    : 0;
    }
    if (copies > 0) problem(name_ + ": " + counted(copies, "item") + " twice");
  }

  void check_unknown(const std::set<std::string>& files) {
    for (const std::string& name : files) {
      if (!part_number(shard_, name) || parts_.contains(name)) continue;
      problem(name + ": no line of " + name_ + " names this part; --resume removes it");
    }
  }

  [[nodiscard]] std::string path_of(const std::string& name) const {
    return (fs::path(folder_) / name).string();
  }
  void problem(std::string text) { problems_.push_back(std::move(text)); }

  const std::string folder_;
  const Shard shard_;
  const std::string name_ = manifest_name(shard_);
  FolderState& result_;
  ShardState state_;
  std::vector<std::string> problems_;
  std::map<std::string, Part> parts_;
  std::set<std::string> lost_;
  ItemIndex index_;
  std::int64_t lines_ = 0;
};

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code failure;
  fs::directory_iterator entry(folder, failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    names.insert(entry->path().filename().string());
  }
  if (failure) throw Error(ErrorCode::kNotFound, folder + ": cannot list: " + failure.message());
  return names;
}

void add_problem(FolderState& result, std::string text) {
  ++result.problem_count;
  result.problems.push_back(std::move(text));
}

/// Names the shards that have no manifest, and numbers of shards that differ.
void check_missing(const std::vector<Shard>& shards, FolderState& result) {
  const std::int64_t count = shards.front().count;
  std::vector<std::int64_t> missing;
  auto next = shards.begin();
  for (std::int64_t index = 0; index < count; ++index) {
    if (next != shards.end() && next->count == count && next->index == index) {
      ++next;
    } else {
      missing.push_back(index);
    }
  }
  if (next != shards.end()) {
    add_problem(result, "manifests of " + std::to_string(count) + " shards and of " +
                            std::to_string(next->count) + " in one folder");
  }
  if (missing.empty()) return;
  constexpr std::size_t kMostNamed = 10;
  const std::size_t named = std::min(kMostNamed, missing.size());
  add_problem(result, counted(std::ssize(missing), "shard") + " of " + std::to_string(count) +
                          " missing: " + join(std::span(missing).first(named), ", ") +
                          (named < missing.size() ? ", ..." : ""));
}

}  // namespace

FolderState check_manifests(const std::string& folder) {
  const std::set<std::string> files = files_in(folder);
  std::vector<Shard> shards;
  for (const std::string& name : files) {
    if (const std::optional<Shard> shard = shard_of_manifest(name)) shards.push_back(*shard);
  }
  if (shards.empty()) {
    throw Error(ErrorCode::kNotFound,
                folder + ": expected manifests of fovea encode --shard, got none");
  }
  std::sort(shards.begin(), shards.end(), [](const Shard& a, const Shard& b) {
    return std::pair(a.count, a.index) < std::pair(b.count, b.index);
  });
  FolderState result;
  check_missing(shards, result);
  for (const Shard& shard : shards) ShardCheck(folder, shard, result).run(files);
  return result;
}

}  // namespace fovea::cli
