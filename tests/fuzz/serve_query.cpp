// Any text as the query of a request: what is accepted is an object of objects and texts.
#include "serve/text/query.h"

#include "budget.h"
#include "serve/api_error.h"

using fovea::JsonView;
using fovea::test::require;

namespace {

void visit(const JsonView& json, std::size_t depth) {
  require(depth <= fovea::serve::kBodyLimits.depth);
  require(json.is_object() || json.is_string());
  if (!json.is_object()) return;
  for (std::size_t i = 0; i < json.num_members(); ++i) visit(json.member(i), depth + 1);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fovea::test::within_budget(size, [&] {
    fovea::test::accepts<fovea::serve::ApiError>([&] {
      const auto object = fovea::serve::query_object(fovea::test::text_of(data, size));
      require(object->root().num_members() <= fovea::serve::kMaxQueryOptions);
      visit(object->root(), 0);
    });
  });
  return 0;
}
