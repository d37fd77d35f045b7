// A server that lends rows as `fovea serve` does, of memory that no other process can map: what
// asking for rows takes, without a GPU. It says its address on the first line, and ends with its
// input.
//
//   fovea_bench_lending_server [IMAGES [UNIX_SOCKET]]
//
// Rows are those of images of 440 patches, for keys picture-0, picture-1, ...
// bench/peers/rows_between_processes.py --lender asks for them.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "ops/cpu/cpu_kernels.h"
#include "rows/row_lender.h"
#include "serve/http/server.h"
#include "serve/routes/vllm/routes.h"
#include "serve/service/workers.h"

namespace fovea::serve {
namespace {

constexpr std::int64_t kRows = 110;
constexpr std::int64_t kWidth = 8192;
constexpr std::int64_t kBytes = kRows * kWidth * 2;  // bfloat16

/// An encoder cache with rows of zeros, and the keys under which they were published.
struct Rows {
  explicit Rows(int images) : cache(devices, images * kBytes, 0) {
    const std::vector<std::byte> zeros(kBytes);
    for (int i = 0; i < images; ++i) {
      Embedding item;
      item.rows = kRows;
      item.width = kWidth;
      item.cache_key = "key " + std::to_string(i);
      RowCache::Claim claim = cache.claim(item.cache_key);
      claim.describe(item);
      claim.store(*device, *queue,
                  {const_cast<std::byte*>(zeros.data()), DType::kBF16, {kRows, kWidth}});
      (void)store.put("picture-" + std::to_string(i), std::make_shared<const Embedding>(item));
    }
    queue->synchronize();
  }

  std::unique_ptr<Kernels> kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device = make_cpu_device(1, *kernels);
  std::vector<Device*> devices{device.get()};
  std::unique_ptr<Stream> queue = device->create_stream();
  RowCache cache;
  RowStore store{std::int64_t{1} << 20};
  RowLender lender{cache, [](const Device&, const Buffer& memory) {
                     return DeviceMemoryName{.gpu = "GPU-00000000-0000-0000-0000-000000000000",
                                             .handle = {1, 2, 3},
                                             .bytes = memory.bytes()};
                   }};
};

void serve_until_input_ends(int images, const std::string& socket) {
  Rows rows(images);
  Workers workers(2);
  const auto run_task = [&workers](auto task) { workers.run(std::move(task)); };
  Router router;
  router.add(lend_route({.store = rows.store,
                         .lend = [&rows](auto keys) { return rows.lender.lend(keys); },
                         .try_lend = [&rows](auto keys) { return rows.lender.try_lend(keys); },
                         .run_task = run_task},
                        {.max_at_once = 4, .max_keys = static_cast<std::size_t>(images)}));
  HttpOptions options;
  options.port = 0;
  options.unix_socket = socket;
  Server server(options, {.router = &router,
                          .gate = [](const auto&, const auto&) { return Permit{}; },
                          .observer = {},
                          .run_task = run_task});
  server.start();
  std::cout << server.address() << std::endl;
  while (std::cin.get() != std::char_traits<char>::eof()) {
  }
}

}  // namespace
}  // namespace fovea::serve

int main(int argc, char** argv) {
  fovea::serve::serve_until_input_ends(argc > 1 ? std::stoi(argv[1]) : 20, argc > 2 ? argv[2] : "");
}
