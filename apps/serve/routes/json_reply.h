#pragma once

#include "serve/http/message.h"
#include "serve/text/json.h"

namespace fovea::serve {

/// A JSON body.
[[nodiscard]] inline Reply json_reply(const Json& json, int status = 200) {
  return text_reply(status, "application/json", to_text(json));
}

}  // namespace fovea::serve
