// cuDNN loaded at run time, and the descriptors of its graph interface.
#include "device/cuda/cudnn_library.h"

#include <dlfcn.h>

#include <array>
#include <string>
#include <utility>

#include "core/check.h"

namespace fovea::cuda {

namespace {

constexpr const char* kFile = "libcudnn.so.9";

void* open_library() {
  // RTLD_NODELETE: it registers exit handlers, so it cannot be unloaded.
  void* const handle = dlopen(kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* const reason = dlerror();
    throw Error(
        ErrorCode::kUnsupported,
        cat("attention cudnn: cuDNN 9 cannot be loaded (", reason != nullptr ? reason : kFile,
            "); install it or put its folder into LD_LIBRARY_PATH"));
  }
  return handle;
}

/// 9.15.0 for 91500.
std::string version_text(std::size_t version) {
  return cat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

template <class Function>
void find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  FOVEA_CHECK(function != nullptr, kUnsupported, "attention cudnn: ", kFile, " has no ", name);
}

}  // namespace

CudnnLibrary::CudnnLibrary() {
  void* const handle = open_library();
  find(handle, "cudnnGetVersion", get_version);
  find(handle, "cudnnGetErrorString", get_error_string);
  find(handle, "cudnnGetLastErrorString", get_last_error_string);
  find(handle, "cudnnCreate", create);
  find(handle, "cudnnDestroy", destroy);
  find(handle, "cudnnSetStream", set_stream);
  find(handle, "cudnnBackendCreateDescriptor", create_descriptor);
  find(handle, "cudnnBackendDestroyDescriptor", destroy_descriptor);
  find(handle, "cudnnBackendSetAttribute", set_attribute);
  find(handle, "cudnnBackendGetAttribute", get_attribute);
  find(handle, "cudnnBackendFinalize", finalize);
  find(handle, "cudnnBackendExecute", execute);
  FOVEA_CHECK(get_version() >= kOldestVersion, kUnsupported, "attention cudnn: ", kFile,
              " must be version ", version_text(kOldestVersion), " or newer, got ", version(),
              "; put the folder of a newer one first into LD_LIBRARY_PATH");
}

std::string CudnnLibrary::version() const { return version_text(get_version()); }

void CudnnLibrary::check(cudnnStatus_t status, const char* call) const {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  std::array<char, 512> words{};
  get_last_error_string(words.data(), words.size());
  const bool no_memory = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                         status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  throw Error(no_memory ? ErrorCode::kOutOfMemory : ErrorCode::kDevice,
              cat("cuDNN: ", call, " failed: ", get_error_string(status),
                  words[0] != '\0' ? ": " : "", words.data()));
}

CudnnDescriptor::CudnnDescriptor(const CudnnLibrary& library, cudnnBackendDescriptorType_t type)
    : library_(library) {
  library_.check(library_.create_descriptor(type, &handle_), "cudnnBackendCreateDescriptor");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (handle_ != nullptr) (void)library_.destroy_descriptor(handle_);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : library_(other.library_), handle_(std::exchange(other.handle_, nullptr)) {}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::size_t count, const void* values) {
  library_.check(
      library_.set_attribute(handle_, name, type, static_cast<std::int64_t>(count), values),
      "cudnnBackendSetAttribute");
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, bool value) {
  set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::int64_t value) {
  set(name, CUDNN_TYPE_INT64, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  set(name, CUDNN_TYPE_INT64, values.size(), values.data());
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<void* const> values) {
  set(name, CUDNN_TYPE_VOID_PTR, values.size(), values.data());
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value) {
  set(name, CUDNN_TYPE_HEUR_MODE, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
  set(name, CUDNN_TYPE_HANDLE, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_);
}

std::int64_t CudnnDescriptor::get_int64(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  std::int64_t count = 0;
  library_.check(library_.get_attribute(handle_, name, CUDNN_TYPE_INT64, 1, &count, &value),
                 "cudnnBackendGetAttribute");
  return value;
}

void CudnnDescriptor::finalize() {
  library_.check(library_.finalize(handle_), "cudnnBackendFinalize");
}

}  // namespace fovea::cuda
