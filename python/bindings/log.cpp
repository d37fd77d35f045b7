#include "log.h"

#include <limits>

#include "paths.h"
#include "signals.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

/// As `logging` counts.
int python_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return 10;
    case LogLevel::kInfo: return 20;
    case LogLevel::kWarning: return 30;
    case LogLevel::kError: return 40;
  }
  return 40;
}

}  // namespace

PythonLog::PythonLog() : logger_(nb::module_::import_("logging").attr("getLogger")("fovea")) {
  refresh();
}

void PythonLog::refresh() { threshold_.store(nb::cast<int>(logger_.attr("getEffectiveLevel")())); }

void PythonLog::mute() noexcept { threshold_.store(std::numeric_limits<int>::max()); }

bool PythonLog::wants(LogLevel level) const noexcept {
  return python_level(level) >= threshold_.load(std::memory_order_relaxed);
}

void PythonLog::write(LogLevel level, std::string_view line) {
  if (!wants(level)) return;
  const AnyGil gil;
  if (!gil) return;
  try {
    logger_.attr("log")(python_level(level), "%s", printable_text(line));
  } catch (nb::python_error& error) {  // of a handler; a sink must not throw
    error.discard_as_unraisable("fovea: a log line");
  }
}

}  // namespace fovea::python
