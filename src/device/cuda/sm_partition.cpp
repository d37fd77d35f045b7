// Green contexts of the driver, whose functions are looked up at run time: an older one has none.
#include "device/cuda/sm_partition.h"

#include <cudaTypedefs.h>

#include "core/check.h"

namespace fovea::cuda {

namespace {

/// A function of the driver; null if it is older than `version` of its interface.
template <class Function>
Function find(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  FOVEA_CUDA_CHECK(
      cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found));
  return found == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(function) : nullptr;
}

/// Calls a function of the driver that has to be there.
template <class Function, class... Arguments>
void call(const char* name, unsigned version, Arguments... arguments) {
  const auto function = find<Function>(name, version);
  FOVEA_CHECK(function != nullptr, kUnsupported,
              "sm_budget: the NVIDIA driver has no green contexts, it is older than CUDA 12.5");
  const CUresult result = function(arguments...);
  FOVEA_CHECK(result == CUDA_SUCCESS, kDevice, name, " failed with ", static_cast<int>(result));
}

constexpr unsigned kGreen = 12040;         // the first interface with green contexts,
constexpr unsigned kGreenStreams = 12050;  // and with streams of them

/// The green context that is current to the calling thread on its current GPU; null: none.
CUgreenCtx current_context() {
  const auto get = find<PFN_cuStreamGetGreenCtx_v12040>("cuStreamGetGreenCtx", kGreen);
  CUgreenCtx context = nullptr;
  // Without any context the driver refuses the question.
  if (get == nullptr || get(CU_STREAM_LEGACY, &context) != CUDA_SUCCESS) return nullptr;
  return context;
}

CUdevResource sms_of(CUgreenCtx context) {
  CUdevResource sms{};
  call<PFN_cuGreenCtxGetDevResource_v12040>("cuGreenCtxGetDevResource", kGreen, context, &sms,
                                            CU_DEV_RESOURCE_TYPE_SM);
  return sms;
}

CUdevResource sms_of(CUdevice device) {
  CUdevResource sms{};
  call<PFN_cuDeviceGetDevResource_v12040>("cuDeviceGetDevResource", kGreen, device, &sms,
                                          CU_DEV_RESOURCE_TYPE_SM);
  return sms;
}

/// A context with at most `budget` of the SMs.
CUgreenCtx make_context(CUdevice device, const CUdevResource& all, int budget) {
  const unsigned step = all.sm.smCoscheduledAlignment;
  const unsigned count = static_cast<unsigned>(budget) / step * step;
  FOVEA_CHECK(count >= all.sm.minSmPartitionSize, kInvalidArgument, "sm_budget: cuda:", device,
              " can set apart ", all.sm.minSmPartitionSize, " or more SMs, in steps of ", step,
              ", got ", budget);
  CUdevResource part{};
  unsigned groups = 1;
  call<PFN_cuDevSmResourceSplitByCount_v12040>("cuDevSmResourceSplitByCount", kGreen, &part,
                                               &groups, &all, nullptr, 0u, count);
  FOVEA_CHECK(groups == 1 && part.sm.smCount <= static_cast<unsigned>(budget), kUnsupported,
              "sm_budget: cuda:", device, " cannot set apart ", count, " of its ", all.sm.smCount,
              " SMs");
  CUdevResourceDesc description = nullptr;
  call<PFN_cuDevResourceGenerateDesc_v12040>("cuDevResourceGenerateDesc", kGreen, &description,
                                             &part, 1u);
  CUgreenCtx context = nullptr;
  call<PFN_cuGreenCtxCreate_v12040>("cuGreenCtxCreate", kGreen, &context, description, device,
                                    static_cast<unsigned>(CU_GREEN_CTX_DEFAULT_STREAM));
  return context;
}

}  // namespace

SmPartition::SmPartition(int device_index, int budget) : device_index_(device_index) {
  const DeviceGuard guard(device_index);
  FOVEA_CUDA_CHECK(cudaDeviceGetAttribute(&num_sms_, cudaDevAttrMultiProcessorCount, device_index));
  context_ = current_context();
  if (context_ != nullptr) num_sms_ = static_cast<int>(sms_of(context_).sm.smCount);
  FOVEA_CHECK(budget >= 0 && budget <= num_sms_, kInvalidArgument, "sm_budget: cuda:", device_index,
              " has ", num_sms_, " SMs for the tower, got ", budget);
  if (budget == 0 || budget == num_sms_) return;
  const CUdevResource all = context_ != nullptr ? sms_of(context_) : sms_of(device_index);
  context_ = make_context(device_index, all, budget);
  owns_context_ = true;
  num_sms_ = static_cast<int>(sms_of(context_).sm.smCount);
}

SmPartition::~SmPartition() {
  if (!owns_context_) return;
  if (const auto destroy = find<PFN_cuGreenCtxDestroy_v12040>("cuGreenCtxDestroy", kGreen))
    (void)destroy(context_);
}

UniqueStream SmPartition::create_stream() const {
  const DeviceGuard guard(device_index_);
  int lowest = 0;
  int highest = 0;
  FOVEA_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  cudaStream_t stream = nullptr;
  if (context_ == nullptr) {
    FOVEA_CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, lowest));
  } else {
    call<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate", kGreenStreams, &stream,
                                            context_, static_cast<unsigned>(CU_STREAM_NON_BLOCKING),
                                            highest);
  }
  return UniqueStream(stream);
}

}  // namespace fovea::cuda
