// Any text as a file of requests: what is accepted names one file at least per request.
#include "bench/mm_processor/workload.h"
#include "fuzz.h"
#include "support/memory_file.h"

using fovea::cli::MmRequest;
using fovea::test::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fovea::test::MemoryFile file;
  const std::string_view text = fovea::test::text_of(data, size);
  if (text.find("video") != std::string_view::npos && text.find_first_of("/.") != text.npos)
    return -1;  // would list directories of this machine
  file.write(text);
  std::vector<MmRequest> requests;
  if (!fovea::test::accepts([&] { requests = fovea::cli::jsonl_requests(file.path()); })) return 0;
  require(!requests.empty());
  for (const MmRequest& request : requests) {
    require(!request.files.empty() && request.random.empty());
    for (const fovea::MediaItem& item : request.files) require(!item.paths().empty());
  }
  return 0;
}
