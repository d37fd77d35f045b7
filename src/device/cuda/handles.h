#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <utility>

#include "device/cuda/cuda_check.h"

namespace fovea::cuda {

/// Owns one handle of a C library. Traits name the type and how it is destroyed.
template <class Traits>
class UniqueHandle {
 public:
  using Handle = typename Traits::Handle;
  UniqueHandle() = default;
  explicit UniqueHandle(Handle handle) noexcept : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    std::swap(handle_, other.handle_);  // the old handle dies with `other`
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() {
    if (handle_ != nullptr) Traits::destroy(handle_);
  }
  [[nodiscard]] Handle get() const noexcept { return handle_; }

 private:
  Handle handle_ = nullptr;
};

struct StreamTraits {
  using Handle = cudaStream_t;
  static void destroy(Handle handle) noexcept { (void)cudaStreamDestroy(handle); }
};
struct EventTraits {
  using Handle = cudaEvent_t;
  static void destroy(Handle handle) noexcept { (void)cudaEventDestroy(handle); }
};
struct GraphTraits {
  using Handle = cudaGraph_t;
  static void destroy(Handle handle) noexcept { (void)cudaGraphDestroy(handle); }
};
struct GraphExecTraits {
  using Handle = cudaGraphExec_t;
  static void destroy(Handle handle) noexcept { (void)cudaGraphExecDestroy(handle); }
};
struct CublasLtTraits {
  using Handle = cublasLtHandle_t;
  static void destroy(Handle handle) noexcept { (void)cublasLtDestroy(handle); }
};

using UniqueStream = UniqueHandle<StreamTraits>;
using UniqueEvent = UniqueHandle<EventTraits>;
using UniqueGraph = UniqueHandle<GraphTraits>;
using UniqueGraphExec = UniqueHandle<GraphExecTraits>;
using UniqueCublasLt = UniqueHandle<CublasLtTraits>;

/// Makes a GPU current for the calling thread until the end of the scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int index) : index_(index) {
    FOVEA_CUDA_CHECK(cudaGetDevice(&previous_));
    if (previous_ != index_) FOVEA_CUDA_CHECK(cudaSetDevice(index_));
  }
  ~DeviceGuard() {
    if (previous_ != index_) (void)cudaSetDevice(previous_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int index_;
  int previous_ = 0;
};

}  // namespace fovea::cuda
