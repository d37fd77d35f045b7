// Data sets of the hub are parquet files, which a script converts; this is where it left them.
#include "bench/mm_processor/hub_dataset.h"

#include <algorithm>
#include <filesystem>

#include "flags/flags.h"
#include "fovea/error.h"
#include "fovea/hub.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

/// "lmarena-ai--VisionArena-Chat".
std::string folder_name(const HubDataset& dataset) {
  std::string text = dataset.hf_name.empty() ? dataset.path : dataset.hf_name;
  const auto is_slash = [](char c) { return c == '/'; };
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), is_slash));
  text.erase(std::find_if_not(text.rbegin(), text.rend(), is_slash).base(), text.end());
  for (std::size_t at = text.find('/'); at != std::string::npos; at = text.find('/', at + 2)) {
    text.replace(at, 1, "--");
  }
  return text;
}

std::string convert_command(const HubDataset& dataset, const HubRequests& wanted) {
  std::string command = "python3 tools/convert_dataset.py " + dataset.path + " --num-prompts " +
                        std::to_string(wanted.num_prompts) + " --num-warmups " +
                        std::to_string(wanted.num_warmups) + " --seed " +
                        std::to_string(wanted.seed);
  if (!dataset.hf_name.empty()) command += " --hf-name " + dataset.hf_name;
  if (!dataset.subset.empty()) command += " --hf-subset " + dataset.subset;
  if (dataset.split != HubDataset{}.split) command += " --hf-split " + dataset.split;
  return command;
}

/// Says what is there of the data set, and what to run.
std::string remedy(const HubDataset& dataset, const HubRequests& wanted) {
  const std::string convert = "`" + convert_command(dataset, wanted) + "`";
  std::error_code ignored;
  if (fs::is_directory(dataset.path, ignored)) return "run " + convert;
  if (!is_hub_name(dataset.path)) {
    return "expected <organisation>/<name> or a directory that exists";
  }
  if (const auto snapshot = find_on_disk(dataset.path, kMainRevision, HubKind::kDataset)) {
    return "the hub cache has it in " + *snapshot + "; run " + convert;
  }
  const std::string cache = hub_cache_dir();
  return "it is not in the hub cache " + (cache.empty() ? "(no HF_HOME, no HOME)" : cache) +
         "; run `hf download " + dataset.path + " --repo-type dataset`, then " + convert;
}

}  // namespace

std::string converted_file(const HubDataset& dataset, std::uint64_t seed) {
  const std::string cache = user_cache_dir();
  if (cache.empty()) {
    throw Error(ErrorCode::kNotFound,
                dataset.path + ": expected XDG_CACHE_HOME or HOME, below which requests are kept");
  }
  const std::string part =
      dataset.subset.empty() ? dataset.split : dataset.subset + "--" + dataset.split;
  return fs::path(cache) / "datasets" / folder_name(dataset) / part /
         ("seed-" + std::to_string(seed) + ".jsonl");
}

std::vector<MmRequest> hub_requests(const HubDataset& dataset, const HubRequests& wanted,
                                    std::uint64_t seed, std::int64_t count) {
  if (count == 0) return {};
  const std::string file = converted_file(dataset, seed);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    throw Error(ErrorCode::kNotFound, dataset.path + " has not been converted to " + file + "; " +
                                          remedy(dataset, wanted));
  }
  std::vector<MmRequest> requests = jsonl_requests(file);
  if (std::ssize(requests) < count) {
    throw Error(ErrorCode::kNotFound, file + " holds " + std::to_string(requests.size()) +
                                          " requests, expected " + std::to_string(count) + "; " +
                                          remedy(dataset, wanted));
  }
  requests.resize(static_cast<std::size_t>(count));
  return requests;
}

}  // namespace fovea::cli
