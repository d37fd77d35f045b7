// Which shard a path belongs to, and what the files of a shard are called.
#include "shards/shard.h"

#include <openssl/sha.h>

#include <charconv>

#include "errors.h"
#include "flags/parse.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::int64_t kMostShards = 1'000'000;
constexpr std::string_view kManifestStart = "manifest-";
constexpr std::string_view kManifestEnd = ".jsonl";
constexpr std::string_view kPartEnd = ".safetensors";
constexpr std::size_t kPartDigits = 5;

std::string of(const Shard& shard) {
  return std::to_string(shard.index) + "-of-" + std::to_string(shard.count);
}

std::string part_start(const Shard& shard) { return "part-" + of(shard) + "-"; }

/// A whole number that is all of `text`.
std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size() || number < 0) return {};
  return number;
}

}  // namespace

PathHash hash_of_path(std::string_view path) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> bytes{};
  SHA256(reinterpret_cast<const unsigned char*>(path.data()), path.size(), bytes.data());
  const auto number_at = [&](std::size_t begin) {
    std::uint64_t number = 0;
    for (std::size_t i = begin; i < begin + sizeof(number); ++i) number = number << 8 | bytes[i];
    return number;
  };
  return {.number = number_at(0), .digest = {number_at(8), number_at(16)}};
}

std::string ItemName::text() const {
  if (modality == Modality::kImage && options.empty()) return path;
  // No path holds the character 0, and none that goes on with one is sorted before it.
  return path + '\0' + to_string(modality) + options;
}

PathHash hash_of_item(const ItemName& item) {
  PathHash hash = hash_of_path(item.path);
  const std::string text = item.text();
  if (text.size() > item.path.size()) hash.digest = hash_of_path(text).digest;
  return hash;
}

Shard parse_shard(std::string_view text, std::string_view what) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    throw UsageError(std::string(what) + ": expected I/N such as 0/16, got \"" + one_line(text) +
                     "\"");
  }
  const std::string name(what);
  const std::int64_t count = parse_whole(text.substr(slash + 1), 1, name + " I/N: N", kMostShards);
  const std::int64_t index = parse_whole(text.substr(0, slash), 0, name + " I/N: I", count - 1);
  return {.index = index, .count = count};
}

std::string manifest_name(const Shard& shard) {
  return std::string(kManifestStart) + of(shard) + std::string(kManifestEnd);
}

std::optional<Shard> shard_of_manifest(std::string_view name) {
  constexpr std::string_view kBetween = "-of-";
  const std::size_t between = name.find(kBetween);
  if (!name.starts_with(kManifestStart) || !name.ends_with(kManifestEnd) ||
      between == std::string_view::npos || between < kManifestStart.size()) {
    return {};
  }
  name.remove_suffix(kManifestEnd.size());
  if (between + kBetween.size() > name.size()) return {};
  const auto index = number_in(name.substr(kManifestStart.size(), between - kManifestStart.size()));
  const auto count = number_in(name.substr(between + kBetween.size()));
  if (!index || !count || *index >= *count || *count > kMostShards) return {};
  const Shard shard{.index = *index, .count = *count};
  const bool same = manifest_name(shard) == std::string(name) + std::string(kManifestEnd);
  return same ? std::optional(shard) : std::nullopt;  // "01-of-2" is none
}

std::string part_name(const Shard& shard, std::int64_t number) {
  std::string digits = std::to_string(number);
  if (digits.size() < kPartDigits) digits.insert(0, kPartDigits - digits.size(), '0');
  return part_start(shard) + digits + std::string(kPartEnd);
}

std::optional<std::int64_t> part_number(const Shard& shard, std::string_view name) {
  const std::string start = part_start(shard);
  if (!name.starts_with(start) || !name.ends_with(kPartEnd)) return {};
  if (name.size() < start.size() + kPartEnd.size()) return {};
  const auto number =
      number_in(name.substr(start.size(), name.size() - start.size() - kPartEnd.size()));
  return number && part_name(shard, *number) == name ? number : std::nullopt;
}

}  // namespace fovea::cli
