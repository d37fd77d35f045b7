#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "shards/shard_folder.h"
#include "support/temporary_directory.h"

namespace fovea::test {

/// What rows of the shards of these tests are made with.
inline cli::ManifestHeader shard_header(std::int64_t count = 1,
                                        const std::string& dtype = "float32") {
  return {.shard = {.index = 0, .count = count},
          .model = "tower",
          .fingerprint = {},
          .options = {{"dtype", dtype}}};
}

/// An item of 2 rows of 3 zeros.
inline Embedding zero_rows(const std::string& name) {
  Embedding item;
  item.name = name;
  item.rows = 2;
  item.width = 3;
  item.data.resize(2 * 3 * sizeof(float));
  std::ranges::fill(item.data, std::byte{0});
  return item;
}

/// The line of a file with such rows.
inline cli::ItemLine file_line(const std::string& path, std::int64_t mtime_ns = 9) {
  return {.name = {.path = path}, .size = 5, .mtime_ns = mtime_ns, .rows = 2, .width = 3};
}

/// A folder with the files of a shard.
class EncodedShard : public ::testing::Test {
 protected:
  /// A run that encodes these files, each into a part of its own.
  void encode_files(const std::vector<cli::ItemLine>& files,
                    const cli::ManifestHeader& header = shard_header()) {
    cli::ShardFolder folder(out(), header, /*resume=*/true);
    folder.begin("f1");
    for (const cli::ItemLine& file : files) {
      const bool failed = !file.error.empty();
      folder.add_part({file},
                      failed ? std::vector<Embedding>{} : std::vector{zero_rows(file.name.path)});
    }
    folder.finish({.items = std::ssize(files)});
  }
  /// As above, of files that do not fail.
  void encode(const std::vector<std::string>& paths) {
    std::vector<cli::ItemLine> files;
    for (const std::string& path : paths) files.push_back(file_line(path));
    encode_files(files);
  }

  [[nodiscard]] std::string out() const { return folder_ / "out"; }
  [[nodiscard]] std::string part(std::int64_t number) const {
    return out() + "/" + cli::part_name({}, number);
  }
  [[nodiscard]] std::string manifest() const { return out() + "/" + cli::manifest_name({}); }

  TemporaryDirectory folder_;
};

}  // namespace fovea::test
