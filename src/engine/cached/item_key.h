#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/prepare/item_processors.h"
#include "fovea/media.h"
#include "fovea/options.h"

namespace fovea {

/// A state of a file: another one after it was written to or replaced.
struct FileState {
  std::string path;
  std::vector<std::int64_t> facts;  // what the system says about it

  friend bool operator==(const FileState&, const FileState&) = default;
};

/// The name of the rows that the tower makes of an item, before pruning and in its dtype.
struct ItemKey {
  std::string text;
  std::vector<FileState> files;  ///< that were read for it

  /// Whether the files are still in the state in which they were read.
  [[nodiscard]] bool is_current() const;
};

/// What a key depends on besides the item.
struct KeyContext {
  const std::string& model;              ///< model_fingerprint()
  const EngineOptions& options;          ///< of which those of RowEffect::kMedia are used
  ItemProcessors* processors = nullptr;  ///< for items with options; null: there are none
};

/// Reads the item, all of its files, and names its content (src/rows/content_key.h). Equal
/// encoded bytes have one key whatever their path; so have equal pixels of equal shape. Absent for
/// finished rows, and for what prepare_media would refuse before it reads all of it.
/// @throws Error(kCancelled) or Error(kDeadline), as check_interrupt.
[[nodiscard]] std::optional<ItemKey> item_key(const KeyContext& context, const MediaItem& media);

/// The name of the rows that a caller gets of an item (Embedding::key): it depends on the item's
/// key, and on what is made of the tower's rows, options of RowEffect::kAfterTower.
[[nodiscard]] std::string rows_key(const ItemKey& key, Modality modality, RowDType dtype,
                                   const EngineOptions& options);

}  // namespace fovea
