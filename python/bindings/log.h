#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <string_view>

#include "fovea/log.h"

namespace fovea::python {

/// Hands log lines to the logger "fovea" of Python's `logging`.
class PythonLog final : public LogSink {
 public:
  /// Needs the GIL, as does destruction.
  PythonLog();

  /// Asks the logger for the level that it keeps; the answer holds until the next call. Needs the
  /// GIL, without which wants() must do.
  void refresh();
  /// Nothing is written any more.
  void mute() noexcept;

  /// Takes the GIL. So a thread that has it must not wait for one that writes.
  void write(LogLevel level, std::string_view line) override;
  [[nodiscard]] bool wants(LogLevel level) const noexcept override;

 private:
  nanobind::object logger_;
  std::atomic<int> threshold_;
};

}  // namespace fovea::python
