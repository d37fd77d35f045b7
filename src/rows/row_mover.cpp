// Rows on their way to their targets. Memory of the caller may be fresh, and a page fault every
// 4 KiB takes longer than the copy: hence the threads, and no pass over it but the last.
#include "rows/row_mover.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "core/blocked_signals.h"
#include "core/check.h"
#include "core/stopwatch.h"
#include "core/thread_pool.h"

namespace fovea {

namespace {

constexpr std::int64_t kPieceElements = std::int64_t{1} << 17;
constexpr std::size_t kStagingBytes = std::size_t{16} << 20;
constexpr int kMostThreads = 8;  // more find no bandwidth left

int num_threads(const Device& device) {
  return device.properties().host_memory ? 1 : std::min(kMostThreads, available_cpus());
}

/// Cuts a copy into pieces of whole rows.
void append_pieces(const RowCopy& copy, std::vector<RowCopy>& pieces) {
  if (copy.width == 0) return;
  const std::int64_t rows = std::max<std::int64_t>(1, kPieceElements / copy.width);
  for (std::int64_t at = 0; at < copy.rows; at += rows) {
    RowCopy piece = copy;
    piece.from += static_cast<std::size_t>(at) * copy.from_stride;
    piece.to += static_cast<std::size_t>(at) * copy.to_stride;
    piece.rows = std::min(rows, copy.rows - at);
    pieces.push_back(piece);
  }
}

/// Whether a copy that also reads the rows of `next` reads nothing else.
bool is_followed_by(const RowCopy& copy, const RowCopy& next) {
  return next.from == copy.from + static_cast<std::size_t>(copy.rows) * copy.from_stride &&
         next.from_stride == copy.from_stride && next.from_dtype == copy.from_dtype &&
         next.width == copy.width;
}

/// Of the rows of a copy, one after the other.
std::size_t packed_bytes(const RowCopy& copy) {
  return static_cast<std::size_t>(copy.rows) * copy.from_row_bytes();
}

/// Adds the time that rows took to the results of their items.
void share_time(double output_ms, std::span<const RowMove> moves, std::int64_t total_rows) {
  if (total_rows == 0) return;
  for (const RowMove& move : moves) {
    Embedding& result = *move.target.result;
    result.times.output_ms +=
        output_ms * (static_cast<double>(result.rows) / static_cast<double>(total_rows));
  }
}

/// Converts rows on the host. @return their memory, which the copy then reads.
RowBytes convert_on_host(RowCopy& copy) {
  RowBytes converted(static_cast<std::size_t>(copy.rows) * copy.to_row_bytes());
  RowCopy here = copy;
  here.to = converted.data();
  here.to_stride = copy.to_row_bytes();
  copy_rows(here);
  copy.from = converted.data();
  copy.from_dtype = copy.to_dtype;
  copy.from_stride = here.to_stride;
  return converted;
}

/// Makes the memory of a result, with a write to every page.
void make_room(const ExpectedRows& expected) {
  constexpr std::size_t kPageBytes = 4096;
  (void)expected.target.place({.rows = expected.rows, .width = expected.width});
  RowBytes& data = expected.target.result->data;
  for (std::size_t at = 0; at < data.size(); at += kPageBytes) data.data()[at] = std::byte{0};
}

/// Waits for a queue of which somebody else hears that it has failed.
void wait_despite_failure(Stream& queue) noexcept {
  try {
    if (!queue.is_idle()) queue.synchronize();
  } catch (...) {  // NOLINT: the caller has a failure to report already
  }
}

}  // namespace

/// The way to the host. Where the device computes in host memory it is conversion alone.
struct RowMover::ToHost {
  explicit ToHost(Device& device) : pool(num_threads(device)) {
    if (device.properties().host_memory) return;
    queue = device.create_copy_stream();
    for (Buffer& buffer : buffers) buffer = device.allocate_host(kStagingBytes);
  }

  /// @return the moves, for whoever waits for them to drop.
  [[nodiscard]] std::vector<RowMove> run(std::vector<RowMove> moves);
  void convert(std::span<const RowCopy> pieces);
  void stage_and_convert(std::span<RowCopy> pieces);
  [[nodiscard]] std::span<RowCopy> stage(std::span<RowCopy>& pieces, const Buffer& buffer);

