// Any text as the body of a request to encode or to plan: accepted items name media or a size, and
// nothing takes more memory than its bytes allow.
#include "budget.h"
#include "serve/api_error.h"
#include "serve/routes/fovea/encode_request.h"

using fovea::serve::EncodeItem;
using fovea::serve::EncodeRequest;
using fovea::test::require;

namespace {

void read(const fovea::serve::Request& request, bool takes_sizes) {
  const fovea::serve::EncodeRequestRules rules{.max_items = 8, .takes_sizes = takes_sizes};
  const EncodeRequest read = fovea::serve::read_encode_request(request, rules);
  require(!read.items.empty() && read.items.size() <= rules.max_items);
  for (const EncodeItem& item : read.items) {
    require(takes_sizes || !item.size);
    require(item.media.fps.value_or(1) > 0 && !item.media.param.empty());
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fovea::serve::Request request;
  request.body = std::make_shared<const fovea::serve::BodyBytes>(
      std::string_view(reinterpret_cast<const char*>(data), size));
  for (const bool takes_sizes : {false, true}) {
    fovea::test::within_budget(size, [&] {
      fovea::test::accepts<fovea::serve::ApiError>([&] { read(request, takes_sizes); });
    });
  }
  return 0;
}
