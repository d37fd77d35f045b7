#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/embedding.h"
#include "fovea/options.h"

namespace fovea {

/// A place outside of the process that keeps bytes by name, for several processes at the same time.
/// What it is given it may forget. Functions may be called from several threads, and may take long:
/// SharedRows calls them on threads that it can leave behind.
class RowPlace {
 public:
  virtual ~RowPlace() = default;
  /// The bytes of each name; nothing where there are none. They may be other bytes than those that
  /// put() was given: whoever reads them checks them.
  /// @throws Error(kIo) if the place gives no answer, or one that is none.
  [[nodiscard]] virtual std::vector<std::optional<RowBytes>> get(
      std::span<const std::string> names) = 0;
  /// Keeps bytes under a name, in place of what was there; nobody sees a part of them.
  /// @throws Error(kIo) as get(); Error(kUnavailable) if it answers that it does not keep them.
  virtual void put(const std::string& name, std::span<const std::byte> bytes) = 0;
};

/// Most bytes of an entry.
inline constexpr std::size_t kMaxEntryBytes = std::size_t{512} << 20;

/// The place that EngineOptions::shared_rows names.
/// @throws Error(kInvalidArgument) for what is no such place, and for options of the other kind of
/// place; Error(kNotFound) if there is no such folder; Error(kUnsupported) for a Redis server in a
/// build without libhiredis. A server that does not answer is none of these errors.
[[nodiscard]] std::shared_ptr<RowPlace> make_row_place(const EngineOptions& options);

/// What make_row_place() makes of the URL of a Redis server. @throws as that.
[[nodiscard]] std::shared_ptr<RowPlace> make_redis_place(const std::string& url,
                                                         std::int64_t seconds);

}  // namespace fovea
