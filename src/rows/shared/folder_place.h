#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "rows/shared/row_place.h"

namespace fovea {

/// A folder, also of a file system that several machines have:
///
///     FOLDER/<version of Fovea>/<first two characters of the name>/<name>
///
/// A file appears complete or not at all (AtomicFile). One that is read is marked as used, at most
/// every ten minutes. When files together have more bytes than they may, those that were used
/// longest ago go until an eighth is free. That is looked after by whoever writes: at its first
/// file, and then after every 64th part of the bound, one process at a time; one that finds another
/// at it goes on, and waits for it after a 32nd. So files together may exceed the bound by a 32nd
/// of it, and by a file, for each process that writes. What readers have open stays readable while
/// it goes. Files of other versions count, and go like all others.
class FolderPlace final : public RowPlace {
 public:
  /// @param folder that exists; what is below it is made. @param max_bytes of all files together.
  /// @throws Error(kNotFound) if there is no such folder; Error(kInvalidArgument) for a bound below
  /// 1.
  FolderPlace(std::string folder, std::int64_t max_bytes);

  [[nodiscard]] std::vector<std::optional<RowBytes>> get(
      std::span<const std::string> names) override;
  /// @throws also Error(kUnavailable) for more bytes than all files may have.
  void put(const std::string& name, std::span<const std::byte> bytes) override;

 private:
  [[nodiscard]] std::string path_of(const std::string& name) const;
  void make_room(std::int64_t written);
  void remove_unused() const;

  const std::string folder_;
  const std::int64_t max_bytes_;
  std::mutex mutex_;         // guards what follows
  std::int64_t unseen_ = 0;  // bytes written since files were counted
  bool has_seen_ = false;
};

}  // namespace fovea
