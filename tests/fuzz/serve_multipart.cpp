// Any bytes as a form: parts lie in the body, one behind the other, and
// nothing takes more memory than its bytes allow.
#include "serve/text/multipart.h"

#include "budget.h"
#include "serve/api_error.h"

using fovea::serve::FormPart;
using fovea::test::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMaxParts = 8;
  fovea::test::within_budget(size, [&] {
    fovea::test::accepts<fovea::serve::ApiError>([&] {
      const std::vector<FormPart> parts =
          fovea::serve::parse_multipart({data, size}, "b", kMaxParts);
      require(parts.size() <= kMaxParts);
      std::size_t at = 0;
      for (const FormPart& part : parts) {
        require(!part.name.empty());
        if (part.bytes.empty()) continue;
        const auto begin = static_cast<std::size_t>(part.bytes.data() - data);
        require(begin >= at && begin + part.bytes.size() <= size);
        at = begin + part.bytes.size();
      }
    });
  });
  return 0;
}
