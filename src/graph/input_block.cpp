// Layout, filling, padding and upload of the inputs of a forward. Everything here is byte offsets;
// what the buffers mean is the model's business.
#include "graph/input_block.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/check.h"
#include "core/stopwatch.h"
#include "core/stream_copy.h"

namespace fovea {

namespace {

std::size_t bytes_of(const BufferDecl& decl) {
  return static_cast<std::size_t>(decl.shape.elements()) * size_of(decl.dtype);
}

/// Bytes of one entry along axis 0.
std::size_t row_bytes(const BufferDecl& decl) {
  return decl.shape[0] == 0 ? 0 : bytes_of(decl) / static_cast<std::size_t>(decl.shape[0]);
}

/// Repeats the last of the `written` rows of a buffer up to its end; zeros if there is none.
void repeat_last(const BufferDecl& decl, std::byte* memory, std::int64_t written) {
  const std::size_t row = row_bytes(decl);
  std::byte* const tail = memory + static_cast<std::size_t>(written) * row;
  std::byte* const end = memory + bytes_of(decl);
  if (written == 0) {
    std::fill(tail, end, std::byte{0});
  } else {
    for (std::byte* at = tail; at != end; at += row) std::memcpy(at, tail - row, row);
  }
}

/// Into memory that a device reads: past the caches, which upload at 16 to 30 GB/s what memory
/// uploads at 50, and by several threads, of which one copies some 15 GB/s.
void copy_for_upload(std::span<const InputWriter::Copy> copies, ThreadPool& copiers) {
  constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
  constexpr std::size_t kManyPieces = 4;  // for fewer, waking threads takes longer
  const auto num_pieces = [](const InputWriter::Copy& copy) {
    return (copy.from.size() + kPieceBytes - 1) / kPieceBytes;
  };
  std::size_t pieces = 0;
  for (const InputWriter::Copy& copy : copies) pieces += num_pieces(copy);
  if (pieces < kManyPieces) {
    for (const InputWriter::Copy& copy : copies)
      stream_copy(copy.to, copy.from.data(), copy.from.size());
    return;
  }
  copiers.parallel_for(static_cast<std::int64_t>(pieces), [&](std::int64_t task, int) {
    auto piece = static_cast<std::size_t>(task);
    const InputWriter::Copy* copy = copies.data();
    for (; piece >= num_pieces(*copy); ++copy) piece -= num_pieces(*copy);
    const std::size_t begin = piece * kPieceBytes;
    stream_copy(copy->to + begin, copy->from.data() + begin,
                std::min(kPieceBytes, copy->from.size() - begin));
  });
}

/// Takes those copies out of scratch.copies whose bytes are on the device.
void set_device_copies_apart(std::span<const ItemPart> parts, InputScratch& scratch) {
  scratch.device_copies.clear();
  const auto reads = [](const ItemPart& part, const std::uint8_t* at) {
    const std::span<const std::uint8_t> there = part.item->on_device;
    const std::less_equal<> is_before;  // of any two pointers
    return !there.empty() && is_before(there.data(), at) &&
           !is_before(there.data() + there.size(), at);
  };
  const auto has_some = [](const ItemPart& part) { return !part.item->on_device.empty(); };
  if (std::ranges::none_of(parts, has_some)) return;
  std::erase_if(scratch.copies, [&](const InputWriter::Copy& copy) {
    const bool is_there = std::ranges::any_of(
        parts, [&](const ItemPart& part) { return reads(part, copy.from.data()); });
    if (is_there) scratch.device_copies.push_back(copy);
    return is_there;
  });
}

/// Less the end of the first `used` bytes of a block that device copies fill.
std::size_t without(std::span<const InputWriter::Copy> device_copies, const std::byte* block,
                    std::size_t used) {
  for (auto copy = device_copies.rbegin(); copy != device_copies.rend(); ++copy) {
    if (copy->to + copy->from.size() != block + used) break;
    used = static_cast<std::size_t>(copy->to - block);
  }
  return used;
}

}  // namespace

InputLayout::InputLayout(std::vector<BufferDecl> decls)
    : decls_(std::move(decls)), offsets_(decls_.size()) {
  for (std::size_t i = 0; i < decls_.size(); ++i) {
    const BufferDecl& decl = decls_[i];
    FOVEA_CHECK(decl.shape.rank() > 0, kInternal, "input \"", decl.name, "\" has no axis 0");
    for (std::size_t j = 0; j < i; ++j) {
      FOVEA_CHECK(decls_[j].name != decl.name, kInternal, "two inputs are named \"", decl.name,
                  "\"");
    }
  }
  std::vector<std::size_t> order(decls_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t index) { return bytes_of(decls_[index]); });
  for (const std::size_t index : order) {
    offsets_[index] = bytes_;
    bytes_ += aligned_bytes(bytes_of(decls_[index]));
  }
}

NamedTensors InputLayout::views(std::byte* base) const {
  NamedTensors tensors;
  for (std::size_t i = 0; i < decls_.size(); ++i) {
    tensors.add(decls_[i].name, {base + offsets_[i], decls_[i].dtype, decls_[i].shape});
  }
  return tensors;
}

