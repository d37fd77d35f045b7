// What this build and this machine are, for bug reports.
#include "fovea/diagnostics.h"

#include "core/boundary.h"
#include "core/check.h"
#include "core/thread_pool.h"
#include "engine/engine_impl.h"
#include "fovea/version.h"
#include "graph/capture/forward_cost.h"
#include "graph/capture/graph_set.h"
#include "graph/graph_config.h"
#include "media/plugins/image_plugins.h"
#include "media/process/decode_processes.h"
#include "media/video.h"
#include "models/registry.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea {

std::vector<EnvironmentFact> describe_environment() try {
  std::vector<EnvironmentFact> facts;
  facts.emplace_back("fovea", version());
  facts.emplace_back("compiler", __VERSION__);
  const Backend cpu = make_backend("cpu");
  const DeviceProperties& properties = cpu.device->properties();
  facts.emplace_back("processor", properties.description);
  facts.emplace_back("cpus available", cat(available_cpus()));
  facts.emplace_back("memory", cat(properties.total_bytes >> 20, " MiB"));
  facts.emplace_back("cpu kernels", describe_cpu_kernels());
  facts.emplace_back("cuda", cuda_status());
  for (const media::ImagePluginStatus& plugin : media::image_plugin_status())
    facts.emplace_back(plugin.format, plugin.text);
  facts.emplace_back("video", media::video_status());
  facts.emplace_back("decode processes", media::decoder_status());
  for (const ModelFamily* family : model_families()) {
    std::string names;
    for (const std::string_view name : family->architectures) {
      names += cat(names.empty() ? "" : ", ", name);
    }
    facts.emplace_back(cat("model ", family->name), names);
  }
  return facts;
} catch (...) {
  rethrow_as_error();
}

double measure_fma_peak(int num_threads, double seconds) try {
  FOVEA_CHECK(num_threads >= 0 && seconds > 0, kInvalidArgument,
              "measure_fma_peak: expected threads >= 0 and seconds > 0, got ", num_threads, " and ",
              seconds);
  return cpu::fma_peak_gflops(num_threads == 0 ? available_cpus() : num_threads, seconds);
} catch (...) {
  rethrow_as_error();
}

void add_memory_plan(ModelReport& report, const EncoderGraphModel& planner, Device& device,
                     const EngineOptions& options) {
  for (const TensorReport& tensor : report.tensors) {
    const auto elements = static_cast<std::size_t>(Shape(tensor.shape).elements());
    report.weight_bytes += elements * (tensor.dtype == "F32" ? 4 : 2);
  }
  const GraphSpec& spec = planner.graph_spec();
  const GraphConfig config =
      graph_config_of(planner, options.max_num_batched_tokens, {.user = options.graphs});
  for (std::size_t path = 0; path < spec.paths.size(); ++path) {
    for (const std::int64_t budget : config.path_budgets[path]) {
      if (budget == 0) continue;  // nothing runs
      const GraphKey key{.path = static_cast<PathId>(path), .budget = budget};
      const ForwardCost cost =
          measure_forward(planner, device, key.path, graph_capacity(spec, config, key));
      report.arenas.push_back({spec.paths[path].name, budget, cost.arena_bytes});
    }
  }
}

}  // namespace fovea
