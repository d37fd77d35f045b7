// Any body of /v2/embed: what is accepted has as many media as it may, each with its place, and
// nothing takes more memory than its bytes allow.
#include "budget.h"
#include "serve/api_error.h"
#include "serve/routes/cohere/embed_request.h"

using fovea::serve::EmbedRequest;
using fovea::test::require;

namespace {

void read(std::string_view text) {
  constexpr std::size_t kMaxItems = 8;
  const EmbedRequest request = fovea::serve::parse_embed_request(
      fovea::serve::parse_json_object(std::string(text)), kMaxItems);
  require(!request.media.empty() && request.media.size() <= kMaxItems);
  require(!request.types.empty() && request.rows.dimensions.value_or(1) >= 1);
  for (const auto& reference : request.media) require(!reference.param.empty());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fovea::test::within_budget(size, [&] {
    fovea::test::accepts<fovea::serve::ApiError>([&] { read(fovea::test::text_of(data, size)); });
  });
  return 0;
}
