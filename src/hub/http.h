#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::hub {

/// A request, by GET or HEAD.
struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  ///< "Name: value"; Authorization reaches no other host
  bool is_head = false;
  bool follows = false;  ///< redirects, of which none leads from https to http
};

/// The head of a reply: the last one, where redirects are followed.
struct HttpHead {
  int status = 0;
  std::map<std::string, std::string, std::less<>> headers;  ///< names in small letters

  /// The value of a header, empty if there is none. @param name in small letters.
  [[nodiscard]] std::string header(std::string_view name) const;
};

/// What is told of a reply, in this order, on the calling thread.
struct HttpEvents {
  /// @return whether the body is wanted.
  std::function<bool(const HttpHead& head)> on_head;
  std::function<void(std::span<const std::byte> bytes)> on_body;
};

/// How a request has ended.
struct HttpEnd {
  HttpHead head;            ///< its status is 0 if there was no reply
  std::string problem;      ///< why the connection failed, in words; empty: the reply is complete
  bool is_lasting = false;  ///< another try would fail in the same way
};

/// Sends requests over connections that are used again. Proxies are those of the environment
/// (https_proxy, no_proxy), as are certificates that SSL_CERT_FILE or SSL_CERT_DIR name. A
/// connection that moves less than a byte a second for a minute is ended.
class HttpSession {
 public:
  /// @throws Error(kOutOfMemory); Error(kUnsupported) in builds without libcurl.
  HttpSession();
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  /// Sends a request and waits for the end of the reply. @throws what events throw, and as
  /// check_interrupt().
  HttpEnd perform(const HttpRequest& request, const HttpEvents& events);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fovea::hub
