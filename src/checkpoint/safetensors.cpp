// The safetensors format.
//
//   8 bytes   n, little endian: length of the header; n <= kMaxHeaderBytes, 8 + n <= file size
//   n bytes   header, a JSON object that begins with '{' and may end with spaces:
//               "__metadata__": {string: string, ...}                          optional
//               NAME: {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}, ...
//   the rest  data; offsets are relative to its start. Ordered by begin, the tensors tile it:
//             no overlap, no hole, no trailing bytes. Nothing is promised about alignment.
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "core/check.h"
#include "core/file.h"
#include "core/json.h"
#include "core/mapped_file.h"
#include "fovea/atomic_file.h"

namespace fovea::checkpoint {

namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kHeaderAlignment = 8;
constexpr std::int64_t kBitsPerByte = 8;
constexpr const char* kMetadataKey = "__metadata__";

/// First words of the text that stands in for a large file in a git repository.
constexpr std::string_view kLfsPointer = "version https://git-lfs.github.com/spec/";

/// An element type of the format, and ours if Fovea computes with it.
struct FileDType {
  std::string_view name;
  std::int64_t bits;
  std::optional<DType> dtype;
};

constexpr std::array kFileDTypes{
    FileDType{"BOOL", 8, {}},
    FileDType{"U8", 8, DType::kU8},
    FileDType{"I8", 8, {}},
    FileDType{"F8_E4M3", 8, {}},
    FileDType{"F8_E5M2", 8, {}},
    FileDType{"F8_E8M0", 8, {}},
    FileDType{"F4", 4, {}},
    FileDType{"F6_E2M3", 6, {}},
    FileDType{"F6_E3M2", 6, {}},
    FileDType{"I16", 16, {}},
    FileDType{"U16", 16, {}},
    FileDType{"F16", 16, DType::kF16},
    FileDType{"I32", 32, DType::kI32},
    FileDType{"BF16", 16, DType::kBF16},
    FileDType{"U32", 32, {}},
    FileDType{"F32", 32, DType::kF32},
    FileDType{"I64", 64, DType::kI64},
    FileDType{"U64", 64, {}},
    FileDType{"F64", 64, {}},
    FileDType{"C64", 64, {}},
};

const FileDType* find_file_dtype(std::string_view name) noexcept {
  const auto it = std::ranges::find(kFileDTypes, name, &FileDType::name);
  return it == kFileDTypes.end() ? nullptr : &*it;
}

std::string_view file_name_of(DType dtype) noexcept {
  return std::ranges::find(kFileDTypes, std::optional(dtype), &FileDType::dtype)->name;
}

bool begins_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

/// The header's text. `name` is the file's, for messages, as in all functions here.
std::string_view header_text(std::span<const std::byte> file, std::uint64_t file_bytes,
                             const std::string& name) {
  FOVEA_CHECK(file_bytes >= kLengthBytes, kCorruptData, name, ": file has ", file_bytes,
              " bytes, a safetensors file at least ", kLengthBytes);
  FOVEA_CHECK(file.size() >= kLengthBytes, kInvalidArgument, name, ": header given without length");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= std::to_integer<std::uint64_t>(file[i]) << (kBitsPerByte * static_cast<int>(i));
  FOVEA_CHECK(
      !begins_with(file, kLfsPointer), kCorruptData, name,
      ": not the file itself but what git-lfs keeps in its place; `git lfs pull` fetches it");
  FOVEA_CHECK(file.size() == kLengthBytes || begins_with(file.subspan(kLengthBytes), "{"),
              kCorruptData, name, ": not a safetensors file, its header does not begin with '{'");
  FOVEA_CHECK(length <= kMaxHeaderBytes, kCorruptData, name, ": header of ", length,
              " bytes, at most ", kMaxHeaderBytes, " are read");
  FOVEA_CHECK(length <= file_bytes - kLengthBytes, kCorruptData, name, ": header of ", length,
              " bytes in a file of ", file_bytes);
  FOVEA_CHECK(length <= file.size() - kLengthBytes, kInvalidArgument, name, ": header of ", length,
              " bytes, only ", file.size() - kLengthBytes, " given");
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  FOVEA_CHECK(!text.empty(), kCorruptData, name, ": header does not begin with '{', it is empty");
  return text;
}

std::map<std::string, std::string> parse_metadata(const JsonView& object) {
  std::map<std::string, std::string> metadata;
  for (const std::string_view key : object.keys())
    metadata.emplace(key, object.at(key).as_string());
  return metadata;
}

/// A list of sizes or offsets: integers >= 0 written without a fraction.
std::vector<std::int64_t> parse_sizes(const JsonView& list) {
  std::vector<std::int64_t> sizes;
  for (const JsonView& element : list.elements()) {
    FOVEA_CHECK(element.is_integer() && element.as_int() >= 0, kCorruptData, element.path(),
                ": expected an integer >= 0");
    sizes.push_back(element.as_int());
  }
  return sizes;
}

/// Bytes of a tensor. `where` names file and tensor.
std::uint64_t tensor_bytes(const TensorEntry& entry, const std::string& where) {
  const FileDType* dtype = find_file_dtype(entry.dtype);
  FOVEA_CHECK(dtype != nullptr, kUnsupported, where, ": dtype ", json_quote(entry.dtype),
              " is not known");
  std::optional<std::int64_t> bits = dtype->bits;
  for (const std::int64_t size : entry.shape) {
    if (bits) bits = checked_mul(*bits, size);
  }
  FOVEA_CHECK(bits.has_value(), kCorruptData, where,
              ": shape has more bits than 63 bits can count");
  FOVEA_CHECK(*bits % kBitsPerByte == 0, kCorruptData, where, ": ", *bits,
              " bits are not whole bytes");
  return static_cast<std::uint64_t>(*bits / kBitsPerByte);
}

TensorEntry parse_entry(std::string_view name, const JsonView& object, std::uint64_t data_bytes) {
  TensorEntry entry;
  entry.name = name;
  entry.dtype = object.at("dtype").as_string();
  const std::string where = object.path();
  const JsonView shape = object.at("shape");
  FOVEA_CHECK(shape.num_elements() <= kMaxEntryRank, kCorruptData, where, ": rank ",
              shape.num_elements(), ", at most ", kMaxEntryRank, " is read");
  entry.shape = parse_sizes(shape);
  const JsonView span = object.at("data_offsets");
  FOVEA_CHECK(span.num_elements() == 2, kCorruptData, where, ": expected 2 data_offsets, got ",
              span.num_elements());
  const std::vector<std::int64_t> offsets = parse_sizes(span);
  entry.begin = static_cast<std::uint64_t>(offsets[0]);
  entry.end = static_cast<std::uint64_t>(offsets[1]);
  FOVEA_CHECK(entry.begin <= entry.end, kCorruptData, where, ": begins at ", entry.begin,
              " after its end at ", entry.end);
  FOVEA_CHECK(entry.end <= data_bytes, kCorruptData, where, ": spans bytes ", entry.begin, "..",
              entry.end, " of ", data_bytes);
  const std::uint64_t expected = tensor_bytes(entry, where);
  FOVEA_CHECK(expected == entry.end - entry.begin, kCorruptData, where, ": shape and dtype need ",
              expected, " bytes, data_offsets span ", entry.end - entry.begin);
  return entry;
}

/// Orders the tensors by their place and checks that they cover the data once.
void check_tiling(std::vector<TensorEntry>& tensors, std::uint64_t data_bytes,
                  const std::string& name) {
  std::ranges::sort(tensors, {}, [](const TensorEntry& entry) {
    return std::tie(entry.begin, entry.end, entry.name);
  });
  std::uint64_t covered = 0;
  for (const TensorEntry& entry : tensors) {
    FOVEA_CHECK(entry.begin >= covered, kCorruptData, name, ": ", json_quote(entry.name),
                " begins at byte ", entry.begin, " inside another tensor that ends at ", covered);
    FOVEA_CHECK(entry.begin == covered, kCorruptData, name, ": bytes ", covered, "..", entry.begin,
                " before ", json_quote(entry.name), " belong to no tensor");
    covered = entry.end;
  }
  FOVEA_CHECK(covered == data_bytes, kCorruptData, name, ": ", data_bytes - covered,
              " bytes follow the last tensor");
}

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
  std::string json;
  const auto separate = [&json] { json += json.back() == '{' ? "" : ","; };
  json += '{';
  if (!metadata.empty()) {
    json += cat(json_quote(kMetadataKey), ":{");
    for (const auto& [key, value] : metadata) {
      separate();
      json += cat(json_quote(key), ":", json_quote(value));
    }
    json += '}';
  }
  for (const Placement& p : placements) {
    separate();
    json += cat(json_quote(p.tensor->name), ":{\"dtype\":\"", file_name_of(p.tensor->view.dtype),
                "\",\"shape\":[");
    const char* comma = "";
    for (const std::int64_t size : p.tensor->view.shape.sizes()) {
      json += cat(comma, size);
      comma = ",";
    }
    json += cat("],\"data_offsets\":[", p.begin, ",", p.end, "]}");
  }
  json += '}';
  const std::size_t blocks = (json.size() + kHeaderAlignment - 1) / kHeaderAlignment;
  json.resize(blocks * kHeaderAlignment, ' ');
  return json;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           std::uint64_t file_bytes, const std::string& name) {
  const std::string_view text = header_text(file, file_bytes, name);
  const JsonDocument document = JsonDocument::parse(text, name, DuplicateKeys::kReject);
  const JsonView root = document.root();
  SafetensorsHeader header;
  header.data_offset = kLengthBytes + text.size();
  const std::uint64_t data_bytes = file_bytes - header.data_offset;
  for (const std::string_view key : root.keys()) {
    if (key == kMetadataKey) {
      header.metadata = parse_metadata(root.at(key));
    } else {
      header.tensors.push_back(parse_entry(key, root.at(key), data_bytes));
    }
  }
  check_tiling(header.tensors, data_bytes, name);
  return header;
}

