// A run takes what it finds of a shard, and adds to it.
#include "shards/shard_folder.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "fovea/atomic_file.h"
#include "fovea/error.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

/// Calls `use` with the name of every entry of a folder.
template <class Use>
void for_each_name(const std::string& folder, Use use) {
  std::error_code failure;
  fs::directory_iterator entry(folder, failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    use(entry->path().filename().string());
  }
  if (failure) throw Error(ErrorCode::kIo, folder + ": cannot list: " + failure.message());
}

std::string path_in(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

void remove_file(const std::string& path) {
  std::error_code failure;
  fs::remove(path, failure);
  if (failure) throw Error(ErrorCode::kIo, path + ": cannot remove it: " + failure.message());
}

/// An earlier run differs from this one.
[[noreturn]] void refuse(const std::string& manifest, const std::string& what,
                         const std::string& was, const std::string& is) {
  throw Error(ErrorCode::kInvalidArgument,
              manifest + ": made with " + what + " " + was + ", this run has " + is +
                  "; expected the same, or another folder for --output");
}

/// The folder, in which no list is divided into another number of shards: both would hold some
/// items.
std::string made_folder(std::string folder, const Shard& shard) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw Error(ErrorCode::kIo, folder + ": cannot make it: " + failure.message());
  for_each_name(folder, [&](const std::string& name) {
    const std::optional<Shard> other = shard_of_manifest(name);
    if (other && other->count != shard.count) {
      refuse(path_in(folder, name), "N of --shard I/N", std::to_string(other->count),
             std::to_string(shard.count));
    }
  });
  return folder;
}

}  // namespace

ShardFolder::ShardFolder(std::string folder, ManifestHeader wanted, bool resume)
    : folder_(made_folder(std::move(folder), wanted.shard)),
      wanted_(std::move(wanted)),
      manifest_path_(path_in(folder_, manifest_name(wanted_.shard))),
      manifest_(manifest_path_) {
  read();
  if (end_.header && !resume) {
    throw Error(ErrorCode::kInvalidArgument,
                manifest_path_ +
                    ": an earlier run began this shard; expected --resume to go on with it, or "
                    "another folder for --output");
  }
  if (end_.header) {
    compare_options(*end_.header);
  } else if (const std::vector<std::int64_t> parts = parts_there(); !parts.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                path_of(parts.front()) + ": this part has no manifest; expected " + manifest_path_ +
                    " of the run that made it, or another folder for --output");
  }
}

void ShardFolder::read() {
  end_ = read_manifest(
      manifest_path_, {.part = [this](const PartLine& part, const std::vector<ItemLine>& items,
                                      const std::vector<std::int64_t>&) { take_part(part, items); },
                       .lost =
                           [this](const LostLine& lost) {
                             if (const auto number = part_number(wanted_.shard, lost.file)) {
                               parts_[*number].lost = true;
                             }
                           }});
}

void ShardFolder::take_part(const PartLine& part, const std::vector<ItemLine>& items) {
  const std::optional<std::int64_t> number = part_number(wanted_.shard, part.file);
  if (number) parts_[*number] = {.bytes = part.bytes};
  for (const ItemLine& item : items) {
    const bool has_rows = item.error.empty() && number;
    index_.add({.digest = hash_of_item(item.name).digest,
                .size = item.size,
                .mtime_ns = item.mtime_ns,
                .part = has_rows ? *number : ItemIndex::kFailed,
                .place = lines_++});
  }
}

void ShardFolder::compare_options(const ManifestHeader& found) const {
  if (found.shard != wanted_.shard) {
    throw Error(ErrorCode::kCorruptData, manifest_path_ +
                                             ": expected the manifest of this shard, got that of " +
                                             manifest_name(found.shard));
  }
  for (const auto& [name, value] : wanted_.options) {
    const auto was = found.options.find(name);
    const std::string before = was == found.options.end() ? "unknown" : was->second;
    if (before != value) refuse(manifest_path_, name, before, value);
  }
}

