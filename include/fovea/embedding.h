#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fovea/error.h"
#include "fovea/export.h"
#include "fovea/media.h"
#include "fovea/options.h"
#include "fovea/stats.h"

namespace fovea {

/// Milliseconds one item spent in each stage. Items that are packed together share the times of
/// `pack`, `encode` and `output` in proportion to their rows. `pack` and `encode` add up to the
/// time from prepared items to rows on the device; with several replicas this is a sum over the
/// devices. Stages of different items overlap.
struct StageTimes {
  double read_ms = 0;    ///< file to memory
  double decode_ms = 0;  ///< encoded bytes to RGB
  double resize_ms = 0;  ///< RGB to the model's size
  double pack_ms = 0;    ///< on the host: packing, filling inputs, submitting their upload
  double encode_ms = 0;  ///< the tower, less the time in which packing overlaps with it
  double output_ms = 0;  ///< rows to the caller's dtype and memory

  /// Adds stage by stage.
  StageTimes& operator+=(const StageTimes& other) noexcept;
};

/// A stage with its name, for tables.
struct Stage {
  const char* name;
  double StageTimes::*ms;
};

/// All of them, in the order in which an item goes through them.
inline constexpr std::array<Stage, 6> kStages{{{"read", &StageTimes::read_ms},
                                               {"decode", &StageTimes::decode_ms},
                                               {"resize", &StageTimes::resize_ms},
                                               {"pack", &StageTimes::pack_ms},
                                               {"encode", &StageTimes::encode_ms},
                                               {"output", &StageTimes::output_ms}}};

inline StageTimes& StageTimes::operator+=(const StageTimes& other) noexcept {
  for (const Stage& stage : kStages) this->*stage.ms += other.*stage.ms;
  return *this;
}

/// Elements of rows: memory of its own, aligned to 64 bytes. What is new in it is not initialised,
/// because that would take as long as computing it. From 2 MiB on memory comes from the system, in
/// huge pages where they are to be had, and goes back there when it is freed: a page fault every
/// 4 KiB would take longer than to fill them. Functions that take memory throw std::bad_alloc.
class FOVEA_API RowBytes {
 public:
  RowBytes() noexcept = default;
  explicit RowBytes(std::size_t size);
  /// A copy.
  explicit RowBytes(std::span<const std::byte> bytes);
  RowBytes(const RowBytes& other);
  RowBytes(RowBytes&& other) noexcept;
  RowBytes& operator=(RowBytes other) noexcept;
  ~RowBytes();

  /// Keeps the bytes that both sizes have. Gives no memory back.
  void resize(std::size_t size);

  [[nodiscard]] std::byte* data() noexcept { return data_; }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::byte* begin() noexcept { return data_; }
  [[nodiscard]] std::byte* end() noexcept { return data_ + size_; }
  [[nodiscard]] const std::byte* begin() const noexcept { return data_; }
  [[nodiscard]] const std::byte* end() const noexcept { return data_ + size_; }
  friend bool operator==(const RowBytes& a, const RowBytes& b) noexcept {
    return a.size_ == b.size_ && (a.empty() || std::memcmp(a.data_, b.data_, a.size_) == 0);
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// The rows of one item, owned, in host memory; or, without data, what is known about rows that
/// were written to a destination of the caller.
struct Embedding {
  std::string name;  ///< of the MediaItem
  Modality modality = Modality::kImage;
  std::int64_t rows = 0;
  std::int64_t width = 0;  ///< the main embedding, then the deepstack levels: hidden * (1 + levels)
  RowDType dtype = RowDType::kFloat32;
  RowBytes data;                                        ///< rows * width elements, row-major
  std::optional<std::array<std::int64_t, 3>> grid_thw;  ///< in patches, for families with a grid
  /// Of a pruned video: which rows of the whole one these are, ascending. The grid stays that of
  /// the whole video.
  std::optional<std::vector<std::int64_t>> retained;
  /// Of a video with known times: seconds of each temporal patch (grid_thw[0]; of each frame where
  /// there is no grid), as prompts of the family name them (docs/models). Not of finished rows.
  std::vector<double> timestamps;
  std::int64_t source_width_px = 0;  ///< both 0 if the item came as pixel values
  std::int64_t source_height_px = 0;
  std::int64_t num_frames = 1;
  std::int64_t resized_width_px = 0;
  std::int64_t resized_height_px = 0;
  /// With an encoder cache: the name of these rows, 64 hexadecimal digits that depend on content,
  /// model and options, among these the dtype of the rows and the rate of pruning.
  /// Empty without one, for finished rows, and on ranks that have not encoded its first units.
  std::string key;
  /// The name by which Engine::lend_rows() finds these very rows in the encoder cache. Empty where
  /// it has others: of another dtype, of the whole of a pruned video, or none at all.
  std::string cache_key;
  /// Where the rows come from; of what another rank has encoded kNotAsked and kNone, and of what
  /// ranks share that of its first units.
  CacheUse cache = CacheUse::kNotAsked;
  GraphUse graph = GraphUse::kNone;
  std::int64_t units_reused = 0;  ///< as Stats::units_reused, of this item
  StageTimes times;
  std::optional<Error> error;  ///< set, and rows = 0, if the item failed under OnError::kSkip

  /// Whether the rows are here, and not in a destination.
  [[nodiscard]] bool has_data() const noexcept { return rows == 0 || width == 0 || !data.empty(); }
  /// Element [row, column] as float, whatever the dtype.
  /// @throws Error(kInvalidArgument) if there is no such element, or no data.
  [[nodiscard]] FOVEA_API float at(std::int64_t row, std::int64_t column) const;
  /// Whether no element is infinite or NaN.
  [[nodiscard]] FOVEA_API bool is_finite() const noexcept;
};

/// An item that stands for rows encoded earlier, with their name, modality, grid and what pruning
/// retained, but without timestamps. A cache of embeddings passes it in place of an image that it
/// knows. Copies the rows; see precomputed_rows().
/// @throws Error(kInvalidArgument) if the embedding holds an error instead of rows, or no data.
[[nodiscard]] FOVEA_API MediaItem precomputed(const Embedding& item);

/// Writes a safetensors file with `item_<i>` [rows, width] for every item without an error, where
/// it has them with `item_<i>.grid_thw` [3] int64 and `item_<i>.retained` [rows] int64; i is the
/// index in `items`. The file appears complete or not at all.
/// @param metadata is written to `__metadata__`, together with "format", "fovea.version" and
/// "fovea.items".
/// @throws Error(kIo) if the file cannot be written, Error(kInvalidArgument) for rows without data.
FOVEA_API void save_safetensors(const std::string& path, std::span<const Embedding> items,
                                const std::map<std::string, std::string>& metadata);

}  // namespace fovea
