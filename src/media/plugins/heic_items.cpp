// A HEIF file is a sequence of boxes: a length of 4 bytes, highest first, a name of 4, and
// contents; length 1 has 8 more bytes of length behind the name, length 0 reaches to the end. The
// box `meta` holds those that describe the items of the file:
//   pitm  which item is the image
//   iinf  the type of every item: hvc1 is coded with HEVC, grid is made of others
//   iref  which items are made of which (dimg)
//   iloc  the extents of the file that every item consists of
// Limits: nothing is allocated but a list of types and one of references, both within the file.
#include "media/plugins/heic_items.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "media/bytes.h"

namespace fovea::media {
namespace {

/// Takes numbers and boxes from the front of a part of the file.
class BoxReader {
 public:
  BoxReader(Bytes bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }

  /// A number of 0 to 8 bytes, highest first.
  std::uint64_t number(std::size_t num_bytes) {
    std::uint64_t value = 0;
    for (const std::uint8_t byte : take(num_bytes)) value = value << 8 | byte;
    return value;
  }

  std::string_view word() { return text_of(take(4)); }

  struct Box {
    std::string_view type;
    Bytes contents;
  };

  /// The next box if all of it is there.
  std::optional<Box> whole_box() {
    constexpr std::size_t kHead = 8;
    if (bytes_.size() < kHead) return std::nullopt;
    const std::uint32_t length = big_endian_u32(bytes_);
    const std::string_view type = text_of(bytes_.subspan(4, 4));
    BoxReader rest(bytes_.subspan(kHead), name_);
    std::uint64_t size = length == 0 ? bytes_.size() : length;
    if (length == 1) {
      if (rest.bytes_.size() < 8) return std::nullopt;
      size = rest.number(8);
    }
    const std::size_t head = bytes_.size() - rest.bytes_.size();
    if (size < head || size > bytes_.size()) return std::nullopt;
    const Bytes contents = take(static_cast<std::size_t>(size)).subspan(head);
    return Box{type, contents};
  }

  Box box() {
    const std::optional<Box> next = whole_box();
    FOVEA_CHECK(next, kCorruptData, name_, ": HEIC box that does not fit into the one around it");
    return *next;
  }

 private:
  Bytes take(std::size_t num_bytes) {
    FOVEA_CHECK(num_bytes <= bytes_.size(), kCorruptData, name_, ": HEIC box that ends too early");
    const Bytes taken = bytes_.first(num_bytes);
    bytes_ = bytes_.subspan(num_bytes);
    return taken;
  }

