// Any bytes as a file of measured times: what is accepted comes back unchanged after saving it.
#include "engine/graph_times.h"

#include "fuzz.h"
#include "support/temporary_directory.h"

using fovea::GraphTimes;
using fovea::test::read_text;
using fovea::test::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fovea::test::TemporaryDirectory directory;
  constexpr const char* kIdentity = "fuzz";
  const std::string path = directory / "graph-times.json";
  const auto load = [&] { return fovea::load_graph_times(path, kIdentity); };
  fovea::test::write_text(path, fovea::test::text_of(data, size));
  const std::vector<GraphTimes> times = load();
  if (times.empty()) return 0;
  for (const GraphTimes& graph : times)
    require(graph.tokens > 0 && graph.replay_ms > 0 && graph.eager_ms > 0);
  fovea::save_graph_times(path, kIdentity, times);
  const std::string saved = read_text(path);
  fovea::save_graph_times(path, kIdentity, load());
  require(read_text(path) == saved);
  return 0;
}
