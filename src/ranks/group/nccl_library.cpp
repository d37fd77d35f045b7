// NCCL loaded at run time.
#include "ranks/group/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "core/check.h"

namespace fovea::ranks {

namespace {

constexpr const char* kFile = "libnccl.so.2";
constexpr int kOldest = 21800;

/// Loads NCCL from where the system's loader looks, which is not the working folder.
void* open_library() {
  (void)setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/1);
  // RTLD_NODELETE: it has threads and exit handlers of its own.
  void* const handle = dlopen(kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle != nullptr) return handle;
  const char* const reason = dlerror();
  throw Error(ErrorCode::kUnsupported,
              cat("NCCL cannot be loaded (", reason != nullptr ? reason : kFile,
                  "); install it or put its folder into LD_LIBRARY_PATH"));
}

template <class Function>
void find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  FOVEA_CHECK(function != nullptr, kUnsupported, kFile, " has no ", name);
}

}  // namespace

NcclLibrary::NcclLibrary() {
  void* const handle = open_library();
  find(handle, "ncclGetVersion", get_version);
  find(handle, "ncclGetUniqueId", get_unique_id);
  find(handle, "ncclCommInitRankConfig", init);
  find(handle, "ncclAllGather", all_gather);
  find(handle, "ncclCommCuDevice", get_device);
  find(handle, "ncclCommGetAsyncError", get_async_error);
  find(handle, "ncclCommFinalize", finalize);
  find(handle, "ncclCommDestroy", destroy);
  find(handle, "ncclCommAbort", abort);
  find(handle, "ncclGetErrorString", get_error_string);
  find(handle, "ncclGetLastError", get_last_error);
  int version = 0;
  (void)get_version(&version);
  FOVEA_CHECK(version >= kOldest, kUnsupported, kFile, " must be version 2.18 or newer, got ",
              version / 10000, ".", version / 100 % 100);
}

std::string NcclLibrary::describe(const char* call, NcclResult result, NcclComm* comm) const {
  const char* const words = get_last_error(comm);
  return cat("NCCL: ", call, " failed: ", get_error_string(result),
             words != nullptr && *words != '\0' ? ": " : "", words != nullptr ? words : "");
}

}  // namespace fovea::ranks
