#pragma once

#include "serve/http/message.h"
#include "serve/text/json.h"

namespace fovea::serve {

/// 200 with a JSON body.
[[nodiscard]] inline Reply json_reply(const Json& json) {
  return text_reply(200, "application/json", to_text(json));
}

}  // namespace fovea::serve
