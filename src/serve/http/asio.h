#pragma once

// Asio for the sources of this folder. Asio 1.74 uses <utility> without including it; clang 14
// needs BOOST_ASIO_HAS_CO_AWAIT (CMakeLists.txt).
#include <utility>

// In this order.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <new>
#include <thread>

namespace fovea::serve {

namespace asio = boost::asio;

/// A connection over TCP or a unix socket.
using Socket = asio::generic::stream_protocol::socket;

template <typename Result>
using Awaitable = asio::awaitable<Result>;

/// Posts a task that must not be lost, as when a server stops: without memory for it, it tries
/// again until others have given some back. From any thread but that of the context.
template <typename Task>
void post_surely(asio::io_context& context, const Task& task) noexcept {
  constexpr std::chrono::milliseconds kPause{1};
  for (;;) {
    try {
      asio::post(context, task);
      return;
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

}  // namespace fovea::serve
