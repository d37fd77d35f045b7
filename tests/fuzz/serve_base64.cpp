// Any text as base64: accepted text is what the bytes are written as, but for its padding.
#include "serve/text/base64.h"

#include "fuzz.h"

using fovea::test::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fovea::test::text_of(data, size);
  const auto bytes = fovea::serve::from_base64(text);
  if (bytes) {
    const std::string again = fovea::serve::to_base64(std::as_bytes(std::span(*bytes)));
    require(again.starts_with(text) && again.size() - text.size() <= 2);
  }
  const std::string written = fovea::serve::to_base64(std::as_bytes(std::span(data, size)));
  const auto same = fovea::serve::from_base64(written);
  require(same && std::equal(same->begin(), same->end(), data, data + size));
  return 0;
}
