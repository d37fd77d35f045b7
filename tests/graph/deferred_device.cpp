// Queues that run late, to find missing waits on a machine without a GPU.
#include "graph/deferred_device.h"

#include <cstdlib>
#include <cstring>

#include "core/check.h"

namespace fovea::test {

class DeferredStream::Recording final : public RecordedGraph {
 public:
  [[nodiscard]] std::size_t num_nodes() const noexcept override { return works.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept override { return 64 * works.size(); }
  std::vector<std::function<void()>> works;
};

void DeferredStream::submit(std::function<void()> work) {
  if (other_ != nullptr) {
    other_->submit(std::move(work));
    return;
  }
  if (recording_ != nullptr) {
    recording_->works.push_back(std::move(work));
    return;
  }
  work_->queue.push_back(std::move(work));
  ++work_->submitted;
  if (run_at_once_) work_->run_until(work_->submitted);
}

void DeferredStream::copy(std::byte* dst, const std::byte* src, std::size_t bytes) {
  submit([=] { std::memcpy(dst, src, bytes); });
}

void DeferredStream::fill_zero(std::byte* dst, std::size_t bytes) {
  submit([=] { std::memset(dst, 0, bytes); });
}

std::unique_ptr<RecordedGraph> DeferredStream::capture(const std::function<void()>& record) {
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

void DeferredStream::replay(const RecordedGraph& graph) {
  for (const auto& work : static_cast<const Recording&>(graph).works) submit(work);
}

void DeferredStream::wait_for(Stream& other) {
  auto& named = static_cast<DeferredStream&>(other);
  const std::shared_ptr<Work> work = (named.other_ != nullptr ? *named.other_ : named).work_;
  submit([work, until = work->submitted] { work->run_until(until); });
}

void DeferredStream::Work::run_until(std::size_t count) {
  while (done < count) {
    const std::function<void()> next = std::move(queue.front());
    queue.pop_front();
    ++done;
    next();
  }
}

namespace {

constexpr std::size_t kAlignment = 256;

Buffer allocate_counted(std::size_t bytes, std::size_t& counter) {
  const std::size_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;
  auto* const data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  FOVEA_CHECK(data != nullptr, kOutOfMemory, "test device: cannot allocate ", bytes, " bytes");
  std::memset(data, 0, rounded);
  counter += bytes;
  return {data, bytes,
          [](void* context, std::byte* memory, std::size_t size) noexcept {
            std::free(memory);
            *static_cast<std::size_t*>(context) -= size;
          },
          &counter};
}

}  // namespace

DeferredDevice::DeferredDevice(const Kernels& kernels, Schedule schedule)
    : kernels_(kernels), schedule_(schedule) {
  properties_.name = "deferred";
  properties_.host_memory = false;
}

void DeferredDevice::fail_if_due(std::size_t bytes) {
  FOVEA_CHECK(until_failure_ < 0 || until_failure_-- > 0, kOutOfMemory,
              "test device: no turn to allocate ", bytes, " bytes");
}

Buffer DeferredDevice::allocate(std::size_t bytes) {
  fail_if_due(bytes);
  FOVEA_CHECK(bytes <= limit_bytes_ && device_bytes_ <= limit_bytes_ - bytes, kOutOfMemory,
              "test device: cannot allocate ", bytes, " bytes");
  return allocate_counted(bytes, device_bytes_);
}

Buffer DeferredDevice::allocate_host(std::size_t bytes) {
  fail_if_due(bytes);
  return allocate_counted(bytes, host_bytes_);
}

std::unique_ptr<Stream> DeferredDevice::create_stream() {
  ++num_op_streams_;
  return std::make_unique<DeferredStream>(false, waits_);
}

std::unique_ptr<Stream> DeferredDevice::create_copy_stream() {
  return std::make_unique<DeferredStream>(schedule_ == Schedule::kCopyFirst, waits_);
}

}  // namespace fovea::test
