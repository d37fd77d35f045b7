// Calls of all ranks: who encodes what, and everybody's rows on every rank.
#include "fovea/encode_on_ranks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/row_dtype.h"
#include "engine/row_gather.h"
#include "fovea/tower/core/shape.h"
#include "ranks/byte_sequence.h"
#include "ranks/description.h"
#include "ranks/rank_call.h"

namespace fovea {

namespace ranks {
namespace {

/// Makes the results, with the rows of this rank in them and room for those of the others.
/// @param parts of the results, which lose their rows. @return the rows of each rank.
std::vector<ByteSequence> place_rows(const RankCall& call, std::vector<Embedding>& parts,
                                     std::vector<Embedding>& results) {
  std::vector<RowBytes> own(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) own[i] = std::exchange(parts[i].data, {});
  results = call.join(parts);
  std::vector<std::span<std::byte>> places(parts.size());
  std::size_t end = 0;  // of the piece before
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [item, share] = call.pieces()[i];
    Embedding& result = results[item];
    if (result.error) continue;
    const bool is_whole = share.units.count == 0;
    if (is_whole) result.data = std::move(own[i]);
    result.data.resize(row_bytes(result));
    const std::size_t begin = share.units.first == 0 ? 0 : end;
    end = begin + row_bytes(parts[i]);
    places[i] = std::span(result.data).subspan(begin, end - begin);
    if (!is_whole) std::ranges::copy(own[i], places[i].begin());
  }
  std::vector<ByteSequence> rows(call.num_ranks());
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    for (const std::size_t piece : call.pieces_of(rank)) rows[rank].append(places[piece]);
  }
  return rows;
}

/// Rows in host memory of the results. @throws as RankCall.
std::vector<Embedding> encode_to_results(Engine& engine, Communicator& ranks,
                                         std::span<const MediaItem> items,
                                         const EncodeOptions& options) {
  RankCall call(engine, ranks, items, options);
  call.on_all_ranks([&] {
    call.assign({});
    call.encode_share([&](ItemView share, const EncodeOptions& how) {
      return RowGather::encode(engine, share, {}, how);
    });
  });
  call.exchange();
  std::vector<Embedding> results;
  std::vector<ByteSequence> rows;
  call.on_all_ranks([&] {
    std::vector<Embedding> parts = call.results();
    rows = place_rows(call, parts, results);
  });
  gather_rows(ranks, call.longest_share_bytes(), rows);
  return results;
}

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

/// A call whose rows go to memory of the caller on every rank. Each item, or share of an item, has
/// a slot on every rank, in which its rows lie when all have gathered. Rows that stay on devices:
///
///     engine --> slots of this rank's share --gather--> slots of all shares --copies--> blocks
///
/// Rows that pass through the host are gathered piece by piece, and slots on the host are the
/// blocks themselves. A block is a destination, or that part of it where the rows of a share go.
class CallToBlocks {
 public:
  /// All arguments must outlive this object.
  CallToBlocks(Engine& engine, Communicator& ranks, std::span<const MediaItem> items,
               const Destinations& to, const EncodeOptions& options)
      : engine_(engine),
        ranks_(ranks),
        items_(items),
        to_(to),
        call_(engine, ranks, items, options),
        gather_(engine, to) {}

  /// @throws as RankCall.
  std::vector<Embedding> run() {
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
    return call_.join(results_);
  }

 private:
  /// Everything that the ranks have to know before they encode.
  void prepare() {
    gather_.check(items_);
    call_.assign(to_.blocks);
    for (const auto& [item, share] : call_.pieces()) {
      RowBlock& block = blocks_.emplace_back(to_.blocks[item]);
      const std::int64_t room = block.rows;
      block.rows = std::min(room, call_.planned()[item].rows().value_or(room));
      call_.expect_same(cat(static_cast<int>(block.dtype), ' ', room, ' ', block.rows));
      if (share.units.count == 0) continue;
      const std::int64_t unit_rows = call_.planned()[item].info().value().units.front().rows;
      block = rows_of_block(block, share.units.first * unit_rows, share.units.count * unit_rows);
    }
    slots_ = blocks_;
  }

  /// Some rows of a block.
  [[nodiscard]] RowBlock rows_of_block(RowBlock block, std::int64_t first,
                                       std::int64_t count) const {
    RowBlock before = block;
    before.rows = first;
    const std::size_t offset = block.row_stride_bytes == 0
                                   ? packed_bytes(before, width())
                                   : static_cast<std::size_t>(first * block.row_stride_bytes);
    block.data = static_cast<std::byte*>(block.data) + offset;
    block.rows = count;
    return block;
  }

  /// Whether rows stay on the devices of all ranks.
  [[nodiscard]] bool all_stay_on_devices() {
    const std::optional<int> device = ranks_.gather_device();
    const bool stays = call_.num_ranks() > 1 && device && gather_.stays_on(*device);
    const auto mine = static_cast<std::uint8_t>(stays);
    std::vector<std::uint8_t> all(call_.num_ranks());
    ranks_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    return std::ranges::all_of(all, [](std::uint8_t one) { return one != 0; });
  }

