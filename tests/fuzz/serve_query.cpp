// Any text as the query of a request: what is accepted is an object of objects and texts.
#include "serve/text/query.h"

#include "fuzz.h"
#include "serve/api_error.h"

using fovea::serve::Json;
using fovea::test::require;

namespace {

void visit(const Json& json, int depth) {
  require(depth <= fovea::serve::kMaxJsonDepth);
  require(json.is_object() || json.is_string());
  if (!json.is_object()) return;
  for (const Json& member : json) visit(member, depth + 1);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fovea::test::accepts<fovea::serve::ApiError>([&] {
    const Json object = fovea::serve::query_object(fovea::test::text_of(data, size));
    require(object.is_object());
    visit(object, 0);
    (void)object.dump();  // refuses what is no UTF-8
  });
  return 0;
}
