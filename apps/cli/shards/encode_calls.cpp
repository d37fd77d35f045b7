// Calls of the engine, one ahead of the other.
#include "shards/encode_calls.h"

#include <algorithm>
#include <utility>

namespace fovea::cli {
namespace {

constexpr std::size_t kCallsAtOnce = 2;
constexpr std::size_t kItemsOfCall = 64;

/// Bytes of rows of a call, as far as headers of files tell.
constexpr std::int64_t kRowBytesOfCall = std::int64_t{128} << 20;

std::vector<MediaItem> items_of(const std::vector<ItemLine>& files) {
  std::vector<MediaItem> items;
  items.reserve(files.size());
  for (const ItemLine& file : files) items.push_back(image_file(file.path));
  return items;
}

std::int64_t bytes_of(RowDType dtype) { return dtype == RowDType::kFloat32 ? 4 : 2; }

}  // namespace

EncodeCalls::EncodeCalls(Engine& engine, const EncodeOptions& options, Done done)
    : engine_(engine),
      options_(options),
      done_(std::move(done)),
      forward_(options.bounds.stop, [this] { stop_.request_stop(); }) {
  options_.bounds.stop = stop_.get_token();
}

EncodeCalls::~EncodeCalls() { stop_.request_stop(); }  // the futures wait for their threads

void EncodeCalls::add(ItemLine file) {
  waiting_.push_back(std::move(file));
  if (waiting_.size() == kItemsOfCall) start();
}

void EncodeCalls::finish() {
  while (!waiting_.empty()) start();
  while (!running_.empty()) wait_for_first();
}

std::size_t EncodeCalls::items_of_next_call() const {
  const std::vector<MediaItem> items = items_of(waiting_);
  const std::int64_t row_bytes = engine_.report().width * bytes_of(options_.dtype);
  std::int64_t bytes = 0;
  std::size_t count = 0;
  for (const std::optional<ItemInfo>& info : engine_.plan_ahead(items, options_.bounds)) {
    bytes += info ? info->rows * row_bytes : 0;
    if (count > 0 && bytes > kRowBytesOfCall) break;
    ++count;
  }
  return count;
}

void EncodeCalls::start() {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(items_of_next_call());
  if (running_.size() == kCallsAtOnce) wait_for_first();
  Call call{.files = {std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end)},
            .rows = {}};
  waiting_.erase(waiting_.begin(), end);
  call.rows = std::async(std::launch::async, [this, items = items_of(call.files)] {
    return engine_.encode(items, options_);
  });
  running_.push_back(std::move(call));
}

void EncodeCalls::wait_for_first() {
  Call call = std::move(running_.front());
  running_.pop_front();
  done_(std::move(call.files), call.rows.get());
}

}  // namespace fovea::cli
