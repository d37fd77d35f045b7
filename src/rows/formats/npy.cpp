// Arrays as numpy.save() writes them. Source: docs/reference/row_formats.md, "npy".
#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string_view>

#include "core/boundary.h"
#include "core/check.h"
#include "fovea/row_formats.h"
#include "rows/formats/stored_tensor.h"

namespace fovea {

namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kAlignment = 64;

struct NpyType {
  std::string_view name;
  StoredType type;
};
constexpr NpyType kTypes[] = {
    {"<f4", StoredType::kFloat32}, {"<f2", StoredType::kFloat16}, {"<i8", StoredType::kInt64}};

std::string_view name_of(StoredType type) {
  for (const NpyType& known : kTypes) {
    if (known.type == type) return known.name;
  }
  FOVEA_CHECK(false, kUnsupported, "write_npy: numpy has no bfloat16");
}

/// Reads the dictionary of a header from front to back.
class NpyHeader {
 public:
  NpyHeader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  /// Takes a part if it is next. @return whether it was.
  bool take(std::string_view part) {
    skip_blanks();
    if (!text_.starts_with(part)) return false;
    text_.remove_prefix(part.size());
    return true;
  }
  void expect(std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) {
      if (!take(part)) fail();
    }
  }
  /// A text in single quotes.
  std::string_view quoted() {
    expect({"'"});
    const std::size_t length = text_.find('\'');
    if (length == std::string_view::npos) fail();
    const std::string_view value = text_.substr(0, length);
    text_.remove_prefix(length + 1);
    return value;
  }
  std::int64_t number() {
    skip_blanks();
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (failure != std::errc() || value < 0) fail();
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return value;
  }
  std::vector<std::int64_t> shape() {
    constexpr std::size_t kMostDimensions = 32;  // as numpy
    std::vector<std::int64_t> sizes;
    expect({"("});
    while (!take(")")) {
      if (sizes.size() == kMostDimensions) fail();
      sizes.push_back(number());
      if (take(")")) break;
      expect({","});
    }
    return sizes;
  }
  [[noreturn]] void fail() const {
    throw Error(ErrorCode::kCorruptData, cat(name_, ": broken header of an npy file"));
  }

 private:
  void skip_blanks() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size()));
  }

  std::string_view text_;
  const std::string& name_;
};

StoredType type_of(std::string_view descr, const std::string& name) {
  for (const NpyType& known : kTypes) {
    if (known.name == descr) return known.type;
  }
  throw Error(ErrorCode::kUnsupported,
              cat(name, ": expected elements of type <f4, <f2 or <i8, got ", descr));
}

/// Type and shape, from the text of a header. numpy writes its keys in this order.
StoredTensor parse_header(std::string_view text, const std::string& name) {
  NpyHeader header(text, name);
  StoredTensor tensor;
  header.expect({"{", "'descr'", ":"});
  tensor.type = type_of(header.quoted(), name);
  header.expect({",", "'fortran_order'", ":"});
  FOVEA_CHECK(!header.take("True"), kUnsupported, name, ": an npy file in Fortran order");
  header.expect({"False", ",", "'shape'", ":"});
  tensor.shape = header.shape();
  (void)header.take(",");
  header.expect({"}"});
  return tensor;
}

/// Length of the header, and where it begins.
struct HeaderPlace {
  std::size_t begin;
  std::size_t bytes;
};

HeaderPlace find_header(std::span<const std::byte> file, const std::string& name) {
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(file[i]); };
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  FOVEA_CHECK(text.starts_with(kMagic) && file.size() >= 12, kCorruptData, name,
              ": not an npy file, or it ends in its header");
  const std::size_t version = byte(6);
  FOVEA_CHECK(version >= 1 && version <= 3, kUnsupported, name, ": npy file of version ", version);
  const HeaderPlace place =
      version == 1 ? HeaderPlace{10, byte(8) | byte(9) << 8}
                   : HeaderPlace{12, byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24};
  FOVEA_CHECK(place.bytes <= file.size() - place.begin, kCorruptData, name, ": header of ",
              place.bytes, " bytes in a file of ", file.size());
  return place;
}

}  // namespace

void write_npy(const StoredTensor& tensor, const ByteSink& sink) try {
  check_data(tensor, "write_npy");
  std::string text =
      cat("{'descr': '", name_of(tensor.type), "', 'fortran_order': False, ", "'shape': (");
  for (const std::int64_t size : tensor.shape) text += cat(size, ", ");
  text += "), }";
  constexpr std::size_t kFixed = kMagic.size() + 4 + 1;  // version, length, line break
  text.append((kAlignment - (kFixed + text.size()) % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string header(kMagic);
  for (const std::size_t part : {std::size_t{1}, std::size_t{0}, text.size(), text.size() >> 8}) {
    header += static_cast<char>(part & 0xff);
  }
  header += text;
  call_back(sink, std::as_bytes(std::span(header)));
  call_back(sink, tensor.data);
} catch (...) {
  rethrow_as_error();
}

StoredTensor read_npy(std::span<const std::byte> file, const std::string& name) try {
  const HeaderPlace place = find_header(file, name);
  StoredTensor tensor =
      parse_header({reinterpret_cast<const char*>(file.data()) + place.begin, place.bytes}, name);
  tensor.data = file.subspan(place.begin + place.bytes);
  const std::optional<std::int64_t> bytes = bytes_of(tensor.type, tensor.shape);
  FOVEA_CHECK(bytes && std::cmp_equal(*bytes, tensor.data.size()), kCorruptData, name,
              ": the shape does not have the ", tensor.data.size(), " bytes behind the header");
  return tensor;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
