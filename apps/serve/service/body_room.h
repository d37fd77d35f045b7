#pragma once

#include <cstdint>
#include <memory>

#include "serve/http/clients.h"
#include "serve/service/memory_budget.h"

namespace fovea::serve {

/// Room for one body, which grows with it and is given back when this goes. For one thread at a
/// time.
///
/// A client's bodies together never take more than they leave for everybody else: half of the
/// budget for the only client, a third of it for each of two. So whoever has nothing yet finds
/// room, however much one client sends. Source: Choudhury and Hahne, "Dynamic queue length
/// thresholds for shared-memory packet switches", 1998, with alpha = 1.
class BodyRoom {
 public:
  /// @param budget must outlive this. @param client null: what counts is the budget alone.
  BodyRoom(MemoryBudget& budget, std::shared_ptr<Client> client) noexcept;
  ~BodyRoom();
  BodyRoom(const BodyRoom&) = delete;
  BodyRoom& operator=(const BodyRoom&) = delete;

  /// The largest body that a client may ever have.
  [[nodiscard]] static std::int64_t largest(const MemoryBudget& budget) noexcept {
    return budget.capacity() / 2;
  }
  /// Room for so many bytes in all. @return whether there is; if not, nothing has changed.
  [[nodiscard]] bool grow(std::int64_t bytes) noexcept;

 private:
  [[nodiscard]] bool take_share(std::int64_t more) noexcept;

  MemoryBudget& budget_;
  std::shared_ptr<Client> client_;
  std::int64_t held_ = 0;
};

}  // namespace fovea::serve
