#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "console.h"
#include "flags/flags.h"
#include "fovea/call_bounds.h"
#include "inputs.h"
#include "shards/manifest.h"
#include "shards/shard.h"

namespace fovea::cli {

/// The flags that make `fovea encode` work on a part of a list.
struct ShardFlags {
  std::optional<Shard> shard;
  bool resume = false;
  std::int64_t part_bytes = std::int64_t{1} << 30;
};

/// Adds --shard, --resume and --shard-size to a verb that has the flags `others`, which make no
/// sense with --shard.
void add_shard_flags(CLI::App& verb, ShardFlags& flags, std::span<const char* const> others);

/// A run of `fovea encode` with --shard.
struct ShardJob {
  const EngineFlags& engine;
  std::span<const InputArgument> inputs;
  const ItemDefaults& items;
  const std::string& folder;
  const std::string& dtype;
  const ShardFlags& flags;
  CallBounds bounds;
  bool table = true;
};

/// The first line of the manifest of a run, without the fingerprint that the engine has when it is
/// loaded. Options are those of the command line that rows depend on, the dtype, and what items
/// have in common.
[[nodiscard]] ManifestHeader manifest_header(const ShardJob& job);

/// Encodes the images and videos of a shard into parts in a folder (docs/shards.md). Items that
/// fail are warnings, and lines of the manifest. Ctrl-C and SIGTERM write what is encoded and end
/// the run.
/// @return kExitOk. @throws UsageError for pixel values, Error if the shard has no rows
/// at the end, as ShardFolder does, and Error(kCancelled) or Error(kDeadline) for a run that was
/// ended.
int encode_shard(const ShardJob& job, Console& console);

}  // namespace fovea::cli
