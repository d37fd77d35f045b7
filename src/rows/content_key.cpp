// Names of rows: equal keys, equal bits.
#include "rows/content_key.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/json.h"
#include "core/json_writer.h"

namespace fovea {

namespace {

constexpr std::string_view kMagic("fovea-ec-key-v2\0", 16);

std::string little_endian(std::uint64_t value) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift & 255U);
  return bytes;
}

/// Appends JSON with the members of all objects in the order of their names.
void append_canonical(std::string& out, const JsonView& value) {
  const char* separator = "";
  if (value.is_object()) {
    std::vector<std::pair<std::string_view, JsonView>> members;
    for (std::size_t i = 0; i < value.num_members(); ++i) {
      members.emplace_back(value.key(i), value.member(i));
    }
    std::ranges::sort(members, {}, [](const auto& member) { return member.first; });
    out += '{';
    for (const auto& [name, member] : members) {
      out += std::exchange(separator, ",");
      append_json(out, name);
      out += ':';
      append_canonical(out, member);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.num_elements(); ++i) {
      out += std::exchange(separator, ",");
      append_canonical(out, value.element(i));
    }
    out += ']';
  } else {
    value.append_to(out);
  }
}

std::string canonical(std::string_view json) {
  std::string text;
  append_canonical(text, JsonDocument::parse_borrowed(json, "options", {}).root());
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
