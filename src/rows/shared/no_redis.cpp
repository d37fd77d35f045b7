// In place of redis_place.cpp where libhiredis was not found.
#include "core/check.h"
#include "rows/shared/row_place.h"

namespace fovea {

std::shared_ptr<RowPlace> make_redis_place(const std::string& /*url*/, std::int64_t /*seconds*/) {
  FOVEA_CHECK(
      false, kUnsupported,
      "shared_rows: this build speaks to no Redis server; install libhiredis-dev, configure "
      "with -DFOVEA_REDIS=ON and build again, or share a folder");
}

}  // namespace fovea
