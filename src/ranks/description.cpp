// Embeddings without their rows, as bytes.
#include "ranks/description.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "core/check.h"
#include "core/row_dtype.h"
#include "fovea/text.h"
#include "ranks/transport/message.h"

namespace fovea::ranks {

namespace {

constexpr std::int64_t kAbsent = -1;

/// The members that are numbers.
constexpr std::array kNumbers{&Embedding::rows,
                              &Embedding::width,
                              &Embedding::source_width_px,
                              &Embedding::source_height_px,
                              &Embedding::num_frames,
                              &Embedding::resized_width_px,
                              &Embedding::resized_height_px};

/// The beginning of every description. Lists follow: retained, timestamps, message.
struct Fixed {
  std::array<std::int64_t, kNumbers.size()> numbers{};
  std::array<std::int64_t, 3> grid_thw{kAbsent, kAbsent, kAbsent};
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
  Fixed fixed{.num_timestamps = std::ssize(item.timestamps),
              .times = item.times,
              .modality = item.modality,
              .dtype = item.dtype};
  std::ranges::transform(kNumbers, fixed.numbers.begin(),
                         [&](const auto number) { return item.*number; });
  if (item.grid_thw) fixed.grid_thw = *item.grid_thw;
  if (item.retained) fixed.num_retained = std::ssize(*item.retained);
  if (item.error) {
    fixed.error_code = static_cast<std::int32_t>(item.error->code());
    fixed.message_bytes = std::ssize(std::string_view(item.error->what()));
  }
  return fixed;
}

/// @throws as read_description.
void check_rows(const Embedding& item, std::size_t most_bytes) {
  const bool known = item.modality <= Modality::kVideo && item.dtype <= RowDType::kFloat16;
  FOVEA_CHECK(known && item.rows >= 0 && item.width >= 0, kCorruptData,
              "description of an embedding: got ", item.rows, " rows of ", item.width,
              known ? "" : " of an unknown kind");
  if (item.rows == 0 || item.width == 0) return;
  const auto rows = static_cast<std::size_t>(item.rows);
  const std::size_t element = size_of(to_dtype(item.dtype));
  FOVEA_CHECK(static_cast<std::size_t>(item.width) <= most_bytes / element / rows, kCorruptData,
              "description of an embedding: ", item.rows, " rows of ", item.width,
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
  Embedding item;
  for (std::size_t i = 0; i < kNumbers.size(); ++i) item.*kNumbers[i] = fixed.numbers[i];
  item.times = fixed.times;
  item.modality = fixed.modality;
  item.dtype = fixed.dtype;
  check_rows(item, most_bytes);
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
