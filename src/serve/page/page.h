#pragma once

#include "serve/http/router.h"

namespace fovea::serve {

/// GET /: a page that encodes a picture of the reader, shows the lengths of its rows over it, and
/// the counters of the server. It is one file without parts from elsewhere, and talks to this
/// server only: its Content-Security-Policy lets nothing else run or load.
[[nodiscard]] Route page_route();

}  // namespace fovea::serve
