#pragma once

#include <cstdint>

#include "ops/cuda/attention/work.h"

namespace fovea::cuda {

/// The sequences in cuDNN's form: lengths, and offsets in elements. Sequences that are not live
/// have length 0 and begin where the last one ends.
struct AttentionOffsets {
  std::int32_t* lengths;  ///< [num_seqs]
  std::int32_t* qkv;      ///< [num_seqs + 1], first row times elements of a row of qkv
  std::int32_t* out;      ///< [num_seqs + 1], first row times elements of a row of out
  int num_seqs;           ///< at least work.max_seqs
};

/// Fills the offsets on the device, and zeros the rows of work.out that no sequence covers.
void launch_attention_offsets(CudaStream& stream, const AttentionWork& work,
                              const AttentionOffsets& offsets, int num_sms);

}  // namespace fovea::cuda
