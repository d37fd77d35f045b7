// Any bytes as a JSON text: parse, then ask every value for everything.
#include "core/json.h"

#include "core/json_writer.h"
#include "fuzz.h"

using fovea::DuplicateKeys;
using fovea::JsonDocument;
using fovea::JsonView;
using fovea::test::accepts;
using fovea::test::require;

namespace {

void visit(const JsonView& view) {
  require(view.is_number() || !view.is_integer());
  require(accepts([&] { (void)view.as_number(); }) == view.is_number());
  accepts([&] { (void)view.as_int(); });
  accepts([&] { (void)view.as_bool(); });
  if (view.is_string()) {
    const std::string text = view.as_string();
    require(JsonDocument::parse(fovea::json_quote(text), "again").root().as_string() == text);
  }
  if (view.is_array()) {
    for (const JsonView& element : view.elements()) visit(element);
  }
  if (view.is_object()) {
    for (const std::string_view key : view.keys()) {
      if (const auto member = view.find(key)) visit(*member);
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fovea::test::text_of(data, size);
  const bool last_wins = accepts([&] { visit(JsonDocument::parse(text, "fuzz").root()); });
  const bool reject =
      accepts([&] { (void)JsonDocument::parse(text, "fuzz", DuplicateKeys::kReject); });
  require(last_wins || !reject);  // refusing duplicates accepts nothing more
  (void)fovea::json_quote(text);
  return 0;
}
