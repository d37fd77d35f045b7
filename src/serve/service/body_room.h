#pragma once

#include <cstddef>
#include <memory>

#include "core/budget.h"
#include "serve/http/connections.h"

namespace fovea::serve {

/// Room for one body, which grows with it and is given back when this goes. For one thread at a
/// time.
///
/// A client's bodies together never take more than they leave for everybody else: half of the
/// budget for the only client, a third of it for each of two. So a client that has nothing yet
/// finds room, however much one client sends. Source: Choudhury and Hahne, "Dynamic queue length
/// thresholds for shared-memory packet switches", 1998, with alpha = 1.
class BodyRoom {
 public:
  /// @param budget must outlive this. @param client null: what counts is the budget alone.
  BodyRoom(Budget& budget, std::shared_ptr<Client> client) noexcept;
  ~BodyRoom();
  BodyRoom(const BodyRoom&) = delete;
  BodyRoom& operator=(const BodyRoom&) = delete;

  /// The largest body that a client may ever have.
  [[nodiscard]] static std::size_t largest(const Budget& budget) noexcept {
    return budget.capacity() / 2;
  }
  /// Room for so many bytes in all. @return whether there is; if not, nothing has changed.
  [[nodiscard]] bool grow(std::size_t bytes) noexcept;

 private:
  [[nodiscard]] bool take_share(std::size_t more) noexcept;

  Budget& budget_;
  std::shared_ptr<Client> client_;
  Budget::Ticket held_;
};

}  // namespace fovea::serve
