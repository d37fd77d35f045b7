// Requests by libcurl. Source: its manual pages, CURLOPT_*(3).
#include "hub/http.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>

#include "core/interrupt.h"
#include "libcurl/handles.h"

namespace fovea::hub {
namespace {

constexpr long kConnectSeconds = 10;
constexpr long kSlowestBytesPerSecond = 1;
constexpr long kLongestSilenceSeconds = 60;
constexpr long kMaxRedirects = 5;
constexpr std::size_t kMaxHeadBytes = std::size_t{64} << 10;

/// Adds a line of a head; what is no header is left out.
void add_header(HttpHead& head, std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const std::string_view value = line.substr(colon + 1);
  head.headers[std::move(name)] =
      value.substr(std::min(value.find_first_not_of(" \t"), value.size()));
}

/// Whether trust or a redirect failed, which another try does not change.
bool is_lasting(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_UNSUPPORTED_PROTOCOL ||
         code == CURLE_URL_MALFORMAT;
}

std::string problem_of(CURLcode code) {
  if (code != CURLE_UNSUPPORTED_PROTOCOL) return curl_easy_strerror(code);
  return "it leads to an address that is not followed: from https only https is";
}

}  // namespace

std::string HttpHead::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

/// The handle, and the request that it is at.
struct HttpSession::Impl {
  curl::Easy easy;
  const HttpEvents* events = nullptr;
  bool follows = false;
  HttpHead head;
  std::size_t head_bytes = 0;
  bool is_unwanted = false;
  std::exception_ptr failure;

  void prepare(const HttpRequest& request, curl_slist* headers) {
    curl_easy_reset(easy.get());  // keeps connections
    const char* const protocols = request.url.starts_with("https:") ? "https" : "http,https";
    easy.set_common();
    easy.set(CURLOPT_URL, request.url.c_str());
    easy.set(CURLOPT_PROTOCOLS_STR, protocols);
    easy.set(CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    easy.set(CURLOPT_FOLLOWLOCATION, request.follows ? 1L : 0L);
    easy.set(CURLOPT_MAXREDIRS, kMaxRedirects);
    easy.set(CURLOPT_NOBODY, request.is_head ? 1L : 0L);
    easy.set(CURLOPT_HTTPHEADER, headers);
    easy.set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    easy.set(CURLOPT_LOW_SPEED_LIMIT, kSlowestBytesPerSecond);
    easy.set(CURLOPT_LOW_SPEED_TIME, kLongestSilenceSeconds);
    if (const char* const file = secure_getenv("SSL_CERT_FILE")) easy.set(CURLOPT_CAINFO, file);
    if (const char* const folder = secure_getenv("SSL_CERT_DIR")) easy.set(CURLOPT_CAPATH, folder);
    easy.set(CURLOPT_HEADERFUNCTION, &Impl::take_header);
    easy.set(CURLOPT_HEADERDATA, this);
    easy.set(CURLOPT_WRITEFUNCTION, &Impl::take_body);
    easy.set(CURLOPT_WRITEDATA, this);
    easy.set(CURLOPT_XFERINFOFUNCTION, &Impl::look_around);
    easy.set(CURLOPT_XFERINFODATA, this);
    easy.set(CURLOPT_NOPROGRESS, 0L);
  }

  /// Runs a step of a callback; what it throws ends the request.
  template <class Step>
  bool guarded(Step&& step) {
    try {
      return step();
    } catch (...) {
      failure = std::current_exception();
      return false;
    }
  }

  // Callbacks of libcurl.

  static std::size_t take_header(const char* data, std::size_t /*one*/, std::size_t size,
                                 void* self) {
    auto& impl = *static_cast<Impl*>(self);
    return impl.guarded([&] { return impl.add_line({data, size}); }) ? size : 0;
  }
  static std::size_t take_body(const char* data, std::size_t /*one*/, std::size_t size,
                               void* self) {
    auto& impl = *static_cast<Impl*>(self);
    return impl.guarded([&] {
      if (!impl.is_redirect()) impl.events->on_body(std::as_bytes(std::span(data, size)));
      return true;
    })
               ? size
               : 0;
  }
  static int look_around(void* self, curl_off_t /*to_get*/, curl_off_t /*got*/,
                         curl_off_t /*to_put*/, curl_off_t /*put*/) {
    auto& impl = *static_cast<Impl*>(self);
    return impl.guarded([] { return check_interrupt(), true; }) ? 0 : 1;
  }

  bool add_line(std::string_view line) {
    head_bytes += line.size();
    if (head_bytes > kMaxHeadBytes) return false;
    line = curl::without_break(line);
    if (line.starts_with("HTTP/")) {
      head = {};  // of a redirect or an interim answer, if there was one
    } else if (!line.empty()) {
      add_header(head, line);
    } else {
      return end_head();
    }
    return true;
  }

  bool end_head() {
    head.status = easy.status();
    constexpr int kFirstFinal = 200;
    if (head.status < kFirstFinal || is_redirect()) return true;
    is_unwanted = !events->on_head(head);
    return !is_unwanted;
  }

  /// Whether the reply leads on, so that its body is of no interest.
  [[nodiscard]] bool is_redirect() const {
    constexpr int kFirst = 300;
    constexpr int kEnd = 400;
    return follows && head.status >= kFirst && head.status < kEnd &&
           head.headers.contains("location");
  }
};

HttpSession::HttpSession() : impl_(std::make_unique<Impl>()) {}
HttpSession::~HttpSession() = default;

HttpEnd HttpSession::perform(const HttpRequest& request, const HttpEvents& events) {
  curl::Lines headers("Accept-Encoding: identity");
  for (const std::string& line : request.headers) headers.append(line);
  impl_->events = &events;
  impl_->follows = request.follows;
  impl_->head = {};
  impl_->head_bytes = 0;
  impl_->is_unwanted = false;
  impl_->failure = nullptr;
  impl_->prepare(request, headers.get());
  const CURLcode code = curl_easy_perform(impl_->easy.get());
  if (impl_->failure) std::rethrow_exception(impl_->failure);
  const bool is_complete = code == CURLE_OK || impl_->is_unwanted;
  return {.head = std::move(impl_->head),
          .problem = is_complete ? "" : problem_of(code),
          .is_lasting = !is_complete && is_lasting(code)};
}

}  // namespace fovea::hub
