#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "checkpoint/hf_config.h"
#include "core/lru.h"
#include "fovea/media.h"
#include "fovea/options.h"
#include "fovea/reports.h"
#include "fovea/tower/models/item_processor.h"
#include "models/registry.h"

namespace fovea {

/// How items with certain options of their own are prepared.
struct ItemProcessing {
  std::string options;  ///< those that concern the item, as JSON: equal ones have equal texts
  std::shared_ptr<const ItemProcessor> processor;
  std::optional<double> fps;    ///< of a video, in the place of MediaItem::fps
  bool chooses_frames = false;  ///< whether they say which frames of a video are taken
};

/// The processors of a checkpoint for items with options of their own: each is made of the
/// checkpoint's files with some values replaced. Keeps those that were used last. Thread-safe.
class ItemProcessors {
 public:
  /// @param files outlive this object.
  /// @param media of the engine; its min_pixels and max_pixels yield to options of an item.
  ItemProcessors(const checkpoint::HfConfig& files, const MediaOptions& media, TowerOutput output);

  /// @param item with MediaItem::mm_processor_kwargs.
  /// @throws Error(kInvalidArgument) for what is no JSON object, for values that the family's
  /// reader of processor files refuses, for options of frames where they are chosen already, and
  /// for media that are processed already; Error(kUnsupported) for keys that the family takes
  /// neither for images nor for videos, with those that it takes.
  [[nodiscard]] std::shared_ptr<const ItemProcessing> of(const MediaItem& item);
  /// The same for an item of this size, whose frames are chosen.
  [[nodiscard]] std::shared_ptr<const ItemProcessing> of(const ItemSize& size);
  /// The same for options alone.
  [[nodiscard]] std::shared_ptr<const ItemProcessing> of(Modality modality,
                                                         const std::string& mm_processor_kwargs);

  /// Most of them that are kept.
  static constexpr std::int64_t kMost = 256;

 private:
  [[nodiscard]] ItemProcessing make(Modality modality, const std::string& options) const;

  const checkpoint::HfConfig& files_;
  const MediaOptions media_;
  const TowerOutput output_;
  const ModelFamily family_;
  std::mutex mutex_;  // guards what follows
  Lru<std::string, std::shared_ptr<const ItemProcessing>> known_{kMost};
};

/// As ItemProcessors::of; null for an item without options.
[[nodiscard]] std::shared_ptr<const ItemProcessing> processing_of(ItemProcessors* processors,
                                                                  const MediaItem& item);

}  // namespace fovea