std::size_t fill_input_block(const InputFill& fill, std::byte* host, InputScratch& scratch,
                             ThreadPool* copiers) {
  std::vector<InputWriter::Slot>& slots = scratch.slots;
  const std::vector<BufferDecl>& decls = fill.layout.decls();
  slots.assign(decls.size(), {});
  for (std::size_t i = 0; i < decls.size(); ++i) {
    slots[i].decl = &decls[i];
    slots[i].memory = host + fill.layout.offset(i);
  }
  scratch.copies.clear();
  InputWriter writer(slots, scratch.copies);
  fill.model.fill_inputs(fill.path, fill.capacity, fill.parts, writer);
  if (copiers != nullptr) {
    set_device_copies_apart(fill.parts, scratch);
    copy_for_upload(scratch.copies, *copiers);
  } else {
    for (const InputWriter::Copy& copy : scratch.copies)
      std::memcpy(copy.to, copy.from.data(), copy.from.size());
  }

  std::size_t used = 0;
  for (std::size_t i = 0; i < decls.size(); ++i) {
    const InputWriter::Slot& slot = slots[i];
    FOVEA_CHECK(slot.rows_written >= 0, kInternal, "input \"", decls[i].name,
                "\" was not written for this batch");
    const bool padded = decls[i].pad == PadRule::kRepeatLast;
    if (padded) repeat_last(decls[i], slot.memory, slot.rows_written);
    const std::int64_t rows = padded ? decls[i].shape[0] : slot.rows_written;
    if (rows == 0) continue;
    used = std::max(used,
                    fill.layout.offset(i) + static_cast<std::size_t>(rows) * row_bytes(decls[i]));
  }
  return without(scratch.device_copies, host, used);
}

void feed_inputs(const InputFill& fill, InputFeed& feed, InputScratch& scratch,
                 ThreadPool* copiers) {
  std::byte* const host = feed.begin();
  const Stopwatch filling;
  feed.upload(fill_input_block(fill, host, scratch, copiers));
  for (const InputWriter::Copy& copy : scratch.device_copies) {
    feed.copy(static_cast<std::size_t>(copy.to - host), copy.from);
  }
  scratch.host_ms += filling.elapsed_ms();
}

void InputFeed::reserve(std::size_t bytes) {
  if (bytes <= block_.bytes()) return;
  copy_->synchronize();
  compute_->synchronize();
  // The old memory goes before the new one is allocated: both together may not fit.
  block_ = {};
  staging_ = {};
  for (HostSlot& slot : slots_) slot = {};
  if (!device_->properties().host_memory) {
    staging_ = device_->allocate(bytes);
    for (HostSlot& slot : slots_) slot.memory = device_->allocate_host(bytes);
  }
  block_ = device_->allocate(bytes);  // last: its size says that the others are there
}

std::size_t InputFeed::device_bytes() const noexcept { return block_.bytes() + staging_.bytes(); }

std::size_t InputFeed::host_bytes() const noexcept {
  return slots_[0].memory.bytes() + slots_[1].memory.bytes();
}

std::byte* InputFeed::begin() {
  if (device_->properties().host_memory) return block_.data();
  slot_ ^= 1;
  if (slots_[slot_].in_flight) {
    if (!copy_->is_idle()) copy_->synchronize();  // all uploads so far: both slots are free
    for (HostSlot& slot : slots_) slot.in_flight = false;
  }
  return slots_[slot_].memory.data();
}

void InputFeed::upload(std::size_t used) {
  if (device_->properties().host_memory) return;
  slots_[slot_].in_flight = true;
  if (compute_->is_idle()) {  // nothing reads the block and there is nothing to overlap with
    compute_->copy(block_.data(), slots_[slot_].memory.data(), used);
  } else {
    copy_->copy(staging_.data(), slots_[slot_].memory.data(), used);
    compute_->wait_for(*copy_);
    compute_->copy(block_.data(), staging_.data(), used);
  }
  // Marks this place: the next upload waits for the copy just submitted, not for the replay.
  copy_->wait_for(*compute_);
}

void InputFeed::copy(std::size_t offset, std::span<const std::uint8_t> from) {
  compute_->copy(block_.data() + offset, reinterpret_cast<const std::byte*>(from.data()),
                 from.size());
}

void InputFeed::fill_with_nan() {
  copy_->synchronize();
  fill_with_ones(*device_, *compute_, block_.data(), block_.bytes());
  fill_with_ones(*device_, *compute_, staging_.data(), staging_.bytes());
  for (HostSlot& slot : slots_) {
    std::fill_n(slot.memory.data(), slot.memory.bytes(), std::byte{0xFF});
  }
}

void fill_with_ones(Device& device, Stream& stream, std::byte* memory, std::size_t bytes) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  if (bytes == 0) return;
  const Buffer ones = device.allocate_host(std::min(bytes, kPieceBytes));
  std::fill_n(ones.data(), ones.bytes(), std::byte{0xFF});
  for (std::size_t at = 0; at < bytes; at += kPieceBytes) {
    stream.copy(memory + at, ones.data(), std::min(kPieceBytes, bytes - at));
  }
  stream.synchronize();
}

}  // namespace fovea
