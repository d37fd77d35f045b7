#include "serve/text/multipart.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "serve/api_error.h"
#include "serve/text/headers.h"

namespace fovea::serve {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

[[noreturn]] void refuse(const std::string& problem) {
  throw ApiError(400, "invalid_value", "multipart body: " + problem);
}

void check_boundary(std::string_view boundary) {
  constexpr std::size_t kMaxBoundary = 70;
  constexpr std::string_view kCharacters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'()+_,-./:=? ";
  if (boundary.empty() || boundary.size() > kMaxBoundary || boundary.back() == ' ' ||
      boundary.find_first_not_of(kCharacters) != boundary.npos) {
    refuse("Content-Type has no usable boundary");
  }
}

/// A line with the boundary.
struct Delimiter {
  std::size_t begin = 0;  ///< of the line break in front of it, which belongs to it
  std::size_t end = 0;    ///< of what follows it
  bool is_last = false;
};

/// Whether the line that goes on at `at`, behind the boundary, is a delimiter.
std::optional<Delimiter> read_delimiter(std::string_view text, std::size_t begin, std::size_t at) {
  Delimiter delimiter{.begin = begin, .end = at, .is_last = text.substr(at).starts_with("--")};
  if (delimiter.is_last) return delimiter;
  delimiter.end = text.find_first_not_of(" \t", at);  // padding of transports
  if (delimiter.end == text.npos || !text.substr(delimiter.end).starts_with(kLineEnd))
    return std::nullopt;
  delimiter.end += kLineEnd.size();
  return delimiter;
}

/// The next delimiter from `from` on. One at the very beginning of the body needs no line break.
Delimiter find_delimiter(std::string_view text, const std::string& mark, std::size_t from) {
  const std::string_view without_break = std::string_view(mark).substr(kLineEnd.size());
  if (from == 0 && text.starts_with(without_break)) {
    if (const auto first = read_delimiter(text, 0, without_break.size())) return *first;
  }
  for (std::size_t at = text.find(mark, from); at != text.npos; at = text.find(mark, at + 1)) {
    if (const auto found = read_delimiter(text, at, at + mark.size())) return *found;
  }
  refuse(from == 0 ? "the boundary of Content-Type is not in it" : "it ends without its boundary");
}

void read_disposition(std::string_view value, FormPart& part) {
  const std::optional<ContentType> disposition = parse_content_type(value);
  const std::string* name = disposition ? find_header(disposition->parameters, "name") : nullptr;
  if (name == nullptr || disposition->type != "form-data")
    refuse("a part needs Content-Disposition: form-data with a name");
  part.name = *name;
  if (const std::string* filename = find_header(disposition->parameters, "filename"))
    part.filename = *filename;
}

void read_type(std::string_view value, FormPart& part) {
  const std::optional<ContentType> type = parse_content_type(value);
  if (!type) refuse("a part has a Content-Type that is none");
  part.content_type = type->type;
}

void check_encoding(std::string_view value) {
  const std::optional<ContentType> encoding = parse_content_type(value);
  const auto known = {"binary", "8bit", "7bit"};
  if (!encoding || std::ranges::find(known, encoding->type) == known.end())
    refuse("a part has a Content-Transfer-Encoding; send its bytes as they are");
}

void read_header(std::string_view line, FormPart& part) {
  const std::size_t colon = line.find(':');
  if (colon == line.npos || colon == 0) refuse("a part has a header without a name");
  const Headers header{{.name = std::string(line.substr(0, colon)), .value = {}}};
  const std::string_view value = line.substr(colon + 1);
  if (find_header(header, "Content-Disposition") != nullptr) read_disposition(value, part);
  if (find_header(header, "Content-Type") != nullptr) read_type(value, part);
  if (find_header(header, "Content-Transfer-Encoding") != nullptr) check_encoding(value);
}

/// The headers of a part, up to the line that is empty. @return bytes that they take with it.
std::size_t read_headers(std::string_view text, FormPart& part) {
  std::size_t at = 0;
  while (true) {
    const std::size_t end = text.substr(0, kMaxPartHeaderBytes).find(kLineEnd, at);
    if (end == text.npos) {
      refuse("the headers of a part have no end within " + std::to_string(kMaxPartHeaderBytes) +
             " bytes");
    }
    const std::string_view line = text.substr(at, end - at);
    at = end + kLineEnd.size();
    if (line.empty()) return at;
    read_header(line, part);
  }
}

}  // namespace

std::vector<FormPart> parse_multipart(std::span<const std::uint8_t> body, std::string_view boundary,
                                      std::size_t max_parts) {
  check_boundary(boundary);
  const std::string_view text(reinterpret_cast<const char*>(body.data()), body.size());
  const std::string mark = std::string(kLineEnd) + "--" + std::string(boundary);
  std::vector<FormPart> parts;
  Delimiter delimiter = find_delimiter(text, mark, 0);
  while (!delimiter.is_last) {
    if (parts.size() == max_parts) refuse("more than " + std::to_string(max_parts) + " parts");
    FormPart part;
    const std::size_t begin = delimiter.end + read_headers(text.substr(delimiter.end), part);
    if (part.name.empty()) refuse("a part has no name");
    // Without content the line break behind the headers may be that of the boundary.
    delimiter = find_delimiter(text, mark, begin - kLineEnd.size());
    part.bytes = body.subspan(begin, std::max(begin, delimiter.begin) - begin);
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace fovea::serve
