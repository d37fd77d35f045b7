#include "serve/http/turn.h"

#include "serve/http/message.h"

namespace fovea::serve {

void Turn::fail(const ApiError& error) {
  error_code = error.code();
  answer(error_reply(error, head));
}

}  // namespace fovea::serve
