#include "models/common/activation.h"

#include "core/check.h"

namespace fovea::common {

ops::Activation parse_activation(const std::string& name, const std::string& key) {
  using ops::Activation;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::kGeluTanh;
  if (name == "gelu") return Activation::kGeluErf;
  if (name == "quick_gelu") return Activation::kQuickGelu;
  if (name == "silu" || name == "swish") return Activation::kSilu;
  throw Error(ErrorCode::kUnsupported, cat(key,
                                           ": expected gelu_pytorch_tanh, gelu_new, gelu, "
                                           "quick_gelu, silu or swish, got ",
                                           name));
}

}  // namespace fovea::common
