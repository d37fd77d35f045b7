#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <string>

// The part of NCCL's C interface that ranks use, declared here so that a build needs none of NCCL.
// Source: NCCL 2.28.9, nccl.h; what is used has been the same since 2.18.

namespace fovea::ranks {

struct NcclComm;  ///< ncclComm_t points to it

/// ncclUniqueId: rank 0 makes one for every group.
struct NcclUniqueId {
  std::array<char, 128> bytes;
};

/// ncclResult_t, which has many names for failures.
enum class NcclResult : int { kSuccess = 0, kInProgress = 7 };

/// ncclConfig_t as of version 2.18. Later versions take what an older size and version say; the
/// padding at its end is a member of later ones, so it is "undefined", too.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;  ///< calls return at once
  int cga_cluster_size = INT_MIN;
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
  int padding = INT_MIN;
};

/// The functions of NCCL. The library (200 MB) is loaded when the first of these objects is made,
/// and stays.
struct NcclLibrary {
  /// Sets NCCL_NVLS_ENABLE=0 first: NVLink multicast can put GPUs that others share out of service.
  /// @throws Error(kUnsupported) with the file and the reason if NCCL is missing or too old.
  NcclLibrary();

  /// Bytes as an ncclDataType_t.
  static constexpr int kBytes = 0;

  int (*get_version)(int* version);
  NcclResult (*get_unique_id)(NcclUniqueId* id);
  NcclResult (*init)(NcclComm** comm, int size, NcclUniqueId id, int rank, NcclConfig* config);
  NcclResult (*all_gather)(const void* mine, void* all, std::size_t count, int type, NcclComm* comm,
                           void* stream);
  NcclResult (*get_device)(const NcclComm* comm, int* gpu);
  NcclResult (*get_async_error)(NcclComm* comm, NcclResult* result);
  NcclResult (*finalize)(NcclComm* comm);
  NcclResult (*destroy)(NcclComm* comm);
  NcclResult (*abort)(NcclComm* comm);
  const char* (*get_error_string)(NcclResult result);
  const char* (*get_last_error)(NcclComm* comm);

  /// "NCCL: <call> failed: <NCCL's words>".
  [[nodiscard]] std::string describe(const char* call, NcclResult result, NcclComm* comm) const;
};

}  // namespace fovea::ranks