  Bytes bytes_;
  std::string_view name_;
};

using Item = std::uint32_t;

struct Items {
  std::optional<Item> primary;
  std::map<Item, std::string_view> types;
  std::vector<std::pair<Item, Item>> made_of;
};

std::size_t id_bytes(bool is_wide) { return is_wide ? 4 : 2; }

void read_primary(BoxReader box, Items& items) {
  const std::uint64_t version = box.number(1);
  (void)box.number(3);
  items.primary = static_cast<Item>(box.number(id_bytes(version > 0)));
}

void read_types(BoxReader box, std::string_view name, Items& items) {
  const std::uint64_t version = box.number(1);
  (void)box.number(3);
  (void)box.number(id_bytes(version > 0));  // how many follow
  while (!box.empty()) {
    const auto [type, contents] = box.box();
    if (type != "infe") continue;
    BoxReader entry(contents, name);
    const std::uint64_t entry_version = entry.number(1);
    (void)entry.number(3);
    if (entry_version < 2) continue;  // has no type
    const auto item = static_cast<Item>(entry.number(id_bytes(entry_version > 2)));
    (void)entry.number(2);  // protection
    items.types.emplace(item, entry.word());
  }
}

void read_references(BoxReader box, std::string_view name, Items& items) {
  const std::uint64_t version = box.number(1);
  (void)box.number(3);
  while (!box.empty()) {
    const auto [type, contents] = box.box();
    if (type != "dimg") continue;
    BoxReader reference(contents, name);
    const auto from = static_cast<Item>(reference.number(id_bytes(version > 0)));
    for (std::uint64_t left = reference.number(2); left > 0; --left)
      items.made_of.emplace_back(from, reference.number(id_bytes(version > 0)));
  }
}

/// Checks that items have no more bytes than the file has twice. Where a file leaves out their
/// lengths, which stand for all of it, extents take no bytes: the third is refused, not the last.
void check_extents(BoxReader box, const EncodedImage& source) {
  const std::uint64_t file_bytes = source.bytes.size();
  std::uint64_t num_bytes = 0;
  const std::uint64_t version = box.number(1);
  (void)box.number(3);
  const std::uint64_t sizes = box.number(2);
  const std::size_t offset_bytes = sizes >> 12;
  const std::size_t length_bytes = sizes >> 8 & 15;
  const std::size_t base_bytes = sizes >> 4 & 15;
  const std::size_t index_bytes = version > 0 ? sizes & 15 : 0;
  for (std::uint64_t left = box.number(id_bytes(version > 1)); left > 0; --left) {
    (void)box.number(id_bytes(version > 1));
    if (version > 0) (void)box.number(2);  // how the item is stored
    (void)box.number(2);
    (void)box.number(base_bytes);
    for (std::uint64_t extents = box.number(2); extents > 0; --extents) {
      (void)box.number(index_bytes);
      (void)box.number(offset_bytes);
      const std::uint64_t length = box.number(length_bytes);
      num_bytes += length == 0 ? file_bytes : std::min(length, file_bytes);
      FOVEA_CHECK(num_bytes <= 2 * file_bytes, kCorruptData, source.name,
                  ": HEIC items of at least ", num_bytes, " bytes in a file of ", file_bytes);
    }
  }
}

/// The contents of the only box of a type, in front of what is no box; nothing if there is none.
std::optional<Bytes> only_box(BoxReader boxes, std::string_view type, std::string_view name) {
  std::optional<Bytes> found;
  while (const std::optional<BoxReader::Box> box = boxes.whole_box()) {
    if (box->type != type) continue;
    FOVEA_CHECK(!found, kCorruptData, name, ": HEIC file with two boxes ", type);
    found = box->contents;
  }
  return found;
}

Items read_items(const EncodedImage& source) {
  const std::string_view name = source.name;
  const std::optional<Bytes> meta = only_box({source.bytes, name}, "meta", name);
  FOVEA_CHECK(meta && meta->size() >= 4, kCorruptData, name, ": HEIC file without a box meta");
  const BoxReader boxes(meta->subspan(4), name);  // behind version and flags
  Items items;
  if (const auto box = only_box(boxes, "pitm", name)) read_primary({*box, name}, items);
  if (const auto box = only_box(boxes, "iinf", name)) read_types({*box, name}, name, items);
  if (const auto box = only_box(boxes, "iref", name)) read_references({*box, name}, name, items);
  if (const auto box = only_box(boxes, "iloc", name)) check_extents({*box, name}, source);
  return items;
}

std::string_view type_of(const Items& items, Item item) {
  const auto found = items.types.find(item);
  return found == items.types.end() ? "none" : found->second;
}

}  // namespace

bool check_heic_items(const EncodedImage& source) {
  const Items items = read_items(source);
  FOVEA_CHECK(items.primary, kCorruptData, source.name, ": HEIC file that names no image");
  const std::string_view type = type_of(items, *items.primary);
  FOVEA_CHECK(type == "hvc1" || type == "grid", kUnsupported, source.name,
              ": expected an image coded with HEVC or a grid of such images, got item type ", type);
  for (const auto& [item, part] : items.made_of) {
    const std::string_view part_type = type_of(items, part);
    FOVEA_CHECK(type_of(items, item) == "grid" && part_type == "hvc1", kUnsupported, source.name,
                ": expected images made of tiles coded with HEVC, got item type ",
                type_of(items, item), " made of ", part_type);
  }
  return type == "grid";
}

}  // namespace fovea::media
