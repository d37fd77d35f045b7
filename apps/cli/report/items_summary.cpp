// Many items in a few lines.
#include "report/items_summary.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "report/encode_report.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::size_t kMostNameBytes = 36;

/// The number of an item.
struct Measured {
  double value;
  const Embedding* item;
};

/// The middle one, or the greater of the two in the middle. @param values at least one.
double median(std::vector<Measured>& values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle, {}, &Measured::value);
  return middle->value;
}

const Measured& largest(const std::vector<Measured>& values) {
  return *std::ranges::max_element(values, {}, &Measured::value);
}

std::string item_name(const Embedding& item) {
  return shorten_path(one_line(item.name), kMostNameBytes);
}

std::vector<const Embedding*> encoded(std::span<const Embedding> items) {
  std::vector<const Embedding*> result;
  for (const Embedding& item : items) {
    if (!item.error) result.push_back(&item);
  }
  return result;
}

/// "1200: 1180 images and 20 videos, 3 failed".
std::string items_line(std::span<const Embedding> items,
                       const std::vector<const Embedding*>& done) {
  const std::int64_t videos = std::ranges::count(done, Modality::kVideo, &Embedding::modality);
  const std::int64_t images = std::ssize(done) - videos;
  std::string line = "items   " + std::to_string(items.size()) + ": ";
  if (images > 0 || videos == 0) line += counted(images, "image");
  if (images > 0 && videos > 0) line += " and ";
  if (videos > 0) line += counted(videos, "video");
  const std::int64_t failed = std::ssize(items) - std::ssize(done);
  return line + (failed > 0 ? ", " + std::to_string(failed) + " failed\n" : "\n");
}

std::string rows_line(const std::vector<const Embedding*>& done) {
  std::vector<Measured> rows;
  std::int64_t sum = 0;
  for (const Embedding* item : done) {
    rows.push_back({static_cast<double>(item->rows), item});
    sum += item->rows;
  }
  const double middle = median(rows);  // moves them
  const auto [least, most] = std::ranges::minmax_element(rows, {}, &Measured::value);
  return "rows    " + std::to_string(sum) + ": from " + fixed(least->value, 0) + " to " +
         fixed(most->value, 0) + " of an item, median " + fixed(middle, 0) + "\n";
}

std::string stages_table(const std::vector<const Embedding*>& done) {
  using enum Table::Align;
  Table table({{"stage", kLeft}, {"sum ms"}, {"median ms"}, {"most ms"}, {"of item", kLeft}});
  for (const Stage& stage : kStages) {
    std::vector<Measured> times;
    double sum = 0;
    for (const Embedding* item : done) {
      times.push_back({item->times.*stage.ms, item});
      sum += times.back().value;
    }
    const Measured& most = largest(times);
    std::string cell = fixed(most.value, 2);
    std::string name = item_name(*most.item);
    table.add_row(
        {stage.name, fixed(sum, 2), fixed(median(times), 2), std::move(cell), std::move(name)});
  }
  return table.text();
}

std::string difference_line(std::span<const Embedding> items,
                            std::span<const std::optional<double>> differences) {
  std::vector<Measured> known;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    if (differences[i] && !items[i].error) known.push_back({*differences[i], &items[i]});
  }
  if (known.empty()) return "";
  // One that is not a number is the worst.
  const auto is_less = [](const Measured& a, const Measured& b) {
    return !std::isnan(a.value) && (std::isnan(b.value) || a.value < b.value);
  };
  const Measured worst = *std::ranges::max_element(known, is_less);
  return "differs at most " + difference_text(worst.value) + ", " + item_name(*worst.item) +
         ", of " + counted(std::ssize(known), "item") + " with reference rows\n";
}

}  // namespace

std::string items_summary(std::span<const Embedding> items,
                          std::span<const std::optional<double>> differences) {
  const std::vector<const Embedding*> done = encoded(items);
  std::string text = items_line(items, done);
  if (done.empty()) return text;
  text += rows_line(done) + "\n" + stages_table(done);
  const std::string difference = difference_line(items, differences);
  return difference.empty() ? text : text + "\n" + difference;
}

}  // namespace fovea::cli
