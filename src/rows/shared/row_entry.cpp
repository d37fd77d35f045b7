// What is known of an item as texts, and back; checked before anything of it is used.
#include "rows/shared/row_entry.h"

#include <array>
#include <charconv>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "checkpoint/safetensors.h"
#include "core/check.h"
#include "core/row_dtype.h"
#include "fovea/row_formats.h"
#include "rows/formats/torch_format.h"

namespace fovea {
namespace {

using Texts = std::map<std::string, std::string>;

constexpr const char* kTensor = "rows";
constexpr const char* kCheck = "check";
constexpr const char* kFormat = "fovea.rows.1";
constexpr std::size_t kMaxTimestamps = 1'000'000;

/// Numbers so that they read back as the same.
template <class Numbers>
std::string join_numbers(const Numbers& numbers) {
  std::string text;
  for (const auto number : numbers) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    text.append(text.empty() ? "" : ",").append(digits.data(), end);
  }
  return text;
}

/// The inverse; nothing for other text, and for more numbers than `most`.
template <class Number>
std::optional<std::vector<Number>> split_numbers(std::string_view text, std::size_t most) {
  std::vector<Number> numbers;
  while (!text.empty()) {
    Number number{};
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || numbers.size() == most) return std::nullopt;
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != ',' || text.size() == 1) return std::nullopt;
    text.remove_prefix(1);
  }
  return numbers;
}

Texts texts_of(const std::string& name, const Embedding& item) {
  const std::array sizes{item.source_width_px, item.source_height_px, item.num_frames,
                         item.resized_width_px, item.resized_height_px};
  Texts texts{{"format", kFormat},
              {"name", name},
              {"modality", item.modality == Modality::kVideo ? "video" : "image"},
              {"sizes", join_numbers(sizes)},
              {"timestamps", join_numbers(item.timestamps)}};
  if (item.grid_thw) texts["grid_thw"] = join_numbers(*item.grid_thw);
  return texts;
}

/// Of texts, and of rows with their type and shape.
std::string checksum_of(const Texts& texts, const ConstTensorView& rows) {
  std::string all = cat(to_string(rows.dtype), ' ', rows.shape[0], ' ', rows.shape[1]);
  for (const auto& [key, text] : texts) {
    if (key != kCheck) all.append("\n").append(key).append("=").append(text);
  }
  return join_numbers(
      std::array{torch_format::checksum(std::as_bytes(std::span(all))),
                 torch_format::checksum({static_cast<const std::byte*>(rows.data), rows.bytes()})});
}

/// Fills in what texts say; false if they do not.
bool read_facts(const Texts& texts, Embedding& facts) {
  const auto text_of = [&texts](const char* key) {
    const auto found = texts.find(key);
    return found == texts.end() ? std::string_view() : std::string_view(found->second);
  };
  const std::string_view modality = text_of("modality");
  if (modality != "video" && modality != "image") return false;
  facts.modality = modality == "video" ? Modality::kVideo : Modality::kImage;
  constexpr std::size_t kSizes = 5;
  const auto sizes = split_numbers<std::int64_t>(text_of("sizes"), kSizes);
  if (!sizes || sizes->size() != kSizes) return false;
  facts.source_width_px = (*sizes)[0];
  facts.source_height_px = (*sizes)[1];
  facts.num_frames = (*sizes)[2];
  facts.resized_width_px = (*sizes)[3];
  facts.resized_height_px = (*sizes)[4];
  auto timestamps = split_numbers<double>(text_of("timestamps"), kMaxTimestamps);
  if (!timestamps) return false;
  facts.timestamps = *std::move(timestamps);
  if (!texts.contains("grid_thw")) return true;
  const auto grid = split_numbers<std::int64_t>(text_of("grid_thw"), 3);
  if (!grid || grid->size() != 3) return false;
  facts.grid_thw = {(*grid)[0], (*grid)[1], (*grid)[2]};
  return true;
}

}  // namespace

ConstTensorView RowEntry::rows() const noexcept {
  return {file.data() + offset, to_dtype(facts.dtype), {facts.rows, facts.width}};
}

std::vector<std::byte> encode_entry(const std::string& name, const Embedding& item) {
  const StoredTensor tensor = stored_rows(item, kTensor);
  Texts texts = texts_of(name, item);
  const ConstTensorView rows{item.data.data(), to_dtype(item.dtype), {item.rows, item.width}};
  texts[kCheck] = checksum_of(texts, rows);
  return in_memory([&](const ByteSink& sink) { write_safetensors({&tensor, 1}, texts, sink); });
}

std::optional<RowEntry> decode_entry(const std::string& name, RowBytes file) try {
  const checkpoint::SafetensorsHeader header =
      checkpoint::parse_safetensors_header({file.data(), file.size()}, file.size(), name);
  const Texts& texts = header.metadata;
  const auto has = [&texts](const char* key, std::string_view text) {
    const auto found = texts.find(key);
    return found != texts.end() && found->second == text;
  };
  if (!has("format", kFormat) || !has("name", name) || header.tensors.size() != 1) return {};
  const checkpoint::TensorEntry& tensor = header.tensors.front();
  const checkpoint::TensorLayout layout =
      checkpoint::layout_of(name, tensor.name, tensor.dtype, tensor.shape);
  const std::optional<RowDType> dtype = to_row_dtype(layout.dtype);
  if (!dtype || layout.shape.rank() != 2) return {};
  RowEntry entry{.facts = {}, .file = std::move(file), .offset = header.data_offset + tensor.begin};
  entry.facts.rows = layout.shape[0];
  entry.facts.width = layout.shape[1];
  entry.facts.dtype = *dtype;
  if (!read_facts(texts, entry.facts) || !has(kCheck, checksum_of(texts, entry.rows()))) return {};
  return entry;
} catch (const Error& error) {
  if (error.code() == ErrorCode::kOutOfMemory) throw;
  return std::nullopt;  // it is no safetensors file
}

}  // namespace fovea
