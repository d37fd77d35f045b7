// Rows of all ranks to memory of the caller on each of them.
#include "ranks/call_to_blocks.h"

#include <algorithm>

#include "core/check.h"
#include "core/row_dtype.h"
#include "fovea/tower/core/shape.h"
#include "ranks/byte_sequence.h"

namespace fovea::ranks {

namespace {

constexpr std::size_t kSlotAlignment = 256;
constexpr std::size_t kMostBytes = std::size_t{1} << 48;  // of a share

/// Bytes of rows that lie one after the other.
std::size_t packed_bytes(const RowBlock& block, std::int64_t width) {
  const auto row = static_cast<std::int64_t>(size_of(to_dtype(block.dtype))) * width;
  const auto bytes = checked_mul(block.rows, row);
  FOVEA_CHECK(bytes, kOutOfMemory, "no memory for ", block.rows, " rows of ", width, " elements");
  return static_cast<std::size_t>(*bytes);
}

/// Appends the rows of a block.
void append_rows(const RowBlock& block, std::int64_t width, ByteSequence& sequence) {
  const std::size_t bytes = packed_bytes(block, width);
  auto* const data = static_cast<std::byte*>(block.data);
  const auto stride = static_cast<std::size_t>(block.row_stride_bytes);
  if (stride == 0 || block.rows <= 1) return sequence.append({data, bytes});
  const std::size_t row = bytes / static_cast<std::size_t>(block.rows);
  for (std::size_t at = 0; at < static_cast<std::size_t>(block.rows); ++at) {
    sequence.append({data + at * stride, row});
  }
}

}  // namespace

CallToBlocks::CallToBlocks(Engine& engine, Communicator& ranks, std::span<const MediaItem> items,
                           const Destinations& to, const EncodeOptions& options)
    : engine_(engine),
      ranks_(ranks),
      items_(items),
      to_(to),
      call_(engine, ranks, items, options),
      gather_(engine, to) {}

std::vector<Embedding> CallToBlocks::run() {
  call_.on_all_ranks([&] { prepare(); });
  on_device_ = all_stay_on_devices();
  if (on_device_) call_.end_with_device();
  call_.on_all_ranks([&] {
    on_device_ ? place_slots_on_device() : place_slots_on_host();
    encode_share();
  });
  call_.exchange();
  call_.on_all_ranks([&] { take_results(); });
  on_device_ ? gather_on_device() : gather_on_host();
  return std::move(results_);
}

void CallToBlocks::prepare() {
  gather_.check(items_);
  call_.assign();
  slots_.assign(to_.blocks.begin(), to_.blocks.end());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    RowBlock& slot = slots_[i];
    const std::int64_t room = slot.rows;
    slot.rows = std::min(room, call_.planned()[i].rows().value_or(room));
    call_.expect_same(cat(static_cast<int>(slot.dtype), ' ', room, ' ', slot.rows));
  }
}

bool CallToBlocks::all_stay_on_devices() {
  const std::optional<int> device = ranks_.gather_device();
  const bool stays = call_.num_ranks() > 1 && device && gather_.stays_on(*device);
  const auto mine = static_cast<std::uint8_t>(stays);
  std::vector<std::uint8_t> all(call_.num_ranks());
  ranks_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return std::ranges::all_of(all, [](std::uint8_t one) { return one != 0; });
}

void CallToBlocks::place_slots_on_device() {
  std::vector<std::size_t> offsets(slots_.size());
  for (std::size_t rank = 0; rank < call_.num_ranks(); ++rank) {
    std::size_t end = 0;
    for (const std::size_t item : call_.items_of(rank)) {
      offsets[item] = end;
      end += (packed_bytes(slots_[item], width()) + kSlotAlignment - 1) / kSlotAlignment *
             kSlotAlignment;
      FOVEA_CHECK(end < kMostBytes, kOutOfMemory, "no memory to gather the rows of ", slots_.size(),
                  " items");
    }
    share_bytes_ = std::max(share_bytes_, end);
  }
  const int device = *ranks_.gather_device();
  memory_ = gather_.reserve(device, share_bytes_ * call_.num_ranks());
  for (std::size_t rank = 0; rank < call_.num_ranks(); ++rank) {
    for (const std::size_t item : call_.items_of(rank)) {
      slots_[item].data = memory_ + rank * share_bytes_ + offsets[item];
      slots_[item].device = device;
      slots_[item].row_stride_bytes = 0;
    }
  }
}

void CallToBlocks::place_slots_on_host() {
  staged_.resize(slots_.size());
  if (call_.num_ranks() == 1) return;  // no other rank reads the slots
  for (std::size_t item = 0; item < slots_.size(); ++item) {
    if (slots_[item].device == RowBlock::kHost) continue;
    staged_[item].resize(packed_bytes(slots_[item], width()));
    slots_[item].data = staged_[item].data();
    slots_[item].device = RowBlock::kHost;
    slots_[item].row_stride_bytes = 0;
  }
}

void CallToBlocks::encode_share() {
  std::vector<RowBlock> blocks;
  for (const std::size_t item : call_.items_of(call_.rank())) blocks.push_back(slots_[item]);
  const CallerStream& stream = on_device_ ? gather_.stream() : to_.stream;
  call_.encode_share([&](ItemView share, const EncodeOptions& how) {
    return RowGather::encode(engine_, share, {blocks, stream}, how);
  });
}

void CallToBlocks::take_results() {
  results_ = call_.results();
  for (std::size_t item = 0; item < slots_.size(); ++item) {
    const Embedding& result = results_[item];
    FOVEA_CHECK(result.rows <= slots_[item].rows &&
                    (result.rows == 0 || result.dtype == slots_[item].dtype),
                kCorruptData, result.name, ": ", result.rows, " rows came for ", slots_[item].rows);
    slots_[item].rows = result.rows;
  }
}

void CallToBlocks::gather_on_device() {
  if (share_bytes_ > 0) {
    ranks_.all_gather_on_device(memory_ + call_.rank() * share_bytes_, memory_, share_bytes_,
                                gather_.stream().handle);
  }
  gather_.copy(slots_, results_);
}

void CallToBlocks::gather_on_host() {
  if (call_.num_ranks() == 1) return;
  std::vector<ByteSequence> rows(call_.num_ranks());
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    for (const std::size_t item : call_.items_of(rank)) {
      append_rows(slots_[item], width(), rows[rank]);
    }
  }
  gather_rows(ranks_, call_.longest_share_bytes(), rows);
  for (std::size_t item = 0; item < slots_.size(); ++item) {
    if (staged_[item].empty()) slots_[item].rows = 0;  // they are in their place
  }
  gather_.copy(slots_, results_);
}

}  // namespace fovea::ranks
