// Calls of the engine, one ahead of the other.
#include "shards/encode_calls.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fovea::cli {
namespace {

constexpr std::size_t kCallsAtOnce = 2;
constexpr std::size_t kItemsOfCall = 64;

/// Bytes of rows of a call, as far as headers of files tell.
constexpr std::int64_t kRowBytesOfCall = std::int64_t{128} << 20;

/// Videos of a call of which nothing is known but their name.
constexpr std::int64_t kUnknownOfCall = 4;

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

void EncodeCalls::add(ItemLine file, MediaItem item) {
  waiting_.push_back(std::move(file));
  unplanned_.push_back(std::move(item));
  ++num_added_;
  if (waiting_.size() == kItemsOfCall) start();
}

void EncodeCalls::finish() {
  while (!waiting_.empty()) start();
  while (!running_.empty()) wait_for_first();
}

EncodeCalls::Call EncodeCalls::take_call() {
  std::ranges::move(engine_.plan_items(std::exchange(unplanned_, {}), options_.bounds),
                    std::back_inserter(planned_));
  const std::int64_t row_bytes = engine_.report().width * bytes_of(options_.dtype);
  std::int64_t bytes = 0;
  std::ptrdiff_t count = 0;
  for (const PlannedItem& item : planned_) {
    const bool is_unknown = !item.rows() && item.media().modality == Modality::kVideo;
    bytes += is_unknown ? kRowBytesOfCall / kUnknownOfCall : item.rows().value_or(0) * row_bytes;
    if (count > 0 && bytes > kRowBytesOfCall) break;
    ++count;
  }
  const auto take = [count](auto& from, auto& to) {
    to.assign(std::move_iterator(from.begin()), std::move_iterator(from.begin() + count));
    from.erase(from.begin(), from.begin() + count);
  };
  Call call;
  take(waiting_, call.files);
  take(planned_, call.items);
  return call;
}

void EncodeCalls::start() {
  Call call = take_call();
  if (running_.size() == kCallsAtOnce) wait_for_first();
  call.rows = std::async(std::launch::async,
                         [this, items = std::move(call.items)] { return encode(items); });
  running_.push_back(std::move(call));
}

std::vector<Embedding> EncodeCalls::encode(const std::vector<PlannedItem>& items) {
  EncodeOptions options = options_;
  if (options_.progress) {
    options.progress = [this, before = std::int64_t{0}](std::int64_t done, std::int64_t) mutable {
      num_done_ += done - std::exchange(before, done);
      options_.progress(num_done_, num_added_);
    };
  }
  return engine_.encode(items, options);
}

void EncodeCalls::wait_for_first() {
  Call call = std::move(running_.front());
  running_.pop_front();
  done_(std::move(call.files), call.rows.get());
}

}  // namespace fovea::cli
