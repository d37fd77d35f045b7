// Embeddings without their rows, as bytes.
#include "ranks/description.h"

#include <cstring>
#include <string>

#include "core/check.h"
#include "core/row_dtype.h"
#include "fovea/text.h"
#include "ranks/transport/message.h"

namespace fovea::ranks {

namespace {

constexpr std::int64_t kAbsent = -1;

/// The beginning of every description. Lists follow: retained, timestamps, message.
struct Fixed {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::array<std::int64_t, 3> grid_thw{kAbsent, kAbsent, kAbsent};
  std::int64_t source_width_px = 0;
  std::int64_t source_height_px = 0;
  std::int64_t num_frames = 0;
  std::int64_t resized_width_px = 0;
  std::int64_t resized_height_px = 0;
  std::int64_t num_retained = kAbsent;
  std::int64_t num_timestamps = 0;
  std::int64_t message_bytes = 0;
  StageTimes times;
  std::int32_t error_code = kAbsent;
  Modality modality = Modality::kImage;
  RowDType dtype = RowDType::kFloat32;
  std::array<std::uint8_t, 2> unused{};
};

template <class T>
void append(std::span<const T> values, std::vector<std::byte>& bytes) {
  const auto added = std::as_bytes(values);
  bytes.insert(bytes.end(), added.begin(), added.end());
}

/// Takes `count` values from the front of `bytes`. T: std::vector or std::string.
template <class T>
T take(std::span<const std::byte>& bytes, std::int64_t count) {
  using Value = typename T::value_type;
  FOVEA_CHECK(count >= 0 && static_cast<std::uint64_t>(count) <= bytes.size() / sizeof(Value),
              kCorruptData, "description of an embedding: expected ", count, " values of ",
              sizeof(Value), " bytes, got ", bytes.size(), " bytes");
  T values(static_cast<std::size_t>(count), Value{});
  const std::size_t size = values.size() * sizeof(Value);
  if (size > 0) std::memcpy(values.data(), bytes.data(), size);
  bytes = bytes.subspan(size);
  return values;
}

Fixed fixed_part(const Embedding& item) {
  Fixed fixed{.rows = item.rows,
              .width = item.width,
              .source_width_px = item.source_width_px,
              .source_height_px = item.source_height_px,
              .num_frames = item.num_frames,
              .resized_width_px = item.resized_width_px,
              .resized_height_px = item.resized_height_px,
              .num_timestamps = std::ssize(item.timestamps),
              .times = item.times,
              .modality = item.modality,
              .dtype = item.dtype};
  if (item.grid_thw) fixed.grid_thw = *item.grid_thw;
  if (item.retained) fixed.num_retained = std::ssize(*item.retained);
  if (item.error) {
    fixed.error_code = static_cast<std::int32_t>(item.error->code());
    fixed.message_bytes = std::ssize(std::string_view(item.error->what()));
  }
  return fixed;
}

/// @throws as read_description.
void check_rows(const Fixed& fixed, std::size_t most_bytes) {
  const bool known = fixed.modality <= Modality::kVideo && fixed.dtype <= RowDType::kFloat16;
  FOVEA_CHECK(known && fixed.rows >= 0 && fixed.width >= 0, kCorruptData,
              "description of an embedding: got ", fixed.rows, " rows of ", fixed.width,
              known ? "" : " of an unknown kind");
  if (fixed.rows == 0 || fixed.width == 0) return;
  const auto rows = static_cast<std::size_t>(fixed.rows);
  const std::size_t element = size_of(to_dtype(fixed.dtype));
  FOVEA_CHECK(static_cast<std::size_t>(fixed.width) <= most_bytes / element / rows, kCorruptData,
              "description of an embedding: ", fixed.rows, " rows of ", fixed.width,
              " do not fit into ", most_bytes, " bytes");
}

}  // namespace

void append_description(const Embedding& item, std::vector<std::byte>& bytes) {
  const Fixed fixed = fixed_part(item);
  append(std::span(&fixed, 1), bytes);
  if (item.retained) append(std::span<const std::int64_t>(*item.retained), bytes);
  append(std::span<const double>(item.timestamps), bytes);
  if (item.error) append(std::span<const char>(std::string_view(item.error->what())), bytes);
}

Embedding read_description(std::span<const std::byte>& bytes, std::size_t most_bytes) {
  const Fixed fixed = take<std::vector<Fixed>>(bytes, 1).front();
  check_rows(fixed, most_bytes);
  Embedding item;
  item.rows = fixed.rows;
  item.width = fixed.width;
  item.source_width_px = fixed.source_width_px;
  item.source_height_px = fixed.source_height_px;
  item.num_frames = fixed.num_frames;
  item.resized_width_px = fixed.resized_width_px;
  item.resized_height_px = fixed.resized_height_px;
  item.times = fixed.times;
  item.modality = fixed.modality;
  item.dtype = fixed.dtype;
  if (fixed.grid_thw[0] != kAbsent) item.grid_thw = fixed.grid_thw;
  if (fixed.num_retained != kAbsent)
    item.retained = take<std::vector<std::int64_t>>(bytes, fixed.num_retained);
  item.timestamps = take<std::vector<double>>(bytes, fixed.num_timestamps);
  const auto message = take<std::string>(bytes, fixed.message_bytes);
  if (fixed.error_code != kAbsent)
    item.error.emplace(error_code(fixed.error_code), printable(message));
  return item;
}

std::size_t row_bytes(const Embedding& item) noexcept {
  return static_cast<std::size_t>(item.rows * item.width) * size_of(to_dtype(item.dtype));
}

}  // namespace fovea::ranks
