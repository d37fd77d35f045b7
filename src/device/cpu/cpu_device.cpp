// The CPU as a device: memory is host memory, a stream runs closures at once, a recorded graph is
// the list of closures. Replay runs the very functions that eager execution runs, with the live
// counts read anew, so the two give equal bits and no row of padding is ever computed.
#include "device/cpu/cpu_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/float_mode.h"
#include "core/thread_pool.h"
#include "fovea/tower/device/team.h"

namespace fovea {

class CpuStream::Recording final : public RecordedGraph {
 public:
  [[nodiscard]] std::size_t num_nodes() const noexcept override { return works.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept override {
    return works.capacity() * sizeof(works[0]);
  }
  std::vector<std::function<void(ThreadPool&)>> works;
};

void CpuStream::submit(std::function<void(ThreadPool&)> work) {
  if (recording_ != nullptr) {
    recording_->works.push_back(std::move(work));
  } else {
    const FloatModeScope scope(kTowerFloatMode);
    work(pool_);
  }
}

void CpuStream::copy(std::byte* dst, const std::byte* src, std::size_t bytes) {
  if (recording_ == nullptr) {  // no closure, so that a copy between replays allocates nothing
    std::memcpy(dst, src, bytes);
  } else {
    submit([=](ThreadPool&) { std::memcpy(dst, src, bytes); });
  }
}

void CpuStream::fill_zero(std::byte* dst, std::size_t bytes) {
  if (recording_ == nullptr) {
    std::memset(dst, 0, bytes);
  } else {
    submit([=](ThreadPool&) { std::memset(dst, 0, bytes); });
  }
}

std::unique_ptr<RecordedGraph> CpuStream::capture(const std::function<void()>& record) {
  FOVEA_CHECK(recording_ == nullptr, kInternal, "a capture is already under way on this stream");
  auto graph = std::make_unique<Recording>();
  recording_ = graph.get();
  try {
    record();
  } catch (...) {
    recording_ = nullptr;
    throw;
  }
  recording_ = nullptr;
  return graph;
}

void CpuStream::replay(const RecordedGraph& graph) {
  FOVEA_CHECK(recording_ == nullptr, kInternal, "replay inside a capture");
  const FloatModeScope scope(kTowerFloatMode);
  for (const auto& work : static_cast<const Recording&>(graph).works) work(pool_);
}

void CpuStream::wait_for(Stream&) {}  // whatever was submitted anywhere has already run

void CpuStream::meet(const Team& team) {
  FOVEA_CHECK(recording_ == nullptr, kInternal, "members of a team meet inside a capture");
  using Word = std::atomic_ref<std::uint32_t>;
  const auto flags_of = [&](int rank) -> TeamFlags& {
    return *team.flags[static_cast<std::size_t>(rank)];
  };
  TeamFlags& own = flags_of(team.rank);
  const std::uint32_t meeting = ++own.meetings;
  for (int member = 0; member < team.size; ++member) {
    Word(flags_of(member).arrived[static_cast<std::size_t>(team.rank)]).store(meeting);
  }
  constexpr int kYields = 1000;  // before a waiting thread sleeps between two looks
  constexpr std::chrono::microseconds kSleep{50};
  for (int member = 0; member < team.size; ++member) {
    const Word arrived(own.arrived[static_cast<std::size_t>(member)]);
    for (int looks = 0; static_cast<std::int32_t>(arrived.load() - meeting) < 0; ++looks) {
      // A member that went on would read memory that the others write.
      FOVEA_CHECK(Word(*team.is_lost).load() == 0, kUnavailable, kLostMember);
      if (looks < kYields) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kSleep);
      }
    }
  }
}

void CpuStream::synchronize() {
  FOVEA_CHECK(recording_ == nullptr, kInternal, "synchronize inside a capture");
}

namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Large memory is made of whole huge pages: a GEMM reads weights in panels that are pages apart,
/// and looking up small pages would cost it some 3 %.
struct Allocation {
  std::size_t alignment;
  std::size_t bytes;  ///< a multiple of the alignment, >= what was asked for
};

/// @return bytes 0 if the size overflows.
Allocation round_up(std::size_t bytes) noexcept {
  const std::size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kAlignment;
  const std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  return {alignment, rounded >= bytes ? rounded : 0};
}

/// The processor's marketing name, for people; of an ARM, which has none there, the numbers of its
/// maker and its design; "unknown processor" where the system says neither.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string maker;
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU part") && !maker.empty())
      return cat("ARM, implementer ", maker, ", part ", value);
    if (line.starts_with("CPU implementer")) maker = std::move(value);
  }
  return "unknown processor";
}

class CpuDevice final : public Device {
 public:
  CpuDevice(int num_threads, const Kernels& kernels)
      : pool_(num_threads == 0 ? available_cpus() : num_threads), kernels_(kernels) {
    properties_.name = "cpu";
    properties_.description = processor_name();
    properties_.parallelism = pool_.size();
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page_bytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_bytes > 0) {
      properties_.total_bytes =
          static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes);
    }
  }

  [[nodiscard]] const DeviceProperties& properties() const noexcept override { return properties_; }
  [[nodiscard]] const Kernels& kernels() const noexcept override { return kernels_; }

  [[nodiscard]] Buffer allocate(std::size_t bytes) override {
    const auto [alignment, rounded] = round_up(bytes);
    auto* const data =
        rounded == 0 ? nullptr : static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
    FOVEA_CHECK(data != nullptr, kOutOfMemory, "cpu: cannot allocate ", bytes, " bytes");
    if (alignment == kHugePage) (void)madvise(data, rounded, MADV_HUGEPAGE);  // a wish
    std::memset(data, 0, rounded);
    allocated_ += rounded;
    return {data, bytes, &CpuDevice::release, this};
  }

  [[nodiscard]] Buffer allocate_host(std::size_t bytes) override { return allocate(bytes); }
  [[nodiscard]] std::unique_ptr<Stream> create_stream() override {
    return std::make_unique<CpuStream>(pool_);
  }
  [[nodiscard]] std::size_t allocated_bytes() const noexcept override { return allocated_; }
  [[nodiscard]] std::unique_ptr<Stream> adopt_stream(int gpu, void*) override {
    throw Error(ErrorCode::kInvalidArgument, cat("a stream of cuda:", gpu, ", but this is a CPU"));
  }
  [[nodiscard]] bool reach(const Device& other) override { return other.properties().host_memory; }
  [[nodiscard]] bool is_memory_of(const void*, int gpu) const override { return gpu < 0; }
  [[nodiscard]] std::int64_t host_waits() const noexcept override { return 0; }

 private:
  static void release(void* context, std::byte* data, std::size_t bytes) noexcept {
    std::free(data);
    static_cast<CpuDevice*>(context)->allocated_ -= round_up(bytes).bytes;
  }

  DeviceProperties properties_;
  ThreadPool pool_;
  const Kernels& kernels_;
  std::atomic<std::size_t> allocated_{0};
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(int num_threads, const Kernels& kernels) {
  FOVEA_CHECK(num_threads >= 0, kInvalidArgument, "number of threads must be >= 0, got ",
              num_threads);
  return std::make_unique<CpuDevice>(num_threads, kernels);
}

}  // namespace fovea