  ThreadPool pool;
  std::unique_ptr<Stream> queue;  // to the buffers; null: the device computes in host memory
  std::array<Buffer, 2> buffers;
};

RowMover::RowMover(Device& device) : device_(device), on_host_(device.properties().host_memory) {}

RowMover::~RowMover() {
  abandon();
  if (queue_) wait_despite_failure(*queue_);
}

void RowMover::attach(std::span<const CallerStream> streams) {
  const auto is_none = [](const CallerStream& stream) {
    return stream.device == CallerStream::kNone;
  };
  used_.clear();
  callers_.clear();
  streams_.assign(streams.begin(), streams.end());
  waits_ = std::erase_if(streams_, is_none) > 0 || streams_.empty();
}

void RowMover::adopt_streams() {
  for (std::size_t i = callers_.size(); i < streams_.size(); ++i) {
    callers_.push_back(device_.adopt_stream(streams_[i].device, streams_[i].handle));
  }
}

void RowMover::wait_for_callers(Stream& queue) {
  adopt_streams();
  for (const auto& caller : callers_) queue.wait_for(*caller);
}

Stream& RowMover::callers_queue() {
  if (streams_.empty()) return queue();
  adopt_streams();
  return *callers_.front();
}

Stream& RowMover::queue() {
  if (!queue_) queue_ = device_.create_copy_stream();
  return *queue_;
}

void RowMover::expect(std::vector<ExpectedRows> rows) {
  if (on_host_) return;
  expect_nothing();
  std::erase_if(rows, [](const ExpectedRows& expected) {
    return expected.target.is_on_gpu() || expected.target.block != nullptr;
  });
  expected_ = std::move(rows);
  if (expected_.empty()) return;
  const BlockedSignals none;
  try {
    room_ = std::async(std::launch::async, [this] { std::ranges::for_each(expected_, make_room); });
  } catch (const std::system_error&) {  // no thread: move() makes the memory
  }
}

void RowMover::expect_nothing() noexcept {
  finish_room();
  for (const ExpectedRows& expected : expected_) expected.target.result->data = {};
  expected_.clear();
}

void RowMover::finish_room() noexcept {
  if (!room_.valid()) return;
  try {
    room_.get();
  } catch (...) {  // NOLINT: move() makes the memory itself, or says why it cannot
  }
}

void RowMover::move(std::vector<RowMove> moves, Stream* queue) {
  finish_room();
  expected_.clear();
  for (RowMove& move : moves) {
    if (!move.claim) continue;
    if (move.target.is_on_gpu() || on_host_) move.claim->restore(device_, *queue);
    if (move.target.is_on_gpu()) move.claim->slot().begin_read(*queue);
    move.rows = packed_rows(move.claim->rows());
  }
  if (queue != nullptr) copy_to_gpus(moves, *queue);
  finish_host();  // its rows are in the memory that is next
  std::vector<RowMove> to_host;
  to_host.reserve(moves.size());
  for (RowMove& move : moves) {
    if (!move.target.is_on_gpu()) to_host.push_back(std::move(move));
  }
  if (!to_host.empty()) start_to_host(std::move(to_host));
}

void RowMover::copy_to_gpus(std::span<RowMove> moves, Stream& queue) {
  for (RowMove& move : moves) {
    if (move.target.is_on_gpu()) copy_to_gpu(move, queue);
  }
  RowMark mark;
  for (RowMove& move : moves) {
    if (!move.claim || !move.target.is_on_gpu()) continue;
    if (!mark) mark = move.claim->mark(device_, queue);
    move.claim->slot().end_read(mark);
  }
}

void RowMover::copy_to_gpu(RowMove& move, Stream& queue) {
  RowCopy copy = move.target.place(move.rows);
  if (copy.rows == 0) return;
  Used& used = use(queue);
  if (move.source == RowMove::Source::kHost) {
    if (copy.from_dtype != copy.to_dtype) {  // a queue converts memory of devices
      move.bytes = convert_on_host(copy);
    }
    used.uploads.push_back(std::move(move.bytes));
  }
  queue.copy_rows(copy);
}

RowMover::Used& RowMover::use(Stream& queue) {
  const auto known = std::ranges::find(used_, &queue, &Used::queue);
  if (known != used_.end()) return *known;
  wait_for_callers(queue);  // the tower did not
  used_.push_back({&queue});
  return used_.back();
}

void RowMover::finish() {
  finish_host();
  for (const Used& used : used_) {
    if (waits_ || !used.uploads.empty()) used.queue->synchronize();
    for (const auto& caller : callers_) caller->wait_for(*used.queue);
  }
  attach({});
}

void RowMover::abandon() noexcept {
  expect_nothing();
  try {
    finish_host();
  } catch (...) {  // NOLINT: the caller has a failure to report already
  }
  for (const Used& used : used_) wait_despite_failure(*used.queue);
  attach({});
}

void RowMover::start_to_host(std::vector<RowMove> moves) {
  bool is_ordered = false;
  for (RowMove& move : moves) {
    is_ordered |= move.source == RowMove::Source::kCaller;
    if (!move.claim) continue;
    move.claim->slot().wait_for_rows();
    if (move.claim->slot().device() == nullptr) move.source = RowMove::Source::kHost;
  }
  if (!to_host_) to_host_ = std::make_unique<ToHost>(device_);
  if (on_host_) {
    (void)to_host_->run(std::move(moves));
    return;
  }
  if (is_ordered) wait_for_callers(*to_host_->queue);
  const BlockedSignals none;
  running_ =
      std::async(std::launch::async, [way = to_host_.get(), moves = std::move(moves)]() mutable {
        return way->run(std::move(moves));
      });
}

void RowMover::finish_host() {
  if (running_.valid()) (void)running_.get();
}

std::vector<RowMove> RowMover::ToHost::run(std::vector<RowMove> moves) {
  const Stopwatch watch;
  std::int64_t total_rows = 0;
  std::vector<RowCopy> here;  // pieces of rows on the host
  std::vector<RowCopy> elsewhere;
  for (const RowMove& move : moves) {
    const RowCopy copy = move.target.place(move.rows);
    total_rows += copy.rows;
    append_pieces(copy, !queue || move.source == RowMove::Source::kHost ? here : elsewhere);
  }
  convert(here);
  stage_and_convert(elsewhere);
  share_time(watch.elapsed_ms(), moves, total_rows);
  return moves;
}

void RowMover::ToHost::convert(std::span<const RowCopy> pieces) {
  pool.parallel_for(std::ssize(pieces), [&](std::int64_t task, int) {
    fovea::copy_rows(pieces[static_cast<std::size_t>(task)]);
  });
}

void RowMover::ToHost::stage_and_convert(std::span<RowCopy> pieces) {
  std::size_t slot = 0;
  for (std::span<RowCopy> here = stage(pieces, buffers[slot]); !here.empty(); slot ^= 1) {
    queue->synchronize();
    const std::span<RowCopy> following = stage(pieces, buffers[slot ^ 1]);
    convert(here);
    here = following;
  }
}

/// Submits the copy of as many pieces as lie one after the other and fit into a buffer, lets them
/// read it, and takes them from the others.
std::span<RowCopy> RowMover::ToHost::stage(std::span<RowCopy>& pieces, const Buffer& buffer) {
  if (pieces.empty()) return {};
  RowCopy staged = pieces.front();
  std::size_t count = 1;
  for (; count < pieces.size() && is_followed_by(staged, pieces[count]); ++count) {
    if (packed_bytes(staged) + packed_bytes(pieces[count]) > buffer.bytes()) break;
    staged.rows += pieces[count].rows;
  }
  FOVEA_CHECK(packed_bytes(staged) <= buffer.bytes(), kInternal, "a row of ",
              staged.from_row_bytes(), " bytes is more than fits on its way to the host");
  staged.to = buffer.data();
  staged.to_dtype = staged.from_dtype;
  staged.to_stride = staged.from_row_bytes();
  queue->copy_rows(staged);
  const std::span<RowCopy> here = pieces.first(count);
  std::size_t at = 0;
  for (RowCopy& piece : here) {
    piece.from = buffer.data() + at;
    piece.from_stride = piece.from_row_bytes();
    at += packed_bytes(piece);
  }
  pieces = pieces.subspan(count);
  return here;
}

}  // namespace fovea
