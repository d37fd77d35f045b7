// Headers of safetensors files (safetensors_format.h), checked against the size of the file.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_format.h"
#include "core/check.h"
#include "core/json.h"
#include "core/json_writer.h"

namespace fovea::checkpoint {

namespace {

/// First words of the text that stands in for a large file in a git repository.
constexpr std::string_view kLfsPointer = "version https://git-lfs.github.com/spec/";

bool begins_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

/// The header's text. `name` is the file's, for messages, as in all functions here.
std::string_view header_text(std::span<const std::byte> file, std::uint64_t file_bytes,
                             const std::string& name) {
  FOVEA_CHECK(file_bytes >= kLengthBytes, kCorruptData, name, ": file has ", file_bytes,
              " bytes, a safetensors file at least ", kLengthBytes);
  FOVEA_CHECK(file.size() >= kLengthBytes, kInvalidArgument, name, ": header given without length");
  const std::uint64_t length = read_length(file.first<kLengthBytes>());
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

// A path is for messages alone: JsonView::path() looks at all that stands behind the tensor, and a
// header may list a hundred thousand of them.

/// Bytes of a tensor. @param object that describes it.
std::uint64_t tensor_bytes(const TensorEntry& entry, const JsonView& object) {
  const FileDType* dtype = find_file_dtype(entry.dtype);
  FOVEA_CHECK(dtype != nullptr, kUnsupported, object.path(), ": dtype ", json_quote(entry.dtype),
              " is not known");
  std::optional<std::int64_t> bits = dtype->bits;
  for (const std::int64_t size : entry.shape) {
    if (bits) bits = checked_mul(*bits, size);
  }
  FOVEA_CHECK(bits.has_value(), kCorruptData, object.path(),
              ": shape has more bits than 63 bits can count");
  FOVEA_CHECK(*bits % kBitsPerByte == 0, kCorruptData, object.path(), ": ", *bits,
              " bits are not whole bytes");
  return static_cast<std::uint64_t>(*bits / kBitsPerByte);
}

TensorEntry parse_entry(std::string_view name, const JsonView& object, std::uint64_t data_bytes) {
  TensorEntry entry;
  entry.name = name;
  entry.dtype = object.at("dtype").as_string();
  const JsonView shape = object.at("shape");
  FOVEA_CHECK(shape.num_elements() <= kMaxEntryRank, kCorruptData, object.path(), ": rank ",
              shape.num_elements(), ", at most ", kMaxEntryRank, " is read");
  entry.shape = parse_sizes(shape);
  const JsonView span = object.at("data_offsets");
  FOVEA_CHECK(span.num_elements() == 2, kCorruptData, object.path(),
              ": expected 2 data_offsets, got ", span.num_elements());
  const std::vector<std::int64_t> offsets = parse_sizes(span);
  entry.begin = static_cast<std::uint64_t>(offsets[0]);
  entry.end = static_cast<std::uint64_t>(offsets[1]);
  FOVEA_CHECK(entry.begin <= entry.end, kCorruptData, object.path(), ": begins at ", entry.begin,
              " after its end at ", entry.end);
  FOVEA_CHECK(entry.end <= data_bytes, kCorruptData, object.path(), ": spans bytes ", entry.begin,
              "..", entry.end, " of ", data_bytes);
  const std::uint64_t expected = tensor_bytes(entry, object);
  FOVEA_CHECK(expected == entry.end - entry.begin, kCorruptData, object.path(),
              ": shape and dtype need ", expected, " bytes, data_offsets span ",
              entry.end - entry.begin);
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

}  // namespace fovea::checkpoint
