// The stages of an item, and their chart.
#include "report/stages.h"

#include <algorithm>
#include <numeric>

#include "report/text.h"

namespace fovea::cli {

double total_ms(const StageTimes& times) {
  return std::accumulate(kStages.begin(), kStages.end(), 0.0,
                         [&](double sum, const Stage& stage) { return sum + times.*stage.ms; });
}

BarChart stage_chart(const std::vector<Embedding>& items) {
  constexpr std::size_t kMostBars = 60;
  constexpr std::size_t kLabelLength = 32;
  std::vector<const Embedding*> shown;
  for (const Embedding& item : items) {
    if (!item.error) shown.push_back(&item);
  }
  BarChart chart{.title = "Time per item", .unit = "milliseconds", .labels = {}, .series = {}};
  if (shown.size() > kMostBars) {
    chart.title = "Time per item, the slowest " + std::to_string(kMostBars) + " of " +
                  std::to_string(shown.size());
    std::stable_sort(shown.begin(), shown.end(), [](const Embedding* a, const Embedding* b) {
      return total_ms(a->times) > total_ms(b->times);
    });
    shown.resize(kMostBars);
  }
  for (const Embedding* item : shown) {
    chart.labels.push_back(shorten_path(one_line(item->name), kLabelLength));
  }
  for (const Stage& stage : kStages) {
    BarSeries series{.name = std::string(stage.name), .values = {}};
    for (const Embedding* item : shown) series.values.push_back(item->times.*stage.ms);
    chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace fovea::cli
