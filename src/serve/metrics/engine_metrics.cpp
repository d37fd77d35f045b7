// Counters of the engine, its batcher and the process, as Prometheus reads them.
#include "fovea/batcher.h"
#include "fovea/stats.h"
#include "serve/metrics/metrics_text.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fovea::serve {
namespace {

void write_graphs(const Stats& stats, MetricsText& text) {
  text.counter("fovea_graph_items_total", "Items by whether graphs were replayed for them.");
  text.sample(stats.graph_hits, {{"result", "hit"}});
  text.sample(stats.graph_partial, {{"result", "partial"}});
  text.sample(stats.graph_misses, {{"result", "miss"}});
  text.counter("fovea_graph_replays_total", "Replays of graphs.");
  for (const PathStats& path : stats.paths) text.sample(path.replays, {{"path", path.name}});
  text.counter("fovea_eager_runs_total", "Sub-batches that ran without a graph.");
  for (const PathStats& path : stats.paths) text.sample(path.eager_runs, {{"path", path.name}});
  text.counter("fovea_eager_fallback_total", "Items without a graph, by reason.");
  for (const auto& [reason, count] : stats.miss_reasons) text.sample(count, {{"reason", reason}});
  text.counter("fovea_live_rows_total", "Rows of items in replays.");
  for (const PathStats& path : stats.paths) text.sample(path.live_rows, {{"path", path.name}});
  text.counter("fovea_padding_rows_total", "Rows of replayed graphs that no item used.");
  for (const PathStats& path : stats.paths) text.sample(path.padded_rows, {{"path", path.name}});
  text.counter("fovea_units_reused_total", "Frames and tiles with the rows of equal ones.");
  text.sample(stats.units_reused);
  text.gauge("fovea_graph_captured", "Graphs that are captured.");
  text.sample(stats.num_budgets);
  text.gauge("fovea_graph_memory_bytes", "Memory of graphs.");
  text.sample(stats.graph_bytes);
  text.gauge("fovea_capture_seconds", "Time that captures took.");
  text.sample(stats.capture_seconds);
}

void write_cache(const EncoderCacheStats& cache, MetricsText& text) {
  text.counter("fovea_cache_queries_total", "Items that asked the encoder cache, by result.");
  text.sample(cache.hits, {{"result", "hit"}});
  text.sample(cache.joins, {{"result", "join"}});
  text.sample(cache.misses, {{"result", "miss"}});
  text.sample(cache.bypasses, {{"result", "bypass"}});
  text.gauge("fovea_cache_bytes", "Bytes of rows in the encoder cache.");
  text.sample(cache.bytes);
  text.gauge("fovea_cache_capacity_bytes", "Bytes that the encoder cache may hold.");
  text.sample(cache.capacity_bytes);
  text.gauge("fovea_cache_freeable_bytes", "Bytes of rows that nobody reads at the moment.");
  text.sample(cache.freeable_bytes);
  text.gauge("fovea_cache_rows", "Rows in the encoder cache.");
  text.sample(cache.rows);
  text.counter("fovea_cache_evictions_total", "Items that had to leave the encoder cache.");
  text.sample(cache.evictions);
}

void write_shared(const SharedRowsStats& shared, MetricsText& text) {
  text.gauge("fovea_shared_rows_up",
             "1 while the place that rows are shared in is asked for them.");
  text.sample(std::int64_t{shared.is_asked ? 1 : 0});
  text.counter("fovea_shared_rows_lookups_total", "Items that were looked for there, by result.");
  text.sample(shared.hits, {{"result", "hit"}});
  text.sample(shared.misses, {{"result", "miss"}});
  text.sample(shared.skipped, {{"result", "skipped"}});
  text.counter("fovea_shared_rows_writes_total", "Items that were to be kept there, by result.");
  text.sample(shared.stored, {{"result", "stored"}});
  text.sample(shared.not_stored, {{"result", "not_stored"}});
}

/// Fields of /proc/self/stat behind the name of the program.
/// Source: man 5 proc, "/proc/pid/stat": the first here is field 3.
std::vector<double> process_stat() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text.erase(0, text.rfind(')') + 4);  // "pid (name) S "
  std::istringstream rest(text);
  std::vector<double> fields{0};
  for (double field = 0; rest >> field;) fields.push_back(field);
  return fields;
}

