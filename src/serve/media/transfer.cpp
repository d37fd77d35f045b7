#include "serve/media/transfer.h"

#include <sys/socket.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>

#include "libcurl/handles.h"
#include "serve/media/fetch_headers.h"

namespace fovea::serve {
namespace {

constexpr int kOk = 200;
constexpr std::size_t kMaxHeaderBytes = std::size_t{64} << 10;
/// Bytes of a body that are asked for when it begins.
constexpr std::size_t kFirstRoom = std::size_t{256} << 10;
/// Longest wait for the network between two looks at the clock.
constexpr std::chrono::milliseconds kLongestPoll{1000};

std::string taken(char* text) {
  const std::unique_ptr<char, decltype(&curl_free)> owner(text, curl_free);
  return text;
}

std::string bracketed(const Address& address) {
  return address.is_v6 ? "[" + address.text() + "]" : address.text();
}

/// Brackets, and addresses separated by commas. Source: CURLOPT_RESOLVE(3).
std::string resolve_entry(const Url& url, const std::vector<Address>& addresses) {
  std::string entry = url.host + ":" + std::to_string(url.port) + ":";
  for (const Address& address : addresses) {
    if (!entry.ends_with(':')) entry += ',';
    entry += bracketed(address);
  }
  return entry;
}

void append(curl::Lines& lines, const Headers& headers) {
  for (const Header& header : headers) lines.append(header.name + ": " + header.value);
}

/// One transfer with its handles.
class Getter {
 public:
  explicit Getter(const Transfer& transfer)
      : transfer_(transfer), headers_("Accept-Encoding: identity") {
    append(headers_, transfer.headers);
    set_target();
    set_limits();
    set_callbacks();
    curl_multi_add_handle(multi_.get(), easy_.get());
  }
  ~Getter() { curl_multi_remove_handle(multi_.get(), easy_.get()); }
  Getter(const Getter&) = delete;
  Getter& operator=(const Getter&) = delete;

  TransferReply run() {
    const std::stop_callback wake(transfer_.stop, [this] { curl_multi_wakeup(multi_.get()); });
    reply_.outcome = wait();
    if (failure_) std::rethrow_exception(failure_);
    reply_.status = easy_.status();
    curl_header* location = nullptr;
    if (curl_easy_header(easy_.get(), "Location", 0, CURLH_HEADER, -1, &location) == CURLHE_OK) {
      reply_.location = location->value;
    }
    return std::move(reply_);
  }

 private:
  using Outcome = TransferReply::Outcome;

  void set_target() {
    easy_.set_common();
    easy_.set(CURLOPT_URL, transfer_.url.text().c_str());
    easy_.set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
    easy_.set(CURLOPT_PATH_AS_IS, 1L);
    easy_.set(CURLOPT_PROXY, "");  // also none of the environment
    easy_.set(CURLOPT_HTTPHEADER, headers_.get());
    if (transfer_.proxy) return set_proxy(*transfer_.proxy);
    if (transfer_.url.kind == HostKind::kName) pin(transfer_.url, transfer_.addresses);
  }

  /// libcurl looks no name up: it has these addresses.
  void pin(const Url& url, const std::vector<Address>& addresses) {
    addresses_.append(resolve_entry(url, addresses));
    easy_.set(CURLOPT_RESOLVE, addresses_.get());
  }

  void set_proxy(const ProxyHop& proxy) {
    easy_.set(CURLOPT_PROXY, origin_of(proxy.url).c_str());
    easy_.set(CURLOPT_NOPROXY, "");  // nor exceptions of the environment
    easy_.set(CURLOPT_HEADEROPT, long{CURLHEADER_SEPARATE});
    easy_.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    append(proxy_headers_, proxy.headers);
    easy_.set(CURLOPT_PROXYHEADER, proxy_headers_.get());
    if (proxy.url.kind == HostKind::kName) pin(proxy.url, proxy.addresses);
    if (transfer_.addresses.empty()) return;
    easy_.set(CURLOPT_HTTPPROXYTUNNEL, 1L);
    target_.append("::" + bracketed(transfer_.addresses.front()) + ":");
    easy_.set(CURLOPT_CONNECT_TO, target_.get());
  }

  void set_limits() {
    easy_.set(CURLOPT_FOLLOWLOCATION, 0L);
    easy_.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(transfer_.connect_timeout.count()));
    easy_.set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(transfer_.max_bytes));
    easy_.set(CURLOPT_FORBID_REUSE, 1L);
  }

  void set_callbacks() {
    easy_.set(CURLOPT_OPENSOCKETFUNCTION, &Getter::open_socket);
    easy_.set(CURLOPT_OPENSOCKETDATA, this);
    easy_.set(CURLOPT_HEADERFUNCTION, &Getter::take_header);
    easy_.set(CURLOPT_HEADERDATA, this);
    easy_.set(CURLOPT_WRITEFUNCTION, &Getter::take_body);
    easy_.set(CURLOPT_WRITEDATA, this);
  }

