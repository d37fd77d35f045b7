// Any text as a data URL: its data is the end of the text, and decodes to no more bytes than said.

#include "fuzz.h"
#include "serve/text/base64.h"

using fovea::test::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fovea::test::text_of(data, size);
  const auto url = fovea::serve::parse_data_url(text);
  if (!url) return 0;
  require(fovea::serve::is_data_url(text));
  require(text.ends_with(url->base64));
  require(url->type.find_first_of(";,") == std::string::npos);
  const auto bytes = fovea::serve::from_base64(url->base64);
  if (!bytes) return 0;
  require(bytes->size() <= fovea::serve::base64_bytes(url->base64));
  std::string again = fovea::serve::to_base64(std::as_bytes(std::span(*bytes)));
  again.resize(url->base64.size(), '!');  // padding may be missing
  require(again == url->base64);
  return 0;
}
