#include "serve/service/vllm_digest.h"

#include <openssl/evp.h>

#include <array>
#include <bit>
#include <cstddef>
#include <map>
#include <span>

#include "core/blake3.h"
#include "core/sha256.h"
#include "fovea/error.h"
#include "serve/api_error.h"

namespace fovea::serve {
namespace {

/// Appends the frame in front of a value.
enum class Tag : char { kNone = 0, kSequence = 1, kMapping = 2, kLeaf = 3 };

void append_number(std::string& out, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(number >> shift & 0xff);
}

/// Bytes with their length in front.
void append_frame(std::string& out, std::string_view bytes) {
  append_number(out, bytes.size());
  out += bytes;
}

void append_tag(std::string& out, Tag tag) { out += static_cast<char>(tag); }

void append_leaf(std::string& out, std::string_view bytes) {
  append_tag(out, Tag::kLeaf);
  append_frame(out, bytes);
}

void append_leaf(std::string& out, std::uint64_t number) {
  std::string bytes;
  append_number(bytes, number);
  append_leaf(out, bytes);
}

void append_value(std::string& out, const JsonView& value);

void append_list(std::string& out, const JsonView& list) {
  append_tag(out, Tag::kSequence);
  append_number(out, list.num_elements());
  for (std::size_t i = 0; i < list.num_elements(); ++i) append_value(out, list.element(i));
}

void append_object(std::string& out, const JsonView& object) {
  append_tag(out, Tag::kMapping);
  append_number(out, object.num_members());
  for (std::size_t i = 0; i < object.num_members(); ++i) {
    append_frame(out, object.key(i));
    append_value(out, object.member(i));
  }
}

void append_value(std::string& out, const JsonView& value) {
  if (value.is_null()) {
    append_tag(out, Tag::kNone);
  } else if (value.is_array()) {
    append_list(out, value);
  } else if (value.is_object()) {
    append_object(out, value);
  } else if (value.is_string()) {
    append_leaf(out, value.as_text());
  } else if (value.is_bool()) {
    append_leaf(out, std::string_view(value.as_bool() ? "\1" : "\0", 1));
  } else if (const std::optional<std::int64_t> number = value.integer()) {
    append_leaf(out, static_cast<std::uint64_t>(*number));
  } else if (value.is_integer()) {
    throw ApiError(400, "invalid_value", "a number of the options has more than 64 bits");
  } else {
    append_leaf(out, std::bit_cast<std::uint64_t>(value.as_number()));
  }
}

bool has_members(const std::optional<JsonView>& object) {
  return object && object->num_members() > 0;
}

}  // namespace

DigestKind digest_kind(std::string_view name) {
  if (name == "blake3") return DigestKind::kBlake3;
  if (name == "sha256") return DigestKind::kSha256;
  if (name == "sha512") return DigestKind::kSha512;
  throw Error(ErrorCode::kInvalidArgument,
              "expected blake3, sha256 or sha512, got " + shortened(name, 60));
}

std::string hex_digest(DigestKind kind, std::string_view bytes) {
  if (kind == DigestKind::kBlake3) return to_hex(blake3(bytes));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const EVP_MD* const method = kind == DigestKind::kSha256 ? EVP_sha256() : EVP_sha512();
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, method, nullptr) != 1) {
    throw Error(ErrorCode::kInternal, "a hash could not be computed");
  }
  return to_hex(std::as_bytes(std::span(digest.data(), size)));
}

std::string vllm_digest(DigestKind kind, const DigestInput& input) {
  std::map<std::string_view, std::string> values;  // sorted by name
  append_leaf(values["model_id"], input.model_id);
  append_leaf(values[input.modality], input.uuid);
  if (has_members(input.media_io_kwargs))
    append_value(values["media_io_kwargs"], *input.media_io_kwargs);
  if (has_members(input.mm_processor_kwargs)) {
    append_value(values["mm_processor_kwargs"], *input.mm_processor_kwargs);
  }
  std::string all;
  for (const auto& [name, value] : values) {
    append_frame(all, name);
    all += value;
  }
  return hex_digest(kind, all);
}

}  // namespace fovea::serve