  void place_slots_on_device() {
    constexpr std::size_t kSlotAlignment = 256;
    constexpr std::size_t kMostBytes = std::size_t{1} << 48;  // of a share
    std::vector<std::size_t> offsets(slots_.size());
    for (std::size_t rank = 0; rank < call_.num_ranks(); ++rank) {
      std::size_t end = 0;
      for (const std::size_t piece : call_.pieces_of(rank)) {
        offsets[piece] = end;
        end += (packed_bytes(slots_[piece], width()) + kSlotAlignment - 1) / kSlotAlignment *
               kSlotAlignment;
        FOVEA_CHECK(end < kMostBytes, kOutOfMemory, "no memory to gather the rows of ",
                    items_.size(), " items");
      }
      share_bytes_ = std::max(share_bytes_, end);
    }
    const int device = *ranks_.gather_device();
    memory_ = gather_.reserve(device, share_bytes_ * call_.num_ranks());
    for (std::size_t rank = 0; rank < call_.num_ranks(); ++rank) {
      for (const std::size_t piece : call_.pieces_of(rank)) {
        place_slot(piece, memory_ + rank * share_bytes_ + offsets[piece], device);
      }
    }
  }

  void place_slots_on_host() {
    staged_.resize(slots_.size());
    if (call_.num_ranks() == 1) return;  // no other rank reads the slots
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].device == RowBlock::kHost) continue;
      staged_[i].resize(packed_bytes(slots_[i], width()));
      place_slot(i, staged_[i].data(), RowBlock::kHost);
    }
  }

  void place_slot(std::size_t piece, std::byte* data, int device) {
    slots_[piece].data = data;
    slots_[piece].device = device;
    slots_[piece].row_stride_bytes = 0;
  }

  void encode_share() {
    std::vector<RowBlock> blocks;
    for (const std::size_t piece : call_.pieces_of(call_.rank())) blocks.push_back(slots_[piece]);
    const CallerStream& stream = on_device_ ? gather_.stream() : to_.stream;
    call_.encode_share([&](ItemView share, const EncodeOptions& how) {
      return RowGather::encode(engine_, share, {blocks, stream}, how);
    });
  }

  /// Makes the results, and the slots as long as what is in them: of an item of which a share has
  /// failed nothing goes on.
  void take_results() {
    results_ = call_.results();
    const std::vector<Embedding> items = call_.join(results_);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const Embedding& result = results_[i];
      FOVEA_CHECK(
          result.rows <= slots_[i].rows && (result.rows == 0 || result.dtype == slots_[i].dtype),
          kCorruptData, result.name, ": ", result.rows, " rows came for ", slots_[i].rows);
      slots_[i].rows = items[call_.pieces()[i].item].error ? 0 : result.rows;
    }
  }

  void gather_on_device() {
    if (share_bytes_ > 0) {
      ranks_.all_gather_on_device(memory_ + call_.rank() * share_bytes_, memory_, share_bytes_,
                                  gather_.stream().handle);
    }
    gather_.copy(slots_, blocks_, results_);
  }

  void gather_on_host() {
    if (call_.num_ranks() == 1) return;
    std::vector<ByteSequence> rows(call_.num_ranks());
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
      for (const std::size_t piece : call_.pieces_of(rank)) {
        append_rows(slots_[piece], width(), rows[rank]);
      }
    }
    gather_rows(ranks_, call_.longest_share_bytes(), rows);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (staged_[i].empty()) slots_[i].rows = 0;  // they are in their place
    }
    gather_.copy(slots_, blocks_, results_);
  }

  [[nodiscard]] std::int64_t width() const { return engine_.report().width; }

  Engine& engine_;
  Communicator& ranks_;
  std::span<const MediaItem> items_;
  Destinations to_;
  RankCall call_;
  RowGather gather_;
  bool on_device_ = false;
  std::vector<RowBlock> blocks_;    // of all pieces, each for the most rows that may come
  std::vector<RowBlock> slots_;     // likewise
  std::byte* memory_ = nullptr;     // of the slots of all ranks, one after the other
  std::size_t share_bytes_ = 0;     // of the slots of a rank
  std::vector<RowBytes> staged_;    // slots of the host for blocks on GPUs
  std::vector<Embedding> results_;  // of all pieces
};

}  // namespace
}  // namespace ranks

std::vector<Embedding> encode_on_ranks(Engine& engine, Communicator& ranks,
                                       std::span<const MediaItem> items,
                                       const EncodeOptions& options) {
  return ranks::run_call(ranks,
                         [&] { return ranks::encode_to_results(engine, ranks, items, options); });
}

std::vector<Embedding> encode_on_ranks(Engine& engine, Communicator& ranks,
                                       std::span<const MediaItem> items,
                                       std::span<const RowBlock> destinations,
                                       const CallerStream& stream, const EncodeOptions& options) {
  return ranks::run_call(ranks, [&] {
    return ranks::CallToBlocks(engine, ranks, items, {destinations, stream}, options).run();
  });
}

}  // namespace fovea
