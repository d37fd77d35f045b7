#include "serve/text/headers.h"

#include <algorithm>
#include <utility>

#include "serve/text/url.h"

namespace fovea::serve {
namespace {

char lower(char character) {
  return character >= 'A' && character <= 'Z' ? static_cast<char>(character - 'A' + 'a')
                                              : character;
}

bool is_token_character(char character) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (character >= '0' && character <= '9') || (character >= 'A' && character <= 'Z') ||
         (character >= 'a' && character <= 'z') || kMarks.find(character) != kMarks.npos;
}

/// Reads from the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
  }

  bool take(char character) {
    if (rest_.empty() || rest_.front() != character) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// Empty: there is none.
  std::string_view token() {
    const auto* const end = std::ranges::find_if_not(rest_, is_token_character);
    const std::string_view token(rest_.data(), static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(token.size());
    return token;
  }

  /// The text behind an opening quote, up to the closing one.
  std::optional<std::string> quoted() {
    std::string text;
    while (!rest_.empty()) {
      if (take('"')) return text;
      (void)take('\\');
      if (rest_.empty() || is_control(rest_.front())) return std::nullopt;
      text += rest_.front();
      rest_.remove_prefix(1);
    }
    return std::nullopt;
  }

 private:
  static bool is_control(char character) {
    const auto code = static_cast<unsigned char>(character);
    return (code < 0x20 && character != '\t') || code == 0x7f;
  }

  std::string_view rest_;
};

/// name=value behind a semicolon.
bool read_parameter(Reader& reader, Headers& parameters) {
  Header parameter{.name = std::string(reader.token()), .value = {}};
  if (parameter.name.empty() || !reader.take('=')) return false;
  if (reader.take('"')) {
    std::optional<std::string> value = reader.quoted();
    if (!value) return false;
    parameter.value = std::move(*value);
  } else {
    parameter.value = reader.token();
    if (parameter.value.empty()) return false;
  }
  if (find_header(parameters, parameter.name) != nullptr) return false;
  parameters.push_back(std::move(parameter));
  return true;
}

}  // namespace

bool is_http_token(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

const std::string* find_header(const Headers& headers, std::string_view name) {
  const auto found = std::ranges::find_if(headers, [&](const Header& header) {
    return std::ranges::equal(header.name, name, {}, lower, lower);
  });
  return found == headers.end() ? nullptr : &found->value;
}

bool has_entity(const Headers& headers, std::string_view etag) {
  const std::string* known = find_header(headers, "If-None-Match");
  return known != nullptr && (*known == "*" || known->find(etag) != std::string::npos);
}

std::vector<std::string> listed_names(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, comma);
    name.remove_prefix(std::min(name.find_first_not_of(" \t"), name.size()));
    name = name.substr(0, name.find_last_not_of(" \t") + 1);
    if (!name.empty()) names.push_back(to_lower(name));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

std::optional<ContentType> parse_content_type(std::string_view text) {
  Reader reader(text);
  reader.skip_blanks();
  ContentType result{.type = std::string(reader.token()), .parameters = {}};
  if (result.type.empty()) return std::nullopt;
  if (reader.take('/')) {
    const std::string_view subtype = reader.token();
    if (subtype.empty()) return std::nullopt;
    result.type += '/' + std::string(subtype);
  }
  result.type = to_lower(result.type);
  for (reader.skip_blanks(); !reader.at_end(); reader.skip_blanks()) {
    if (!reader.take(';')) return std::nullopt;
    reader.skip_blanks();
    if (reader.at_end()) break;  // a semicolon with nothing behind it is allowed
    if (!read_parameter(reader, result.parameters)) return std::nullopt;
  }
  return result;
}

}  // namespace fovea::serve
