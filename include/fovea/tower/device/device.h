#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "fovea/export.h"
#include "fovea/tower/core/dtype.h"
#include "fovea/tower/core/row_copy.h"
#include "fovea/tower/core/tensor_view.h"

namespace fovea {

class Device;
struct Team;
class Kernels;  // src/ops/kernels.h: what a backend computes; `device` only hands it out

/// Memory on one device, or host memory pinned for it. Move-only owner; the device must outlive it.
class Buffer {
 public:
  using Release = void (*)(void* context, std::byte* data, std::size_t bytes) noexcept;

  Buffer() = default;
  Buffer(std::byte* data, std::size_t bytes, Release release, void* context) noexcept
      : data_(data), bytes_(bytes), release_(release), context_(context) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);  // the old memory dies with `other`
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) release_(context_, data_, bytes_);
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
    std::swap(context_, other.context_);
  }

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_ = nullptr;
  void* context_ = nullptr;
};

/// Work captured by Stream::capture, ready to run again. It refers to memory by the addresses used
/// during capture; that memory must outlive it. Belongs to the stream that captured it.
class FOVEA_API RecordedGraph {
 public:
  virtual ~RecordedGraph() = default;
  /// Number of operations that one replay launches.
  [[nodiscard]] virtual std::size_t num_nodes() const noexcept = 0;
  /// Device bytes that the recording itself takes (not the memory it refers to).
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;
};

/// An ordered queue of work on one device. Not thread-safe: one thread submits at a time.
/// On the CPU work runs inside the submitting call; on a GPU every call but synchronize() is
/// asynchronous, and any call may throw Error(kDevice), also because of work that was submitted
/// before.
class FOVEA_API Stream {
 public:
  virtual ~Stream() = default;

  /// Copies bytes between any two memories the device can reach (device, pinned host, host). Source
  /// and destination must stay valid until the work has run, and must not overlap.
  virtual void copy(std::byte* dst, const std::byte* src, std::size_t bytes) = 0;
  /// Sets bytes to zero, in memory that the device can reach and that stays valid until then.
  virtual void fill_zero(std::byte* dst, std::size_t bytes) = 0;
  /// As copy, for rows: between memories of this device, of others and of the host. The bits are
  /// those of the function of the same name on the host, NaN aside; memory that differs in dtype is
  /// that of devices. Not to be captured.
  virtual void copy_rows(const RowCopy& copy) = 0;

  /// Calls `record` once; the work it submits to this stream is recorded, not executed.
  /// @throws whatever `record` throws, and the stream is usable afterwards; Error(kInternal) inside
  /// another capture of this stream.
  [[nodiscard]] virtual std::unique_ptr<RecordedGraph> capture(
      const std::function<void()>& record) = 0;
  /// Runs recorded work after everything submitted before. Allocates nothing. `graph` is one of
  /// this stream and lives until the work has run.
  /// @throws Error(kInternal), on a GPU Error(kDevice), inside a capture.
  virtual void replay(const RecordedGraph& graph) = 0;

  /// Makes work submitted here from now on wait for everything submitted to `other` so far, a
  /// stream of the same backend. May be captured.
  virtual void wait_for(Stream& other) = 0;
  /// Makes work submitted here from now on wait until the streams of all members of `team` have
  /// come to this call: then what members submitted before, also to memory of each other, is there.
  /// Every member calls it equally often. A wait ends in vain when Team::is_lost says so, on a GPU
  /// also after Team::timeout_ms: a member is lost then, what the team computes is not to be used,
  /// and later calls do not wait. Not to be captured.
  /// @throws Error(kUnavailable) of such a wait on a CPU.
  virtual void meet(const Team& team) = 0;
  /// Whether everything submitted so far has run, or failed. Does not wait.
  [[nodiscard]] virtual bool is_idle() const = 0;
  /// Returns when everything submitted so far has run.
  /// @throws Error(kDevice) if some of it failed; Error(kInternal), on a GPU Error(kDevice), inside
  /// a capture.
  virtual void synchronize() = 0;
};

