#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <span>
#include <string>

namespace fovea::cuda {

/// The functions of cuDNN's graph interface. The library (some 490 MB in parts) is loaded when the
/// first of these objects is made, and stays.
struct CudnnLibrary {
  /// Oldest version whose attention takes lengths from the device in one operation.
  static constexpr std::size_t kOldestVersion = 91500;

  /// @throws Error(kUnsupported) with the file and the reason if cuDNN is missing or too old.
  CudnnLibrary();

  /// @throws Error(kOutOfMemory) for a lack of memory, Error(kDevice) for every other failure, with
  /// the call and cuDNN's message.
  void check(cudnnStatus_t status, const char* call) const;

  /// Of the loaded library, for example "9.15.0".
  [[nodiscard]] std::string version() const;

  decltype(&cudnnGetVersion) get_version;
  decltype(&cudnnGetErrorString) get_error_string;
  decltype(&cudnnGetLastErrorString) get_last_error_string;
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;
};

/// One descriptor of cuDNN's graph interface: a typed set of attributes. The library outlives it.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const CudnnLibrary& library, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;

  [[nodiscard]] cudnnBackendDescriptor_t get() const noexcept { return handle_; }

  void set(cudnnBackendAttributeName_t name, bool value);
  void set(cudnnBackendAttributeName_t name, std::int64_t value);
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  void set(cudnnBackendAttributeName_t name, std::span<void* const> values);
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  void set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value);
  void set(cudnnBackendAttributeName_t name, cudnnHandle_t value);
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  [[nodiscard]] std::int64_t get_int64(cudnnBackendAttributeName_t name) const;

  /// Checks the attributes; the descriptor can be used from here on.
  void finalize();

 private:
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::size_t count,
           const void* values);

  const CudnnLibrary& library_;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace fovea::cuda
