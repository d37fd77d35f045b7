#include "hub.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <stop_token>
#include <string>

#include "fovea/hub.h"
#include "log.h"
#include "signals.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

/// @param progress called as progress(file, done bytes, all bytes), or None.
std::string pull(const std::string& name, const std::string& revision, const std::string& output,
                 const nb::object& progress) {
  const Call call;
  PythonLog log;
  PullOptions options{.revision = revision, .output = output, .progress = {}, .log = &log};
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
  return directory;
}

}  // namespace

void bind_hub(nb::module_& module) {
  module.def(
      "is_hub_name", [](const std::string& text) { return is_hub_name(text); }, nb::arg("text"),
      "Whether a text is <organisation>/<name>.");
  module.def(
      "find_on_disk",
      [](const std::string& name, const std::string& revision) {
        return find_on_disk(name, revision);
      },
      nb::arg("name"), nb::arg("revision"), "The snapshot of a model in the hub cache.");
  module.def("hub_cache_dir", &hub_cache_dir, "Directory of the hub cache.");
  module.def("pull_model", &pull, nb::arg("name"), nb::arg("revision"), nb::arg("output"),
             nb::arg("progress").none(),
             nb::sig("def pull_model(name: str, revision: str, output: str, progress: "
                     "collections.abc.Callable[[str, int, int], object] | None) -> str"),
             "Downloads what an engine needs of a model.");
}

}  // namespace fovea::python
