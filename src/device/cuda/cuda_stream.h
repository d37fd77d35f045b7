#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/cuda/handles.h"
#include "device/cuda/host_wait.h"
#include "device/cuda_abi.h"
#include "fovea/tower/device/device.h"

namespace fovea::cuda {

/// What a GPU, and the code that it runs, can do.
struct GpuTraits {
  std::size_t shared_bytes;   ///< most shared memory of a block
  bool starts_kernels_early;  ///< kernels wait for their predecessors themselves, on the GPU
};

/// A CUDA stream with the scratch memory of the ops submitted to it. Work on one
/// stream runs in order, so one piece of scratch serves all of it; two streams never share.
class CudaStream final : public Stream {
 public:
  /// What cuBLASLt may use on Hopper for its fastest algorithms.
  static constexpr std::size_t kLibraryScratchBytes = std::size_t{32} << 20;
  /// Scratch of our own, for results that cannot go to their place at once.
  static constexpr std::size_t kOwnScratchBytes = std::size_t{32} << 20;

  /// @param stream of GPU `device_index`. @param scratch kLibraryScratchBytes + kOwnScratchBytes of
  /// memory there, or nothing for a stream that no op uses. @param host_wait how synchronize()
  /// waits; must outlive the stream.
  CudaStream(int device_index, GpuTraits traits, UniqueStream stream, Buffer scratch,
             HostWait& host_wait);
  /// A stream of somebody else, which must outlive this object.
  CudaStream(int device_index, GpuTraits traits, cudaStream_t foreign, HostWait& host_wait);

  [[nodiscard]] cudaStream_t handle() const noexcept { return handle_; }
  [[nodiscard]] int device_index() const noexcept { return device_index_; }
  [[nodiscard]] const GpuTraits& traits() const noexcept { return traits_; }
  /// @throws Error(kInternal) on a stream without scratch.
  [[nodiscard]] std::span<std::byte> library_scratch() const {
    return scratch().first(kLibraryScratchBytes);
  }
  [[nodiscard]] std::span<std::byte> own_scratch() const {
    return scratch().subspan(kLibraryScratchBytes);
  }
  /// Whether work submitted now is recorded, by this stream or by one that this one has joined.
  [[nodiscard]] bool is_capturing() const;

  void copy(std::byte* dst, const std::byte* src, std::size_t bytes) override;
  void fill_zero(std::byte* dst, std::size_t bytes) override;
  void copy_rows(const RowCopy& copy) override;
  [[nodiscard]] std::unique_ptr<RecordedGraph> capture(
      const std::function<void()>& record) override;
  void replay(const RecordedGraph& graph) override;
  void wait_for(Stream& other) override;
  void meet(const Team& team) override;
  [[nodiscard]] bool is_idle() const override;
  void synchronize() override;

 private:
  [[nodiscard]] std::span<std::byte> scratch() const;

  int device_index_;
  GpuTraits traits_;
  UniqueStream stream_;  // empty: somebody else's
  cudaStream_t handle_ = nullptr;
  HostWait* host_wait_;
  UniqueEvent position_;  // marks how far this stream has come when another waits for it
  UniqueEvent end_;       // for synchronize()
  Buffer scratch_;
};

}  // namespace fovea::cuda
