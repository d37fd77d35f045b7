// A tensor as torch.save() writes it. Source: docs/reference/row_formats.md, "torch".
#include <zlib.h>

#include <limits>

#include "core/boundary.h"
#include "core/check.h"
#include "rows/formats/stored_tensor.h"
#include "rows/formats/torch_format.h"

namespace fovea {

namespace torch_format {

std::uint32_t checksum(std::span<const std::byte> bytes) noexcept {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace torch_format

namespace {

using namespace torch_format;  // NOLINT: of this file

/// The lowest `count` bytes of a number, little-endian, with zeros behind its own.
std::string number(std::uint64_t value, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i, value >>= 8) text += static_cast<char>(value & 0xff);
  return text;
}

std::string pickled(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value < 1 << 8) return "K" + number(bits, 1);
  if (value < 1 << 16) return "M" + number(bits, 2);
  if (value <= std::numeric_limits<std::int32_t>::max()) return "J" + number(bits, 4);
  std::size_t count = 1;  // of bytes, the highest bit of which is that of the sign
  while (count < 8 && value >> (8 * count - 1) != 0) ++count;
  return "\x8a" + number(count, 1) + number(bits, count);
}

std::string pickled(std::span<const std::int64_t> values) {
  std::string elements;
  for (const std::int64_t value : values) elements += pickled(value);
  switch (values.size()) {
    case 0: return ")";
    case 1: return elements + "\x85";
    case 2: return elements + "\x86";
    case 3: return elements + "\x87";
    default: return "(" + elements + "t";
  }
}

std::string pickled(std::string_view text) {
  return "X" + number(text.size(), 4) + std::string(text);
}

std::string_view storage_name(StoredType type) {
  for (const Storage& storage : kStorages) {
    if (storage.type == type) return storage.name;
  }
  FOVEA_CHECK(false, kInternal, "a type without a storage");
}

std::string pickle_of(const StoredTensor& tensor) {
  std::vector<std::int64_t> strides(tensor.shape.size());
  std::int64_t count = 1;
  std::int64_t stride = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<std::int64_t>(tensor.shape[i], 1);
    count *= tensor.shape[i];
  }
  std::string text =
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v2\n((";
  text += pickled(std::string_view("storage"));
  text += cat("ctorch\n", storage_name(tensor.type), "\n");
  text += pickled(std::string_view("0")) + pickled(std::string_view("cpu")) + pickled(count) + "tQ";
  text += pickled(std::int64_t{0}) + pickled(tensor.shape) + pickled(strides);
  return text +
         "\x89"
         "ccollections\nOrderedDict\n)RtR.";
}

/// An archive that is being written.
class ArchiveWriter {
 public:
  explicit ArchiveWriter(const ByteSink& sink) : sink_(sink) {}

  void add(std::string_view name, std::span<const std::byte> content) {
    constexpr std::size_t kDataAlignment = 64;
    const std::string facts = number(20, 2) + number(0x800, 2) + number(0, 2) + number(0, 2) +
                              number(0x21, 2) + number(checksum(content), 4) +
                              number(content.size(), 4) + number(content.size(), 4) +
                              number(name.size(), 2);
    const std::size_t begin = at_ + kLocalBytes + name.size() + 4;
    const std::size_t pad = (kDataAlignment - begin % kDataAlignment) % kDataAlignment;
    directory_ += std::string(kCentralMagic) + number(20, 2) + facts + number(0, 12) +
                  number(at_, 4) + std::string(name);
    ++entries_;
    write(std::string(kLocalMagic) + facts + number(4 + pad, 2) + std::string(name) + "FB" +
          number(pad, 2) + std::string(pad, 'Z'));
    write(content);
  }
  void add(std::string_view name, std::string_view content) {
    add(name, std::as_bytes(std::span(content)));
  }
  void end() {
    const std::size_t begin = at_;
    write(directory_);
    write(std::string(kEndMagic) + number(0, 4) + number(entries_, 2) + number(entries_, 2) +
          number(directory_.size(), 4) + number(begin, 4) + number(0, 2));
  }

 private:
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void write(std::span<const std::byte> bytes) {
    call_back(sink_, bytes);
    at_ += bytes.size();
  }

  const ByteSink& sink_;
  std::size_t at_ = 0;
  std::size_t entries_ = 0;
  std::string directory_;
};

}  // namespace

void write_torch(const StoredTensor& tensor, const ByteSink& sink) try {
  constexpr std::size_t kMostBytes = (std::size_t{4} << 30) - (std::size_t{1} << 20);
  check_data(tensor, "write_torch");
  FOVEA_CHECK(tensor.data.size() <= kMostBytes, kUnsupported, "write_torch: ", tensor.data.size(),
              " bytes, an archive holds at most ", kMostBytes);
  ArchiveWriter archive(sink);
  archive.add("archive/data.pkl", pickle_of(tensor));
  archive.add("archive/byteorder", "little");
  archive.add("archive/data/0", tensor.data);
  archive.add("archive/version", "3\n");
  archive.end();
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
