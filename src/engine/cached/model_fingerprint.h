#pragma once

#include <span>
#include <string>

#include "checkpoint/hf_config.h"
#include "core/thread_pool.h"
#include "fovea/options.h"
#include "fovea/reports.h"
#include "fovea/tower/checkpoint/weight_source.h"
#include "fovea/tower/core/dtype.h"

namespace fovea {

/// Names what a tower computes: a SHA-256 over the JSON files of the model, the library of a tower
/// that is not Fovea's, and the names, dtypes,
/// shapes and hashes of the tensors it reads, as hexadecimal digits, then ";dtype=<compute>" and
/// ";quant=<quantization>". Reads all these tensors, on the threads of `pool`. Dummy weights are
/// named by their seed.
/// @param tensors of the tower, in any order. @param compute what GEMMs multiply that are not
/// quantized, which follows from `options` and the device.
/// @throws as WeightSource::tensor; Error(kIo).
[[nodiscard]] std::string model_fingerprint(const checkpoint::HfConfig& files,
                                            const checkpoint::WeightSource& weights,
                                            std::span<const TensorReport> tensors, DType compute,
                                            const EngineOptions& options, ThreadPool& pool);

}  // namespace fovea