/// What a device is; printed by `fovea env` and used to key stored measurements.
struct DeviceProperties {
  std::string name;                      ///< "cpu" or "cuda:<index>"
  std::string description;               ///< processor or GPU model
  std::string software = {};             ///< of a GPU: versions of driver, libraries and plugin
  DType activation_dtype = DType::kF32;  ///< dtype of intermediates and rows on this device
  bool host_memory = true;      ///< device memory is ordinary host memory: no staging is needed
  int parallelism = 1;          ///< threads of a CPU, SMs of a GPU
  std::size_t total_bytes = 0;  ///< memory of the device
};

/// One processor with its memory: the seam between Fovea and a backend. Thread-safe.
class FOVEA_API Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceProperties& properties() const noexcept = 0;
  [[nodiscard]] virtual const Kernels& kernels() const noexcept = 0;

  /// Zero-filled memory of the device, aligned to 256 bytes. Returns after the memory is zero.
  /// @throws Error(kOutOfMemory) with the number of bytes asked for.
  [[nodiscard]] virtual Buffer allocate(std::size_t bytes) = 0;
  /// Zero-filled host memory that copies to this device fast (pinned on a GPU), 256-byte
  /// aligned.
  /// @throws Error(kOutOfMemory) with the number of bytes asked for.
  [[nodiscard]] virtual Buffer allocate_host(std::size_t bytes) = 0;

  /// A stream for ops, recordings and copies. On a GPU it takes 64 MiB of device memory for scratch
  /// of the ops, counted by allocated_bytes(), for as long as it lives.
  /// @throws Error(kOutOfMemory), Error(kDevice).
  [[nodiscard]] virtual std::unique_ptr<Stream> create_stream() = 0;
  /// A stream for everything but ops: it takes no device memory. On a GPU an op that needs scratch
  /// throws Error(kInternal) on it.
  /// @throws Error(kDevice).
  [[nodiscard]] virtual std::unique_ptr<Stream> create_copy_stream() { return create_stream(); }
  /// Bytes handed out by allocate() and not yet released.
  [[nodiscard]] virtual std::size_t allocated_bytes() const noexcept = 0;

  /// A queue of somebody else, for Stream::wait_for in both directions. The result owns nothing and
  /// ends before it.
  /// @param gpu its device, also another one than this. @param handle a cudaStream_t.
  /// @throws Error(kInvalidArgument) if there is no such GPU, or this device is none;
  /// Error(kDevice).
  [[nodiscard]] virtual std::unique_ptr<Stream> adopt_stream(int gpu, void* handle) = 0;
  /// Lets work of this device read and write memory of `other`, so that both can be in a Team.
  /// @return false if it cannot, or only slowly: they are no devices of one backend, or GPUs that
  /// NVLink does not connect.
  /// @throws Error(kDevice).
  [[nodiscard]] virtual bool reach(const Device& other) = 0;
  /// Whether memory lies on the GPU of this number, or in host memory if it is negative. What the
  /// driver moves between them lies everywhere.
  /// @throws Error(kDevice) if the driver does not know.
  [[nodiscard]] virtual bool is_memory_of(const void* data, int gpu) const = 0;
  /// How often a thread has waited for work of this device, in Stream::synchronize or for memory.
  [[nodiscard]] virtual std::int64_t host_waits() const noexcept = 0;
};

/// A tensor with its own memory.
struct Tensor {
  Buffer buffer;
  DType dtype = DType::kF32;
  Shape shape;
  [[nodiscard]] TensorView view() const noexcept { return {buffer.data(), dtype, shape}; }
};

/// Allocates a zero-filled tensor on `device`, which must outlive it.
/// @throws Error(kOutOfMemory) with the number of bytes asked for.
[[nodiscard]] FOVEA_API Tensor make_tensor(Device& device, DType dtype, const Shape& shape);

/// Allocates a tensor on `device` and fills it from host memory; returns when everything submitted
/// to `stream` before and the copy have run. Not to be captured.
/// @param stream of `device`. @param host of any dtype and shape.
/// @throws Error(kOutOfMemory) with the number of bytes asked for; Error(kDevice) if work on
/// `stream` failed.
[[nodiscard]] FOVEA_API Tensor upload(Device& device, Stream& stream, ConstTensorView host);

}  // namespace fovea
