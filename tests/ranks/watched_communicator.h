#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "fovea/communicator.h"

namespace fovea::test {

/// A communicator that calls `watch(n)` in its n-th gather, from 0, before this rank's bytes are
/// there: the others wait for them.
class WatchedCommunicator final : public Communicator {
 public:
  WatchedCommunicator(std::unique_ptr<Communicator> ranks, std::function<void(int)> watch)
      : ranks_(std::move(ranks)), watch_(std::move(watch)) {}

  void all_gather_pieces(std::size_t bytes, const GatherPieces& pieces) override {
    const int number = gathers_++;
    ranks_->all_gather_pieces(bytes, {.fill =
                                          [&](std::size_t offset, std::span<std::byte> out) {
                                            watch_(number);
                                            pieces.fill(offset, out);
                                          },
                                      .take = pieces.take});
  }
  [[nodiscard]] int rank() const noexcept override { return ranks_->rank(); }
  [[nodiscard]] int size() const noexcept override { return ranks_->size(); }
  [[nodiscard]] std::chrono::milliseconds time_limit() const noexcept override {
    return ranks_->time_limit();
  }
  [[nodiscard]] std::optional<int> gather_device() const noexcept override {
    return ranks_->gather_device();
  }
  void all_gather_on_device(const void* mine, void* all, std::size_t bytes, void* stream) override {
    ranks_->all_gather_on_device(mine, all, bytes, stream);
  }
  void raise() noexcept override { ranks_->raise(); }
  [[nodiscard]] std::stop_token raised() const override { return ranks_->raised(); }
  [[nodiscard]] std::stop_token ended() const override { return ranks_->ended(); }
  void abort(const Error& error) override { ranks_->abort(error); }

 private:
  std::unique_ptr<Communicator> ranks_;
  std::function<void(int)> watch_;
  int gathers_ = 0;
};

}  // namespace fovea::test
