#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/lent_rows.h"
#include "rows/row_cache.h"

namespace fovea {

/// Lends what an encoder cache keeps in memory of GPUs to other processes: says where rows are, and
/// has a claim to them meanwhile. Thread-safe.
class RowLender {
 public:
  /// As name_memory() of device/device_memory.h.
  using NameMemory = std::function<DeviceMemoryName(const Device&, const Buffer&)>;

  /// @param cache with memory of devices; must outlive this object.
  /// @param name_memory called once for each device.
  RowLender(RowCache& cache, NameMemory name_memory);

  /// Returns when the rows are there; they are for keys that nobody is encoding. Those in memory of
  /// the host stay there: they are absent.
  /// @param keys of the cache; none: only to learn whether rows can be lent. What is returned must
  /// not outlive the cache.
  /// @throws what name_memory throws; Error(kDevice) if rows have not come to be.
  [[nodiscard]] LentRows lend(std::span<const std::string> keys);
  /// The same for threads that must not wait: nothing if some of the rows are not there yet.
  [[nodiscard]] std::optional<LentRows> try_lend(std::span<const std::string> keys);

 private:
  using Claims = std::vector<RowCache::Claim>;

  /// @param claims to the rows that are lent are added.
  [[nodiscard]] LentRows find(std::span<const std::string> keys, Claims& claims);
  [[nodiscard]] const std::vector<DeviceMemoryName>& names();

  RowCache& cache_;
  NameMemory name_memory_;
  std::mutex mutex_;
  std::vector<DeviceMemoryName> names_;  // in the order of the devices; empty: not asked for yet
};

}  // namespace fovea
