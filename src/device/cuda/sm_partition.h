#pragma once

#include "device/cuda/handles.h"

struct CUgreenCtx_st;  // of the driver's cuda.h

namespace fovea::cuda {

/// The SMs of one GPU that work may occupy, and streams whose work stays on them, replays of graphs
/// recorded there included. A part of a GPU is a green context of the driver, which keeps every
/// kernel within its SMs, whatever the grid. Thread-safe; outlives its streams.
class SmPartition {
 public:
  /// The SMs are those of GPU `device_index`, or, if a green context of that GPU is current to the
  /// calling thread, those of that context, which must outlive this object.
  /// @param budget at most so many of them, in a green context of its own, as many as the driver
  /// can set apart: on Hopper a multiple of 8. 0: all.
  /// @throws Error(kInvalidArgument) for a budget above the number of SMs, or below what can be set
  /// apart, Error(kUnsupported) if the driver has no green contexts, Error(kDevice).
  SmPartition(int device_index, int budget);
  ~SmPartition();
  SmPartition(const SmPartition&) = delete;
  SmPartition& operator=(const SmPartition&) = delete;

  [[nodiscard]] int device_index() const noexcept { return device_index_; }
  [[nodiscard]] int num_sms() const noexcept { return num_sms_; }
  /// A non-blocking stream. On the whole GPU it has the lowest priority, which is also CUDA's
  /// default, so that kernels of others may start first wherever SMs become free. In a green
  /// context it has the highest: what was set apart for it is not given to others first.
  [[nodiscard]] UniqueStream create_stream() const;

 private:
  int device_index_;
  int num_sms_ = 0;
  CUgreenCtx_st* context_ = nullptr;  // null: the whole GPU
  bool owns_context_ = false;
};

}  // namespace fovea::cuda
