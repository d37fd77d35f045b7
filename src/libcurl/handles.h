#pragma once

// libcurl's handles with owners, and what every client of ours asks of them. A header alone: what
// includes it links CURL::libcurl. Source: libcurl's manual pages, libcurl-easy(3), CURLOPT_*(3).

#include <curl/curl.h>

#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "fovea/version.h"

namespace fovea::curl {

struct Free {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
  void operator()(CURLU* url) const noexcept { curl_url_cleanup(url); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const noexcept { curl_multi_cleanup(multi); }
};

/// A handle that libcurl made. @throws std::bad_alloc if it made none.
template <class Handle>
[[nodiscard]] Handle made(Handle handle) {
  if (!handle) throw std::bad_alloc();
  return handle;
}

/// Lines of a request, in their order.
class Lines {
 public:
  Lines() = default;
  explicit Lines(const std::string& line) { append(line); }

  /// @throws std::bad_alloc, which leaves the lines as they were.
  void append(const std::string& line) {
    curl_slist* const longer = made(curl_slist_append(list_.get(), line.c_str()));
    (void)list_.release();  // is part of the longer one
    list_.reset(longer);
  }

  /// Null if there is none.
  [[nodiscard]] curl_slist* get() const noexcept { return list_.get(); }

 private:
  std::unique_ptr<curl_slist, Free> list_;
};

/// A handle for one request at a time. What options refer to must outlive their request.
class Easy {
 public:
  /// @throws std::bad_alloc.
  Easy() : easy_(made(std::unique_ptr<CURL, Free>(curl_easy_init()))) {}

  [[nodiscard]] CURL* get() const noexcept { return easy_.get(); }

  /// @throws std::bad_alloc; Error(kInternal) if this libcurl does not take the option.
  template <class Value>
  void set(CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(get(), option, value);
    if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
    FOVEA_CHECK(code == CURLE_OK, kInternal, "libcurl refuses option ", option, ": ",
                curl_easy_strerror(code));
  }

  /// What holds for all requests of ours: they go to http and https alone, raise no signals, take
  /// bodies as they are sent, and say who asks. One that ends waits for no name server.
  void set_common() {
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    set(CURLOPT_QUICK_EXIT, 1L);  // or its end joins the thread that asks the resolver
    set(CURLOPT_USERAGENT, (std::string("fovea/") + version()).c_str());
  }

  /// The status of the last answer, 0 before there is one.
  [[nodiscard]] int status() const noexcept {
    long status = 0;
    curl_easy_getinfo(get(), CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

 private:
  std::unique_ptr<CURL, Free> easy_;
};

/// Handles that run together.
class Multi {
 public:
  /// @throws std::bad_alloc.
  Multi() : multi_(made(std::unique_ptr<CURLM, FreeMulti>(curl_multi_init()))) {}
  [[nodiscard]] CURLM* get() const noexcept { return multi_.get(); }

 private:
  std::unique_ptr<CURLM, FreeMulti> multi_;
};

/// A line of a head without its end.
[[nodiscard]] inline std::string_view without_break(std::string_view line) noexcept {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace fovea::curl
