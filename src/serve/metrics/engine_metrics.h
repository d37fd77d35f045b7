#pragma once

#include "fovea/batcher.h"
#include "fovea/stats.h"
#include "serve/metrics/metrics_text.h"

namespace fovea::serve {

/// Writes what is queued and how it was batched.
void write_metrics(const BatcherStats& stats, MetricsText& text);
/// Writes counters of graphs and of the encoder cache.
void write_metrics(const Stats& stats, MetricsText& text);
/// Writes the standard metrics of a process, from /proc.
/// Source: Prometheus documentation, "Writing client libraries", "Process metrics".
void write_process_metrics(MetricsText& text);

}  // namespace fovea::serve
