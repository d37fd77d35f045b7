#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ops/cuda/attention/work.h"

namespace fovea::cuda {

/// cuDNN's attention over sequences packed in one tensor: offsets and lengths are read on the
/// device, so a recorded graph works for any of them. A plan is built for each class of sizes
/// (number and length of sequences rounded up to powers of two) at its first use, which takes some
/// 40 ms, and about a second for the first. Run the work once before recording it. Thread-safe.
class CudnnAttention {
 public:
  /// @throws Error(kUnsupported) if cuDNN is missing or too old, or this build has no support.
  explicit CudnnAttention(int device_index);
  ~CudnnAttention();

  /// The library with its version, for example "cuDNN 9.15.0". @throws as the constructor.
  [[nodiscard]] static std::string software();

  /// Whether cuDNN can do this work: a positive scale, and a qkv aligned to 16 bytes.
  [[nodiscard]] static bool accepts(const AttentionWork& work);

  /// Bytes of work.workspace.
  [[nodiscard]] std::size_t workspace_bytes(const AttentionWork& work) const;

  /// Queries and keys must be rotated already. Rows of `out` that no sequence covers become zeros.
  /// Asynchronous; safe to capture.
  void run(CudaStream& stream, const AttentionWork& work, int num_sms) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fovea::cuda