/// Seconds since 1970 at which the system started.
double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  }
  return 0;
}

/// Linux tells their number since 6.2 (man 5 proc, "/proc/pid/fd/"); before, they are counted.
std::int64_t open_files() {
  constexpr const char* kFolder = "/proc/self/fd";
  struct stat status {};
  if (stat(kFolder, &status) == 0 && status.st_size > 0) return status.st_size;
  std::error_code ignored;
  std::int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, ignored)) {
    count += entry.path().empty() ? 0 : 1;
  }
  return count;
}

}  // namespace

void write_metrics(const BatcherStats& stats, MetricsText& text) {
  text.gauge("fovea_queue_requests", "Requests that are in no batch yet.");
  text.sample(stats.queued_requests);
  text.gauge("fovea_queue_items", "Items that are accepted and not complete.");
  text.sample(stats.items);
  text.gauge("fovea_queue_rows", "Rows of these items, as far as headers tell.");
  text.sample(stats.rows);
  text.gauge("fovea_running_batches", "Batches that are being encoded.");
  text.sample(stats.running_batches);
  text.counter("fovea_batches_total", "Batches that have ended.");
  text.sample(stats.batches);
  text.counter("fovea_batch_requests_total", "Requests of these batches.");
  text.sample(stats.batch_requests);
  text.counter("fovea_batch_items_total", "Items of these batches.");
  text.sample(stats.batch_items);
  text.counter(
      "fovea_batch_rows_total",
      "Rows of these batches as admission counts them: videos in containers by their bound.");
  text.sample(stats.batch_rows);
  text.counter("fovea_batch_seconds_total", "Time in which these batches were encoded.");
  text.sample(stats.run_seconds);
  text.counter("fovea_jobs_total",
               "Requests that the batcher has accepted, by what became of them.");
  text.sample(stats.completed, {{"result", "completed"}});
  text.sample(stats.failed, {{"result", "failed"}});
  text.sample(stats.cancelled, {{"result", "cancelled"}});
  text.sample(stats.expired, {{"result", "expired"}});
  text.counter("fovea_jobs_refused_total", "Requests that the batcher had no room for.");
  text.sample(stats.refused);
}

void write_metrics(const Stats& stats, MetricsText& text) {
  write_graphs(stats, text);
  write_cache(stats.encoder_cache, text);
  if (stats.encoder_cache.shared) write_shared(*stats.encoder_cache.shared, text);
  if (!stats.energy_joules) return;
  text.counter("fovea_energy_joules_total", "Energy that the GPUs have taken, whoever used them.");
  text.sample(*stats.energy_joules);
}

void write_process_metrics(MetricsText& text) {
  // Positions in process_stat().
  constexpr std::size_t kUserTime = 11;
  constexpr std::size_t kStartTime = 19;
  constexpr std::size_t kVirtualBytes = 20;
  constexpr std::size_t kResidentPages = 21;
  const std::vector<double> stat = process_stat();
  if (stat.size() <= kResidentPages) return;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  text.counter("process_cpu_seconds_total", "User and system time of this process.");
  text.sample((stat[kUserTime] + stat[kUserTime + 1]) / ticks);
  text.gauge("process_resident_memory_bytes", "Memory of this process that is in RAM.");
  text.sample(stat[kResidentPages] * static_cast<double>(sysconf(_SC_PAGESIZE)));
  text.gauge("process_virtual_memory_bytes", "Address space of this process.");
  text.sample(stat[kVirtualBytes]);
  text.gauge("process_start_time_seconds", "When this process started, since 1970.");
  static const double booted = boot_time();
  text.sample(booted + stat[kStartTime] / ticks);
  text.gauge("process_open_fds", "Files and sockets that are open.");
  text.sample(open_files());
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    text.gauge("process_max_fds", "Files and sockets that may be open.");
    text.sample(static_cast<double>(limit.rlim_cur));
  }
}

}  // namespace fovea::serve
