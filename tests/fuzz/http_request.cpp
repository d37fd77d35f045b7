// Any bytes as what a client sends: a head, then a chunked body. Where the pieces end must not
// matter, and what is accepted must be unambiguous.
#include <algorithm>
#include <optional>
#include <string>

#include "fuzz.h"
#include "serve/api_error.h"
#include "serve/http/chunk_decoder.h"
#include "serve/http/head_parser.h"
#include "serve/http/message.h"

using fovea::serve::ApiError;
using fovea::serve::ChunkDecoder;
using fovea::serve::Framing;
using fovea::serve::HeadScanner;
using fovea::serve::RequestHead;
using fovea::test::accepts;
using fovea::test::require;

namespace {

/// Size of the head; nothing if it is refused or has no end. @param piece bytes at a time.
std::optional<std::size_t> head_size(std::string_view input, std::size_t piece) {
  HeadScanner scanner;
  std::optional<std::size_t> size;
  accepts<ApiError>([&] {
    for (std::size_t end = 0; end < input.size() && !size;) {
      end = std::min(end + piece, input.size());
      size = scanner.scan(input.substr(0, end));
    }
  });
  return size;
}

bool is_control(char character) { return character >= 0 && character < ' '; }

void check_head(const RequestHead& head, const Framing& framing) {
  require(head.path.starts_with('/') && std::ranges::none_of(head.path, is_control));
  require(fovea::serve::is_request_id(head.id));
  require(head.content_length.has_value() != framing.is_chunked);
  for (const auto& header : head.headers) {
    require(!header.name.empty() && header.name.find_first_of(" \t:") == std::string::npos);
    require(header.value.find_first_of("\r\n") == std::string::npos);
  }
}

/// The body; nothing if it is refused. @param rest set to what is behind it.
std::optional<std::string> decoded(std::string_view input, std::size_t piece, std::size_t& rest) {
  ChunkDecoder decoder;
  std::string body;
  const bool accepted = accepts<ApiError>([&] {
    while (!input.empty() && !decoder.is_done()) {
      const auto step = decoder.next(input.substr(0, piece));
      require(step.consumed > 0 && step.consumed <= piece);
      body += step.data;
      input.remove_prefix(step.consumed);
    }
  });
  rest = input.size();
  return accepted ? std::optional(body) : std::nullopt;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input = fovea::test::text_of(data, size);
  input.remove_prefix(fovea::serve::leading_breaks(input));
  const auto end = head_size(input, input.size());
  require(end == head_size(input, 1));
  if (end) {
    RequestHead head;
    head.id = "ours";
    Framing framing;
    if (accepts<ApiError>(
            [&] { framing = fovea::serve::parse_head(input.substr(0, *end), 100, head); })) {
      check_head(head, framing);
    }
    input.remove_prefix(*end);
  }
  std::size_t rest_at_once = 0;
  std::size_t rest_by_bytes = 0;
  const auto body = decoded(input, size, rest_at_once);
  require(body == decoded(input, 1, rest_by_bytes));
  require(!body || rest_at_once == rest_by_bytes);
  return 0;
}
