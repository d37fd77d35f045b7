// Names of rows: equal keys, equal bits.
#include "rows/content_key.h"

#include "core/check.h"
#include "core/json.h"

namespace fovea {

namespace {

constexpr std::string_view kMagic("fovea-ec-key-v2\0", 16);

std::string little_endian(std::uint64_t value) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift & 255U);
  return bytes;
}

/// Equal for all texts of equal options.
std::string canonical(std::string_view json) {
  std::string text;
  JsonDocument::parse_borrowed(json, "options", {})
      .root()
      .append_to(text, JsonView::Members::kByName);
  return text;
}

}  // namespace

ContentKey::ContentKey(const ContentFields& fields, std::uint64_t content_bytes)
    : left_(content_bytes) {
  hash_.add(kMagic);
  add_text(1, fields.model);
  add_text(2, to_string(fields.modality));
  add_text(3, canonical(fields.options));
  if (!fields.adapter.empty()) add_text(4, fields.adapter);
  std::string shape;
  for (const std::uint64_t extent : fields.shape) shape += little_endian(extent);
  if (!shape.empty()) add_text(5, shape);
  if (!fields.element.empty()) add_text(6, fields.element);
  begin_field(7, content_bytes);
}

void ContentKey::begin_field(std::uint8_t tag, std::uint64_t bytes) {
  hash_.add(std::string(1, static_cast<char>(tag)) + little_endian(bytes));
}

void ContentKey::add_text(std::uint8_t tag, std::string_view text) {
  begin_field(tag, text.size());
  hash_.add(text);
}

std::string ContentKey::hex() {
  FOVEA_CHECK(left_ == 0, kInternal, "a content key got another number of bytes than it was told");
  return hash_.hex();
}

}  // namespace fovea
