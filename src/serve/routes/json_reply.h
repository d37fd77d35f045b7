#pragma once

#include "core/json_writer.h"
#include "serve/http/message.h"

namespace fovea::serve {

/// A JSON body.
[[nodiscard]] inline Reply json_reply(const JsonObject& json, int status = 200) {
  return text_reply(status, "application/json", to_json_text(json));
}

}  // namespace fovea::serve