void ShardFolder::begin(const std::string& fingerprint) {
  if (end_.header && end_.header->fingerprint != fingerprint) {
    refuse(manifest_path_, "the model " + end_.header->model, end_.header->fingerprint,
           wanted_.model + " " + fingerprint);
  }
  remove_temporaries(folder_);
  if (end_.torn) manifest_.truncate(end_.bytes);
  if (!end_.header) {
    wanted_.fingerprint = fingerprint;
    manifest_.append(to_text(wanted_) + "\n");
  }
  drop_lost_parts();
  remove_unknown_parts();
  index_.sort();
  has_rows_ =
      std::any_of(index_.entries().begin(), index_.entries().end(),
                  [](const ItemIndex::Entry& entry) { return entry.part != ItemIndex::kFailed; });
}

/// The line comes first: a run that is killed behind it leaves a part that the next one removes.
void ShardFolder::drop_lost_parts() {
  for (auto& [number, part] : parts_) {
    if (part.lost) continue;
    std::error_code failure;
    const auto bytes = fs::file_size(path_of(number), failure);
    if (!failure && std::cmp_equal(bytes, part.bytes)) continue;
    part.lost = true;
    manifest_.append(to_text(LostLine{part_name(wanted_.shard, number)}) + "\n");
    end_.done.reset();
  }
  index_.remove([this](const ItemIndex::Entry& entry) {
    return entry.part != ItemIndex::kFailed && parts_.at(entry.part).lost;
  });
}

void ShardFolder::remove_unknown_parts() const {
  for (const std::int64_t number : parts_there()) {
    const auto known = parts_.find(number);
    if (known == parts_.end() || known->second.lost) remove_file(path_of(number));
  }
}

std::vector<std::int64_t> ShardFolder::parts_there() const {
  std::vector<std::int64_t> numbers;
  for_each_name(folder_, [&](const std::string& name) {
    if (const auto number = part_number(wanted_.shard, name)) numbers.push_back(*number);
  });
  return numbers;
}

std::string ShardFolder::path_of(std::int64_t part) const {
  return path_in(folder_, part_name(wanted_.shard, part));
}

bool ShardFolder::has(const PathDigest& digest, std::int64_t size, std::int64_t mtime_ns) const {
  const ItemIndex::Entry* entry = index_.find(digest);
  return entry != nullptr && entry->part != ItemIndex::kFailed && entry->size == size &&
         entry->mtime_ns == mtime_ns;
}

bool ShardFolder::has(const PathDigest& digest) const {
  const ItemIndex::Entry* entry = index_.find(digest);
  return entry != nullptr && entry->part != ItemIndex::kFailed;
}

std::int64_t ShardFolder::add_part(std::vector<ItemLine> items,
                                   const std::vector<Embedding>& rows) {
  PartLine part{.items = std::ssize(items)};
  if (!rows.empty()) {
    const std::int64_t number = parts_.empty() ? 0 : parts_.rbegin()->first + 1;
    part.file = part_name(wanted_.shard, number);
    save_safetensors(path_of(number), rows, {{"fovea.model", wanted_.model}});
    part.bytes = static_cast<std::int64_t>(fs::file_size(path_of(number)));
    parts_[number] = {.bytes = part.bytes};
  }
  std::string lines;
  std::int64_t tensor = 0;
  for (ItemLine& item : items) {
    if (item.error.empty()) {
      item.file = part.file;
      item.tensor = "item_" + std::to_string(tensor++);
    }
    lines += to_text(std::move(item)) + "\n";
  }
  manifest_.append(lines + to_text(part) + "\n");
  end_.done.reset();
  has_rows_ = has_rows_ || !rows.empty();
  return part.bytes;
}

void ShardFolder::finish(const DoneLine& done) {
  if (end_.done && end_.done->items == done.items) return;
  manifest_.append(to_text(done) + "\n");
}

}  // namespace fovea::cli
