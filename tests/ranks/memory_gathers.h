#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "fovea/communicator.h"
#include "fovea/row_block.h"

namespace fovea::test {

/// Ranks whose gathers of device memory take host memory, as add_nccl() would for engines on GPUs:
/// an engine on the CPU takes the way of rows that stay on their device.
class MemoryGathers final : public Communicator {
 public:
  /// @param ranks must outlive this object. @param count of all_gather_on_device() on all ranks.
  MemoryGathers(Communicator& ranks, std::atomic<int>& count) : ranks_(ranks), count_(count) {}

  [[nodiscard]] int rank() const noexcept override { return ranks_.rank(); }
  [[nodiscard]] int size() const noexcept override { return ranks_.size(); }
  [[nodiscard]] std::chrono::milliseconds time_limit() const noexcept override {
    return ranks_.time_limit();
  }
  void all_gather_pieces(std::size_t bytes, const GatherPieces& pieces) override {
    ranks_.all_gather_pieces(bytes, pieces);
  }
  [[nodiscard]] std::optional<int> gather_device() const noexcept override {
    return RowBlock::kHost;
  }
  void all_gather_on_device(const void* mine, void* all, std::size_t bytes, void*) override {
    ++count_;
    ranks_.all_gather({static_cast<const std::byte*>(mine), bytes},
                      {static_cast<std::byte*>(all), bytes * static_cast<std::size_t>(size())});
  }
  void raise() noexcept override { ranks_.raise(); }
  [[nodiscard]] std::stop_token raised() const override { return ranks_.raised(); }
  [[nodiscard]] std::stop_token ended() const override { return ranks_.ended(); }
  void abort(const Error& error) override { ranks_.abort(error); }

 private:
  Communicator& ranks_;
  std::atomic<int>& count_;
};

}  // namespace fovea::test
