// Safetensors files, read and written. The layout is in safetensors_format.h.
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "checkpoint/safetensors_format.h"
#include "core/check.h"
#include "core/file.h"
#include "core/json_writer.h"
#include "fovea/atomic_file.h"

namespace fovea::checkpoint {

namespace {

constexpr std::uint64_t kHeaderAlignment = 8;

/// A tensor's place in a file that is being written.
struct Placement {
  const OutputTensor* tensor;
  std::uint64_t begin;
  std::uint64_t end;
};

std::vector<Placement> place_tensors(std::span<const OutputTensor> tensors) {
  std::vector<Placement> placements;
  std::set<std::string_view> names{kMetadataKey};
  for (const OutputTensor& tensor : tensors) {
    FOVEA_CHECK(names.insert(tensor.name).second, kInvalidArgument,
                "write_safetensors: ", json_quote(tensor.name), " is given twice or reserved");
    placements.push_back({&tensor, 0, tensor.view.bytes()});
  }
  std::ranges::stable_sort(placements, std::ranges::greater{},
                           [](const Placement& p) { return size_of(p.tensor->view.dtype); });
  std::uint64_t offset = 0;
  for (Placement& p : placements) {
    p.begin = offset;
    p.end = offset += p.end;
  }
  return placements;
}

std::string header_json(std::span<const Placement> placements,
                        const std::map<std::string, std::string>& metadata) {
  JsonObject header;
  if (!metadata.empty()) header.set(kMetadataKey, metadata);
  for (const Placement& p : placements) {
    header.set(p.tensor->name, JsonObject{{"dtype", file_name_of(p.tensor->view.dtype)},
                                          {"shape", p.tensor->view.shape.sizes()},
                                          {"data_offsets", std::array{p.begin, p.end}}});
  }
  std::string json = to_json_text(header);
  const std::size_t blocks = (json.size() + kHeaderAlignment - 1) / kHeaderAlignment;
  json.resize(blocks * kHeaderAlignment, ' ');
  return json;
}

/// The header of an open file. One whose length cannot be right is refused by its first bytes.
SafetensorsHeader read_header(const InputFile& file, const std::string& path) {
  constexpr std::size_t kEnoughToTell = 64;
  const std::size_t size = file.size_bytes();
  std::vector<std::byte> bytes(std::min(size, kEnoughToTell));
  file.read_at(0, bytes);
  if (size >= kLengthBytes) {
    const std::uint64_t length = read_length(std::span(bytes).first<kLengthBytes>());
    if (length <= kMaxHeaderBytes && length <= size - kLengthBytes)
      bytes.resize(kLengthBytes + length);
    file.read_at(0, bytes);
  }
  return parse_safetensors_header(bytes, size, path);
}

}  // namespace

struct SafetensorsFile::Impl {
  explicit Impl(const std::string& file_path)
      : path(file_path), file(file_path), header(read_header(file, path)) {
    by_name.resize(header.tensors.size());
    std::iota(by_name.begin(), by_name.end(), std::size_t{0});
    std::ranges::sort(by_name, {}, [this](std::size_t i) { return name_of(i); });
  }

  [[nodiscard]] std::string_view name_of(std::size_t i) const { return header.tensors[i].name; }

  std::string path;
  InputFile file;
  SafetensorsHeader header;
  std::vector<std::size_t> by_name;  // indices into header.tensors, ascending by name

  std::mutex mutex;  // guards the map below, not the bytes in it
  std::map<std::string, std::vector<std::byte>, std::less<>> kept;
};

SafetensorsFile::SafetensorsFile(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;

const SafetensorsHeader& SafetensorsFile::header() const noexcept { return impl_->header; }

const TensorEntry* SafetensorsFile::find(std::string_view name) const noexcept {
  const auto it = std::ranges::lower_bound(impl_->by_name, name, {},
                                           [this](std::size_t i) { return impl_->name_of(i); });
  if (it == impl_->by_name.end() || impl_->name_of(*it) != name) return nullptr;
  return &impl_->header.tensors[*it];
}

TensorLayout layout_of(const std::string& where, std::string_view name, std::string_view dtype,
                       const std::vector<std::int64_t>& shape) {
  const FileDType* known = find_file_dtype(dtype);
  FOVEA_CHECK(known != nullptr && known->dtype, kUnsupported, where, ": ", json_quote(name),
              " has dtype ", dtype, ", which Fovea does not compute with");
  FOVEA_CHECK(shape.size() <= kMaxRank, kUnsupported, where, ": ", json_quote(name), " has rank ",
              shape.size(), ", at most ", kMaxRank, " is supported");
  return {*known->dtype, Shape(shape)};
}

TensorLayout SafetensorsFile::layout(std::string_view name) const {
  const TensorEntry* entry = find(name);
  FOVEA_CHECK(entry != nullptr, kNotFound, impl_->path, ": no tensor ", json_quote(name));
  return layout_of(impl_->path, name, entry->dtype, entry->shape);
}

void SafetensorsFile::read(std::string_view name, std::size_t offset,
                           std::span<std::byte> out) const {
  const TensorEntry* entry = find(name);
  FOVEA_CHECK(entry != nullptr, kNotFound, impl_->path, ": no tensor ", json_quote(name));
  const std::uint64_t bytes = entry->end - entry->begin;
  FOVEA_CHECK(offset <= bytes && out.size() <= bytes - offset, kInvalidArgument, impl_->path, ": ",
              json_quote(name), " has ", bytes, " bytes, not ", out.size(), " from ", offset,
              " on");
  impl_->file.read_at(impl_->header.data_offset + entry->begin + offset, out);
}

ConstTensorView SafetensorsFile::tensor(std::string_view name) const {
  const TensorLayout known = layout(name);
  const std::lock_guard lock(impl_->mutex);
  auto it = impl_->kept.find(name);
  if (it == impl_->kept.end()) {
    std::vector<std::byte> bytes(known.bytes() + 1);  // an address even without elements
    read(name, 0, std::span(bytes).first(known.bytes()));
    it = impl_->kept.emplace(name, std::move(bytes)).first;
  }
  return {it->second.data(), known.dtype, known.shape};
}

void write_safetensors(std::span<const OutputTensor> tensors,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<void(std::span<const std::byte>)>& sink) {
  const std::vector<Placement> placements = place_tensors(tensors);
  const std::string json = header_json(placements, metadata);
  std::array<std::byte, kLengthBytes> length;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length[i] = static_cast<std::byte>(json.size() >> (kBitsPerByte * static_cast<int>(i)));
  sink(length);
  sink(std::as_bytes(std::span(json)));
  for (const Placement& p : placements) sink({p.tensor->view.data, p.end - p.begin});
}

void write_safetensors(const std::string& path, std::span<const OutputTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::optional<AtomicFile> file;  // nothing is created for tensors that are refused
  write_safetensors(tensors, metadata, [&](std::span<const std::byte> bytes) {
    if (!file) file.emplace(path);
    file->write(bytes);
  });
  file->commit();
}

}  // namespace fovea::checkpoint
