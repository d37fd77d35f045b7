#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/thread_pool.h"
#include "fovea/tower/device/arena.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea {

/// Rounds up to the alignment of every view.
[[nodiscard]] constexpr std::size_t aligned_bytes(std::size_t bytes) noexcept {
  return (bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

/// Where the declared inputs of one (path, capacity) lie in a contiguous block: every buffer on a
/// 256-byte boundary, the largest one (the pixels) last, so that the part of the block that a batch
/// uses is a prefix and travels with one copy.
class InputLayout {
 public:
  InputLayout() = default;
  /// @throws Error(kInternal) if a declaration breaks the rules of BufferDecl: rank 0, two of one
  /// name.
  explicit InputLayout(std::vector<BufferDecl> decls);

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::vector<BufferDecl>& decls() const noexcept { return decls_; }
  /// Offset of decls()[index] in the block.
  [[nodiscard]] std::size_t offset(std::size_t index) const { return offsets_[index]; }
  /// The buffers as tensors at capacity, in order of declaration, in a block that starts at `base`.
  [[nodiscard]] NamedTensors views(std::byte* base) const;

 private:
  std::vector<BufferDecl> decls_;     // in order of declaration
  std::vector<std::size_t> offsets_;  // of decls_
  std::size_t bytes_ = 0;
};

/// The arguments of fill_input_block.
struct InputFill {
  const EncoderGraphModel& model;
  PathId path = 0;
  GraphCapacity capacity;
  std::span<const ItemPart> parts;  ///< of the path
  const InputLayout& layout;        ///< of (path, capacity)
};

/// The memory that filling inputs needs from run to run, and its time.
struct InputScratch {
  std::vector<InputWriter::Slot> slots;
  std::vector<InputWriter::Copy> copies;
  std::vector<InputWriter::Copy> device_copies;  ///< of pixels that are on the device
  double host_ms = 0;  ///< time of the host so far, waiting for the device not counted
};

/// Lets the model write the inputs of one sub-batch into `host` (layout.bytes() bytes), then
/// applies the pad rules beyond what it wrote. Nothing written by an earlier fill is read: every
/// declared buffer must be claimed in this very fill.
/// @param scratch reused from call to call.
/// @param copiers threads that copy pixels with the caller, past the caches, where a device reads
///   them next, and pixels that are there already are left in scratch.device_copies; null: this
///   processor reads them, and the caller copies alone.
/// @return bytes of the prefix of the block that the run may read and the host has.
/// @throws Error(kUnavailable) if a buffer is too small for the batch, Error(kInternal) if the
/// model forgot a buffer; the message names the buffer.
[[nodiscard]] std::size_t fill_input_block(const InputFill& fill, std::byte* host,
                                           InputScratch& scratch, ThreadPool* copiers = nullptr);

class InputFeed;

/// Fills the next host memory of `feed` by fill_input_block and submits its upload, and copies of
/// what is on the device.
/// @throws as fill_input_block; nothing was submitted then.
void feed_inputs(const InputFill& fill, InputFeed& feed, InputScratch& scratch,
                 ThreadPool* copiers);

/// The way of one path's inputs from the model to a block at a fixed device address.
///
/// On a device whose memory is host memory the model writes into the block itself. Otherwise:
///
///     host slot 0/1 --copy queue--> device staging --compute queue--> block --> replay
///
/// so that filling and uploading sub-batch k + 1 overlaps the replay of sub-batch k. The upload of
/// k + 1 waits for the device-to-device copy of k alone, which is submitted before replay k. The
/// host runs ahead of the device by two sub-batches at most. Where the device has nothing to do,
/// the way is shorter: host slot --compute queue--> block. Not thread-safe.
class InputFeed {
 public:
  /// All three must outlive the feed. `copy` may be `compute`.
  InputFeed(Device& device, Stream& compute, Stream& copy) noexcept
      : device_(&device), compute_(&compute), copy_(&copy) {}

  /// Makes the block at least `bytes` long. Growing waits for all work and moves the block. Without
  /// memory for that the capacity is 0 until the next call.
  /// @throws Error(kOutOfMemory).
  void reserve(std::size_t bytes);
  [[nodiscard]] std::size_t capacity() const noexcept { return block_.bytes(); }
  /// Start of the block on the device; valid until the next growth.
  [[nodiscard]] std::byte* block() const noexcept { return block_.data(); }
  /// Bytes allocated on the device, and pinned on the host.
  [[nodiscard]] std::size_t device_bytes() const noexcept;
  [[nodiscard]] std::size_t host_bytes() const noexcept;

  /// Host memory to fill for the next run; waits until its last contents have been uploaded.
  [[nodiscard]] std::byte* begin();
  /// Submits whatever brings the first `used` bytes of that memory into the block before work that
  /// is submitted to the compute queue from now on.
  void upload(std::size_t used);

  /// Submits a copy of device memory to a place of the block, behind the upload.
  void copy(std::size_t offset, std::span<const std::uint8_t> from);

  /// Waits for all work, then overwrites every byte of every memory with 0xFF: NaN as a float, -1
  /// as a count.
  void fill_with_nan();

 private:
  struct HostSlot {
    Buffer memory;
    bool in_flight = false;  // an upload from it may still be running
  };

  Device* device_;  // never null
  Stream* compute_;
  Stream* copy_;
  Buffer block_;
  Buffer staging_;     // device; empty when device memory is host memory
  HostSlot slots_[2];  // empty when device memory is host memory
  int slot_ = 0;       // the one that begin() handed out last
};

/// Overwrites device memory with 0xFF bytes, in pieces through host memory; returns when done.
void fill_with_ones(Device& device, Stream& stream, std::byte* memory, std::size_t bytes);

}  // namespace fovea
