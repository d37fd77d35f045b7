#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace fovea {
struct BatcherStats;
struct Stats;
}  // namespace fovea

namespace fovea::serve {

using Label = std::pair<std::string_view, std::string_view>;
/// Of a sample. One without a value is left out, as to Prometheus it is none.
using Labels = std::initializer_list<Label>;

/// Writes metrics as Prometheus reads them. Each sample belongs to the family begun last.
/// Source: Prometheus documentation, "Exposition formats", text format 0.0.4.
class MetricsText {
 public:
  /// @param common labels that every sample has, before its own; must outlive this.
  explicit MetricsText(std::span<const Label> common) : common_(common) {}

  void counter(std::string_view name, std::string_view help) { begin(name, help, "counter"); }
  void gauge(std::string_view name, std::string_view help) { begin(name, help, "gauge"); }
  void histogram(std::string_view name, std::string_view help) { begin(name, help, "histogram"); }

  void sample(double value, Labels labels = {}) { line("", value, labels, nullptr); }
  void sample(std::int64_t value, Labels labels = {}) {
    sample(static_cast<double>(value), labels);
  }
  /// All samples of a histogram. @param bounds upper ones, ascending. @param counts one for each
  /// and one beyond the last, not summed up.
  void buckets(std::span<const double> bounds, std::span<const std::uint64_t> counts, double sum,
               Labels labels);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void begin(std::string_view name, std::string_view help, std::string_view type);
  void line(std::string_view suffix, double value, Labels labels, const Label* last);

  std::span<const Label> common_;
  std::string name_;
  std::string text_;
};

/// Writes what is queued and how it was batched.
void write_metrics(const BatcherStats& stats, MetricsText& text);
/// Writes counters of graphs and of the encoder cache.
void write_metrics(const Stats& stats, MetricsText& text);
/// Writes the standard metrics of a process, from /proc.
/// Source: Prometheus documentation, "Writing client libraries", "Process metrics".
void write_process_metrics(MetricsText& text);

}  // namespace fovea::serve