struct SafetensorsFile::Impl {
  explicit Impl(const std::string& file_path) : path(file_path), file(file_path) {
    header = parse_safetensors_header(file.bytes(), file.bytes().size(), path);
    by_name.resize(header.tensors.size());
    std::iota(by_name.begin(), by_name.end(), std::size_t{0});
    std::ranges::sort(by_name, {}, [this](std::size_t i) { return name_of(i); });
  }

  [[nodiscard]] std::string_view name_of(std::size_t i) const { return header.tensors[i].name; }

  std::string path;
  MappedFile file;
  SafetensorsHeader header;
  std::vector<std::size_t> by_name;  // indices into header.tensors, ascending by name
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

ConstTensorView SafetensorsFile::tensor(std::string_view name) const {
  const TensorEntry* entry = find(name);
  FOVEA_CHECK(entry != nullptr, kNotFound, impl_->path, ": no tensor ", json_quote(name));
  const std::optional<DType> dtype = find_file_dtype(entry->dtype)->dtype;
  FOVEA_CHECK(dtype.has_value(), kUnsupported, impl_->path, ": ", json_quote(name), " has dtype ",
              entry->dtype, ", which Fovea does not compute with");
  FOVEA_CHECK(entry->shape.size() <= kMaxRank, kUnsupported, impl_->path, ": ", json_quote(name),
              " has rank ", entry->shape.size(), ", at most ", kMaxRank, " is supported");
  const std::byte* const data =
      impl_->file.bytes().data() + impl_->header.data_offset + entry->begin;
  return {data, *dtype, Shape(entry->shape)};
}

void write_safetensors(const std::string& path, std::span<const OutputTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::vector<Placement> placements = place_tensors(tensors);
  const std::string json = header_json(placements, metadata);
  std::array<std::byte, kLengthBytes> length;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length[i] = static_cast<std::byte>(json.size() >> (kBitsPerByte * static_cast<int>(i)));

  AtomicFile file(path);
  file.write(length);
  file.write(std::as_bytes(std::span(json)));
  for (const Placement& p : placements) file.write({p.tensor->view.data, p.end - p.begin});
  file.commit();
}

}  // namespace fovea::checkpoint
