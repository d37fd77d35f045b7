#include "hub.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <stop_token>
#include <string>

#include "fovea/hub.h"
#include "log.h"
#include "paths.h"
#include "signals.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

/// @param progress called as progress(file, done bytes, all bytes), or None.
nb::str pull(const std::string& name, const std::string& revision, nb::handle output,
             const nb::object& progress) {
  const Call call;
  PythonLog log;
  PullOptions options{
      .revision = revision, .output = file_path(output), .progress = {}, .log = &log};
  if (!progress.is_none()) {
    options.progress = [&progress](const PullProgress& now) {
      const nb::gil_scoped_acquire acquire;
      progress(now.file, now.done_bytes, now.total_bytes);
    };
  }
  std::string directory;
  run_interruptibly(call, [&](std::stop_token stop) {
    directory = pull_model(name, options, {.stop = std::move(stop)});
  });
  return path_text(directory);
}

}  // namespace

void bind_hub(nb::module_& module) {
  module.def(
      "is_hub_name", [](nb::handle text) { return is_hub_name(file_path(text)); }, nb::arg("text"),
      nb::sig("def is_hub_name(text: str) -> bool"), "Whether a text is <organisation>/<name>.");
  module.def(
      "find_on_disk",
      [](const std::string& name, const std::string& revision) -> std::optional<nb::str> {
        const std::optional<std::string> found = find_on_disk(name, revision);
        return found ? std::optional(path_text(*found)) : std::nullopt;
      },
      nb::arg("name"), nb::arg("revision"), "The snapshot of a model in the hub cache.");
  module.def(
      "hub_cache_dir", [] { return path_text(hub_cache_dir()); }, "Directory of the hub cache.");
  module.def("pull_model", &pull, nb::arg("name"), nb::arg("revision"), nb::arg("output"),
             nb::arg("progress").none(),
             nb::sig("def pull_model(name: str, revision: str, output: str, progress: "
                     "collections.abc.Callable[[str, int, int], object] | None) -> str"),
             "Downloads what an engine needs of a model.");
}

}  // namespace fovea::python