  /// Moves bytes until there is an outcome.
  Outcome wait() {
    for (;;) {
      int running = 0;
      if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) return Outcome::kFailed;
      if (transfer_.stop.stop_requested()) return Outcome::kStopped;
      if (running == 0) return outcome();
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(transfer_.until - Clock::now());
      if (left.count() <= 0) return Outcome::kLate;
      curl_multi_poll(multi_.get(), nullptr, 0,
                      static_cast<int>(std::min(left, kLongestPoll).count()), nullptr);
    }
  }

  /// The result of a transfer that has ended.
  Outcome outcome() {
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-union-access): libcurl has one message only
    const CURLcode code = message != nullptr ? message->data.result : CURLE_FAILED_INIT;
    if (code == CURLE_OK || ignores_body_) return Outcome::kReply;
    if (code == CURLE_FILESIZE_EXCEEDED) return is_ok() ? Outcome::kTooLarge : Outcome::kReply;
    if (too_large_) return Outcome::kTooLarge;
    if (lacks_room_) return Outcome::kNoRoom;
    return code == CURLE_OPERATION_TIMEDOUT ? Outcome::kLate : Outcome::kFailed;
  }

  [[nodiscard]] bool is_ok() const { return easy_.status() == kOk; }

  // Callbacks of libcurl; 0 and CURL_SOCKET_BAD end the transfer.

  static curl_socket_t open_socket(void* self, curlsocktype /*purpose*/, curl_sockaddr* address) {
    const Transfer& transfer = static_cast<const Getter*>(self)->transfer_;
    const auto& given = transfer.proxy ? transfer.proxy->addresses : transfer.addresses;
    const std::optional<Address> wanted = address_of(address->addr);
    if (!wanted || std::ranges::find(given, *wanted) == given.end()) return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  }

  static std::size_t take_header(const char* /*data*/, std::size_t /*one*/, std::size_t size,
                                 void* self) {
    auto& getter = *static_cast<Getter*>(self);
    getter.header_bytes_ += size;
    return getter.header_bytes_ <= kMaxHeaderBytes ? size : 0;
  }

  static std::size_t take_body(const char* data, std::size_t /*one*/, std::size_t size,
                               void* self) {
    auto& getter = *static_cast<Getter*>(self);
    std::vector<std::uint8_t>& body = getter.reply_.body;
    getter.ignores_body_ = !getter.is_ok();
    getter.too_large_ = size > getter.transfer_.max_bytes - body.size();
    if (getter.ignores_body_ || getter.too_large_) return 0;
    try {
      getter.lacks_room_ = !getter.make_room(size);
      if (getter.lacks_room_) return 0;
      body.insert(body.end(), data, data + size);
      return size;
    } catch (...) {
      getter.failure_ = std::current_exception();
      return 0;
    }
  }

  /// Room for the body and `more` bytes, in steps that double like its memory.
  bool make_room(std::size_t more) {
    if (!transfer_.grant || reply_.body.size() + more <= granted_) return true;
    const std::size_t step = std::max({granted_, reply_.body.size() + more - granted_, kFirstRoom});
    const std::size_t bytes = std::min(step, transfer_.max_bytes - granted_);
    if (!transfer_.grant(bytes)) return false;
    granted_ += bytes;
    return true;
  }

  const Transfer& transfer_;
  TransferReply reply_;
  std::size_t granted_ = 0;
  bool lacks_room_ = false;
  std::size_t header_bytes_ = 0;
  bool ignores_body_ = false;
  bool too_large_ = false;
  std::exception_ptr failure_;
  curl::Lines headers_;
  curl::Lines proxy_headers_;
  curl::Lines addresses_;
  curl::Lines target_;
  curl::Easy easy_;
  curl::Multi multi_;
};

/// A relative reference, made absolute; empty if it is none.
std::string joined(const Url& from, const std::string& reference) {
  const auto url = curl::made(std::unique_ptr<CURLU, curl::Free>(curl_url()));
  const auto set = [&](const std::string& text) {
    return curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) == CURLUE_OK;
  };
  char* text = nullptr;
  if (!set(from.text()) || !set(reference)) return "";
  return curl_url_get(url.get(), CURLUPART_URL, &text, 0) == CURLUE_OK ? taken(text) : "";
}

}  // namespace

TransferReply get(const Transfer& transfer) { return Getter(transfer).run(); }

std::optional<Url> redirect_target(const Url& from, const std::string& location) {
  std::optional<Url> target = parse_url(is_http_url(location) ? location : joined(from, location));
  if (target && from.is_https && !target->is_https) return std::nullopt;
  return target;
}

}  // namespace fovea::serve
