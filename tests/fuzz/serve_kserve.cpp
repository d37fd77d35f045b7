// The first two bytes are the length of the JSON, 65535 for no header; the rest is the body of an
// infer request. What is accepted refers to bytes of the body, each of them once, and
// nothing takes more memory than its bytes allow.
#include "serve/routes/kserve/infer_request.h"

#include "budget.h"
#include "serve/api_error.h"

using fovea::serve::ApiError;
using fovea::serve::InferRequest;
using fovea::serve::MediaReference;
using fovea::test::require;

namespace {

constexpr std::size_t kMaxItems = 8;

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  std::optional<std::size_t> json_bytes = data[0] | static_cast<std::size_t>(data[1]) << 8U;
  if (json_bytes == 0xffffU) json_bytes.reset();
  const auto body = std::make_shared<const fovea::serve::BodyBytes>(
      std::string_view(reinterpret_cast<const char*>(data) + 2, size - 2));
  InferRequest request;
  const auto parse = [&] {
    request = fovea::serve::parse_infer_request(body, json_bytes, kMaxItems);
  };
  bool is_accepted = false;
  fovea::test::within_budget(size, [&] { is_accepted = fovea::test::accepts<ApiError>(parse); });
  if (!is_accepted) return 0;
  require(!request.media.empty() && request.media.size() <= kMaxItems);
  const std::uint8_t* end = body->data() + json_bytes.value_or(body->size());
  for (const MediaReference& media : request.media) {
    require(!media.param.empty());
    if (media.bytes.empty()) continue;
    require(media.owner == body && media.bytes.data() >= end);
    end = media.bytes.data() + media.bytes.size();
  }
  require(end <= body->data() + body->size());
  return 0;
}
