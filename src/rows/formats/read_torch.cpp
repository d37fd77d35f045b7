// A tensor out of what torch.save() writes. The pickle is matched, not run: whatever is not the
// description of one tensor is refused. Source: docs/reference/row_formats.md, "torch".
#include <algorithm>
#include <optional>
#include <utility>

#include "core/boundary.h"
#include "core/check.h"
#include "rows/formats/stored_tensor.h"
#include "rows/formats/torch_format.h"

namespace fovea {

namespace {

using namespace torch_format;  // NOLINT: of this file

/// Bytes that are read from front to back. All functions throw Error(kCorruptData) at the end.
class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  std::string_view take(std::size_t count) {
    FOVEA_CHECK(count <= text_.size(), kCorruptData, name_, ": a torch archive ends too soon");
    const std::string_view taken = text_.substr(0, count);
    text_.remove_prefix(count);
    return taken;
  }
  /// @param bytes at most 8.
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::string_view taken = take(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(taken[i])) << 8 * i;
    }
    return value;
  }
  [[nodiscard]] std::string_view left() const noexcept { return text_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string_view text_;
  const std::string& name_;
};

/// What the pickle says.
struct Description {
  StoredTensor tensor;
  std::string key;  // of the entry with the elements
  std::int64_t storage_elements = 0;
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
};

/// Matches the one pickle that describes a tensor.
class PickleMatcher {
 public:
  explicit PickleMatcher(Reader reader) : reader_(reader) {}

  Description run() {
    Description found;
    expect(
        "\x80\x02"
        "ctorch._utils\n_rebuild_tensor_v2\n");
    expect("(");
    expect("(");
    FOVEA_CHECK(text() == "storage", kUnsupported, reader_.name(), kOther);
    found.tensor.type = storage();
    found.key = text();
    FOVEA_CHECK(text() == "cpu", kUnsupported, reader_.name(), ": a tensor of another device");
    found.storage_elements = integer();
    expect("t");
    expect("Q");
    found.offset = integer();
    found.tensor.shape = tuple();
    found.strides = tuple();
    expect("\x89");
    expect("ccollections\nOrderedDict\n");
    for (const char* rest : {")", "R", "t", "R", "."}) expect(rest);
    return found;
  }

 private:
  static constexpr const char* kOther = ": a torch archive of something else than one tensor";

  /// Skips what is noted for later use; there is none.
  void skip_memos() {
    while (reader_.left().starts_with('q')) (void)reader_.take(2);
    while (reader_.left().starts_with('r')) (void)reader_.take(5);
  }
  void expect(std::string_view part) {
    skip_memos();
    FOVEA_CHECK(reader_.left().starts_with(part), kUnsupported, reader_.name(), kOther);
    (void)reader_.take(part.size());
  }
  [[nodiscard]] bool next_is(char opcode) {
    skip_memos();
    return reader_.left().starts_with(opcode);
  }
  std::string text() {
    expect("X");
    const std::uint64_t length = reader_.number(4);
    return std::string(reader_.take(length));
  }
  StoredType storage() {
    expect("ctorch\n");
    for (const Storage& known : kStorages) {
      if (!reader_.left().starts_with(std::string(known.name) + "\n")) continue;
      (void)reader_.take(known.name.size() + 1);
      return known.type;
    }
    FOVEA_CHECK(false, kUnsupported, reader_.name(), ": a tensor of another element type");
  }
  std::int64_t integer() {
    skip_memos();
    const char opcode = reader_.take(1).front();
    std::uint64_t value = 0;
    switch (opcode) {
      case 'K': value = reader_.number(1); break;
      case 'M': value = reader_.number(2); break;
      case 'J': value = reader_.number(4); break;
      case '\x8a': value = long_integer(); break;
      default: FOVEA_CHECK(false, kUnsupported, reader_.name(), kOther);
    }
    const std::uint64_t most = opcode == 'J' ? 0x7fffffff : 0x7fffffffffffffff;
    FOVEA_CHECK(value <= most, kCorruptData, reader_.name(), ": a negative or huge number");
    return static_cast<std::int64_t>(value);
  }
  std::uint64_t long_integer() {
    const std::uint64_t bytes = reader_.number(1);
    FOVEA_CHECK(bytes <= sizeof(std::uint64_t), kCorruptData, reader_.name(), ": a huge number");
    return reader_.number(bytes);
  }
  std::vector<std::int64_t> tuple() {
    constexpr std::size_t kMostDimensions = 64;
    std::vector<std::int64_t> values;
    if (next_is(')')) {
      expect(")");
      return values;
    }
    const bool is_long = next_is('(');
    if (is_long) expect("(");
    const auto ends = [&] {
      return is_long ? next_is('t') : next_is('\x85') || next_is('\x86') || next_is('\x87');
    };
    while (!ends()) {
      FOVEA_CHECK(values.size() < kMostDimensions, kCorruptData, reader_.name(),
                  ": a tensor of more than ", kMostDimensions, " dimensions");
      values.push_back(integer());
    }
    const auto count = static_cast<unsigned char>(reader_.take(1).front()) - 0x84u;
    FOVEA_CHECK(is_long || count == values.size(), kCorruptData, reader_.name(), kOther);
    return values;
  }

  Reader reader_;
};

