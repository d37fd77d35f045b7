#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/check.h"
#include "fovea/log.h"

namespace fovea {

/// Lines of one of several replicas, which may share a device or have devices of one name: each
/// ends with " replica=1". Allocates a line once more; as `sink`, it is called from several
/// threads.
class ReplicaLog final : public LogSink {
 public:
  /// @param sink outlives this object. @param rank of the replica, from 0.
  ReplicaLog(LogSink& sink, std::size_t rank) : sink_(sink), suffix_(cat(" replica=", rank)) {}

  void write(LogLevel level, std::string_view line) override {
    sink_.write(level, cat(line, suffix_));
  }
  [[nodiscard]] bool wants(LogLevel level) const noexcept override { return sink_.wants(level); }

 private:
  LogSink& sink_;
  const std::string suffix_;
};

}  // namespace fovea
