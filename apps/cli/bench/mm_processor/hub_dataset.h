#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/mm_processor/workload.h"

namespace fovea::cli {

/// A data set of the Hugging Face hub, as flags name it.
struct HubDataset {
  std::string path;     ///< "<organisation>/<name>", or a directory
  std::string hf_name;  ///< name under which a directory was converted; empty: `path`
  std::string subset;   ///< empty: the only one
  std::string split = "train";
};

/// Number of requests that count, which are drawn with `seed`, and of those before them, drawn with
/// the next seed.
struct HubRequests {
  std::int64_t num_prompts = 0;
  std::int64_t num_warmups = 0;
  std::uint64_t seed = 0;
};

/// Returns the file in which tools/convert_dataset.py puts requests of this seed.
/// @throws Error(kNotFound) without a directory for caches.
[[nodiscard]] std::string converted_file(const HubDataset& dataset, std::uint64_t seed);

/// The first `count` requests of converted_file(dataset, seed), one of the two seeds of `wanted`.
/// @throws Error(kNotFound) if the file is not there or holds fewer, with the commands that make
/// it; as jsonl_requests().
[[nodiscard]] std::vector<MmRequest> hub_requests(const HubDataset& dataset,
                                                  const HubRequests& wanted, std::uint64_t seed,
                                                  std::int64_t count);

}  // namespace fovea::cli
