// Streams and recorded graphs on CUDA. Capture is thread-local, so other threads may allocate or
// synchronise while one records; a recording is instantiated and uploaded once and launched per
// replay.
#include "device/cuda/cuda_stream.h"

#include <algorithm>

#include "core/check.h"

namespace fovea::cuda {

namespace {

class CudaGraph final : public RecordedGraph {
 public:
  CudaGraph(UniqueGraphExec exec, std::size_t num_nodes, std::size_t bytes) noexcept
      : exec_(std::move(exec)), num_nodes_(num_nodes), bytes_(bytes) {}
  [[nodiscard]] std::size_t num_nodes() const noexcept override { return num_nodes_; }
  [[nodiscard]] std::size_t bytes() const noexcept override { return bytes_; }
  [[nodiscard]] cudaGraphExec_t exec() const noexcept { return exec_.get(); }

 private:
  UniqueGraphExec exec_;
  std::size_t num_nodes_;
  std::size_t bytes_;
};

std::size_t free_device_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  FOVEA_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

std::unique_ptr<RecordedGraph> instantiate(cudaGraph_t graph, cudaStream_t stream) {
  std::size_t num_nodes = 0;
  FOVEA_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &num_nodes));
  const std::size_t before = free_device_bytes();
  cudaGraphExec_t exec = nullptr;
  FOVEA_CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  UniqueGraphExec owner(exec);
  FOVEA_CUDA_CHECK(cudaGraphUpload(exec, stream));
  // The driver hands out memory in pages shared by several graphs: a rough figure, never negative.
  const std::size_t after = free_device_bytes();
  return std::make_unique<CudaGraph>(std::move(owner), num_nodes, before - std::min(before, after));
}

UniqueEvent make_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  FOVEA_CUDA_CHECK(cudaEventCreateWithFlags(&event, flags));
  return UniqueEvent(event);
}

}  // namespace

CudaStream::CudaStream(int device_index, GpuTraits traits, cudaStream_t foreign,
                       HostWait& host_wait)
    : device_index_(device_index), traits_(traits), handle_(foreign), host_wait_(&host_wait) {
  const DeviceGuard guard(device_index_);
  position_ = make_event(cudaEventDisableTiming);
  end_ = make_event(cudaEventDisableTiming | cudaEventBlockingSync);
}

CudaStream::CudaStream(int device_index, GpuTraits traits, UniqueStream stream, Buffer scratch,
                       HostWait& host_wait)
    : CudaStream(device_index, traits, stream.get(), host_wait) {
  stream_ = std::move(stream);
  scratch_ = std::move(scratch);
}

std::span<std::byte> CudaStream::scratch() const {
  FOVEA_CHECK(scratch_.bytes() >= kLibraryScratchBytes + kOwnScratchBytes, kInternal,
              "cuda:", device_index_, ": an op needs ", kLibraryScratchBytes + kOwnScratchBytes,
              " bytes of scratch on its stream, got a stream with ", scratch_.bytes(),
              "; ops run on streams of create_stream()");
  return {scratch_.data(), scratch_.bytes()};
}

bool CudaStream::is_capturing() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  FOVEA_CUDA_CHECK(cudaStreamIsCapturing(handle(), &status));
  return status != cudaStreamCaptureStatusNone;
}

void CudaStream::copy(std::byte* dst, const std::byte* src, std::size_t bytes) {
  if (bytes == 0) return;
  const DeviceGuard guard(device_index_);
  FOVEA_CUDA_CHECK(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, handle()));
}

void CudaStream::fill_zero(std::byte* dst, std::size_t bytes) {
  if (bytes == 0) return;
  const DeviceGuard guard(device_index_);
  FOVEA_CUDA_CHECK(cudaMemsetAsync(dst, 0, bytes, handle()));
}

std::unique_ptr<RecordedGraph> CudaStream::capture(const std::function<void()>& record) {
  FOVEA_CHECK(!is_capturing(), kInternal, "a capture is already under way on this stream");
  const DeviceGuard guard(device_index_);
  FOVEA_CUDA_CHECK(cudaStreamBeginCapture(handle(), cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  try {
    record();
  } catch (...) {
    (void)cudaStreamEndCapture(handle(), &graph);
    (void)cudaGetLastError();  // an interrupted capture reports itself; the cause is rethrown
    const UniqueGraph discarded(graph);
    throw;
  }
  FOVEA_CUDA_CHECK(cudaStreamEndCapture(handle(), &graph));
  const UniqueGraph owner(graph);
  return instantiate(graph, handle());
}

void CudaStream::replay(const RecordedGraph& graph) {
  const DeviceGuard guard(device_index_);
  FOVEA_CUDA_CHECK(cudaGraphLaunch(static_cast<const CudaGraph&>(graph).exec(), handle()));
}

void CudaStream::wait_for(Stream& other) {
  if (&other == this) return;
  auto& source = static_cast<CudaStream&>(other);
  {
    const DeviceGuard guard(source.device_index_);
    FOVEA_CUDA_CHECK(cudaEventRecord(source.position_.get(), source.handle()));
  }
  const DeviceGuard guard(device_index_);
  FOVEA_CUDA_CHECK(cudaStreamWaitEvent(handle(), source.position_.get(), 0));
}

bool CudaStream::is_idle() const {
  const DeviceGuard guard(device_index_);
  if (cudaStreamQuery(handle()) != cudaErrorNotReady) return true;  // synchronize() tells of errors
  (void)cudaGetLastError();                                         // being busy counts as an error
  return false;
}

void CudaStream::synchronize() {
  const DeviceGuard guard(device_index_);
  host_wait_->wait(handle(), end_.get());
}

}  // namespace fovea::cuda