/// The entries of an archive, by its central directory.
class ArchiveReader {
 public:
  ArchiveReader(std::span<const std::byte> file, const std::string& name)
      : file_(reinterpret_cast<const char*>(file.data()), file.size()), name_(name) {
    constexpr std::size_t kLongestComment = 0xffff;
    const std::size_t near_end = file_.size() - std::min(file_.size(), kLongestComment + kEndBytes);
    const std::size_t end = file_.rfind(kEndMagic);
    FOVEA_CHECK(end != std::string_view::npos && end >= near_end && file_.size() - end >= kEndBytes,
                kCorruptData, name, ": not a torch archive, or its end is missing");
    Reader tail(file_.substr(end + 10), name);
    num_entries_ = tail.number(2);
    const std::uint64_t bytes = tail.number(4);
    const std::uint64_t begin = tail.number(4);
    FOVEA_CHECK(begin <= end && bytes <= end - begin, kCorruptData, name,
                ": a directory outside of the archive");
    directory_ = file_.substr(begin, bytes);
  }

  /// The content of the entry that ends like this, below the archive's folder; nothing if there is
  /// none.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view path) const {
    Reader left(directory_, name_);
    for (std::uint64_t i = 0; i < num_entries_; ++i) {
      const Entry entry = next(left);
      const std::size_t folder = entry.path.find('/');
      if (folder == std::string_view::npos || entry.path.substr(folder + 1) != path) continue;
      return content(entry);
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string_view get(std::string_view path) const {
    const std::optional<std::string_view> found = find(path);
    FOVEA_CHECK(found, kCorruptData, name_, ": a torch archive without ", path);
    return *found;
  }

 private:
  struct Entry {
    std::string_view path;
    std::uint64_t method, checksum, stored_bytes, bytes, begin;
  };

  Entry next(Reader& directory) const {
    FOVEA_CHECK(directory.take(4) == kCentralMagic, kCorruptData, name_, ": a broken directory");
    Entry entry{};
    (void)directory.take(6);
    entry.method = directory.number(2);
    (void)directory.take(4);
    entry.checksum = directory.number(4);
    entry.stored_bytes = directory.number(4);
    entry.bytes = directory.number(4);
    const std::uint64_t path = directory.number(2);
    const std::uint64_t extra = directory.number(2);
    const std::uint64_t comment = directory.number(2);
    (void)directory.take(8);
    entry.begin = directory.number(4);
    entry.path = directory.take(path);
    (void)directory.take(extra + comment);
    return entry;
  }

  [[nodiscard]] std::string_view content(const Entry& entry) const {
    FOVEA_CHECK(entry.method == 0 && entry.stored_bytes == entry.bytes, kUnsupported, name_,
                ": a compressed torch archive");
    Reader local(file_.substr(std::min<std::size_t>(entry.begin, file_.size())), name_);
    FOVEA_CHECK(local.take(4) == kLocalMagic, kCorruptData, name_, ": a broken entry");
    (void)local.take(22);
    const std::uint64_t path = local.number(2);
    const std::uint64_t extra = local.number(2);
    (void)local.take(path + extra);
    const std::string_view found = local.take(entry.bytes);
    FOVEA_CHECK(checksum(std::as_bytes(std::span(found))) == entry.checksum, kCorruptData, name_,
                ": an entry does not have its checksum");
    return found;
  }

  std::string_view file_;
  const std::string& name_;
  std::uint64_t num_entries_ = 0;
  std::string_view directory_;
};

/// Whether elements lie one after the other.
bool is_contiguous(const Description& found) noexcept {
  std::int64_t stride = 1;
  if (found.strides.size() != found.tensor.shape.size()) return false;
  for (std::size_t i = found.strides.size(); i-- > 0;) {
    const std::int64_t size = found.tensor.shape[i];
    if (size != 1 && found.strides[i] != stride) return false;
    stride *= std::max<std::int64_t>(size, 1);  // bounded: bytes_of() has counted
  }
  return true;
}

}  // namespace

StoredTensor read_torch(std::span<const std::byte> file, const std::string& name) try {
  const ArchiveReader archive(file, name);
  const std::optional<std::string_view> order = archive.find("byteorder");
  FOVEA_CHECK(!order || *order == "little", kUnsupported, name, ": a big-endian torch archive");
  Description found = PickleMatcher(Reader(archive.get("data.pkl"), name)).run();
  const std::string_view storage = archive.get("data/" + found.key);

  const auto element = static_cast<std::int64_t>(size_of(to_dtype(found.tensor.type)));
  const std::optional<std::int64_t> bytes = bytes_of(found.tensor.type, found.tensor.shape);
  const auto elements = static_cast<std::int64_t>(storage.size()) / element;
  FOVEA_CHECK(std::cmp_equal(storage.size() % static_cast<std::size_t>(element), 0) &&
                  found.storage_elements == elements && bytes && found.offset <= elements &&
                  *bytes / element <= elements - found.offset,
              kCorruptData, name, ": a tensor beyond its ", storage.size(), " bytes");
  const bool is_empty = *bytes == 0;
  FOVEA_CHECK(is_empty || is_contiguous(found), kUnsupported, name,
              ": elements do not lie one after the other");
  found.tensor.data = std::as_bytes(std::span(storage))
                          .subspan(static_cast<std::size_t>(found.offset * element),
                                   static_cast<std::size_t>(*bytes));
  return std::move(found.tensor);
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
