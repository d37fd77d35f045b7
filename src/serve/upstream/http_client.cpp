#include "serve/upstream/http_client.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "fovea/error.h"
#include "libcurl/handles.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;

/// Bounds of the head of an answer, as those of a request.
constexpr std::size_t kMaxHeadBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxHeaders = 100;
constexpr long kUploadBytes = 512L << 10;  ///< given to the socket at a time
/// Longest wait for the network between two looks at the clock.
constexpr milliseconds kLongestPoll{1'000};

/// The headers as libcurl wants them: "Name;" has no value, "Name:" is left out.
curl::Lines lines_of(const Headers& headers) {
  curl::Lines lines;
  for (const Header& header : headers) {
    lines.append(header.value.empty() ? header.name + ";" : header.name + ": " + header.value);
  }
  lines.append("Expect:");
  return lines;
}

/// Any host and port, and what to connect to. Source: CURLOPT_CONNECT_TO(3).
std::string connect_entry(const std::string& address) {
  const bool is_v6 = address.find(':') != std::string::npos;
  return is_v6 ? "::[" + address + "]:" : "::" + address + ":";
}

/// Nothing for a line that is no header: names are visible characters, so that a client sees none
/// that is folded, or ends early.
std::optional<Header> parsed_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == line.npos || colon == 0) return std::nullopt;
  const std::string_view name = line.substr(0, colon);
  const bool is_visible = std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
  if (!is_visible) return std::nullopt;
  const std::string_view value = line.substr(colon + 1);
  const std::size_t begin = std::min(value.find_first_not_of(" \t"), value.size());
  return Header{std::string(name), std::string(value.substr(begin))};
}

/// One request with its handle.
class Call {
 public:
  /// @param ca_certs as HttpClient has it; outlives the call.
  Call(ClientRequest request, ClientEvents events, const std::string& ca_certs)
      : request_(std::move(request)), events_(std::move(events)), ca_certs_(ca_certs) {
    for (const BodyPart& part : request_.body) body_size_ += part.bytes.size();
  }

  /// Makes the handle. @throws std::bad_alloc.
  CURL* prepare() {
    easy_.emplace();
    headers_ = lines_of(request_.headers);
    if (!request_.address.empty()) address_.append(connect_entry(request_.address));
    set_target();
    set_trust();
    set_body();
    set_callbacks();
    return handle();
  }
  /// Null before there is one, and behind the end.
  [[nodiscard]] CURL* handle() const noexcept { return easy_ ? easy_->get() : nullptr; }

  /// When it ends as late.
  [[nodiscard]] Clock::time_point due() const noexcept {
    if (!has_head_) return request_.head_until;
    return is_paused_ ? Clock::time_point::max() : last_data_ + request_.idle_timeout;
  }
  /// @return false if what was not taken is not wanted any more: the request has to end.
  [[nodiscard]] bool resume() {
    if (!is_paused_) return true;
    is_paused_ = false;
    last_data_ = Clock::now();
    curl_easy_pause(handle(), CURLPAUSE_CONT);
    return !is_unwanted_;
  }
  /// How it has ended, by what libcurl says.
  [[nodiscard]] ClientEnd end_of(CURLcode code) const noexcept {
    if (code == CURLE_OK) return has_head_ ? ClientEnd::kComplete : ClientEnd::kNoAnswer;
    if (is_unwanted_) return ClientEnd::kUnwanted;
    if (has_head_) return ClientEnd::kBroken;
    switch (code) {
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_CONNECT:
      case CURLE_OPERATION_TIMEDOUT:  // the only time that libcurl has is that of the connection
      case CURLE_SSL_CONNECT_ERROR:
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_OUT_OF_MEMORY: return ClientEnd::kNoConnection;
      default: return ClientEnd::kNoAnswer;
    }
  }
  /// The handle goes first: it refers to what is here.
  void finish(ClientEnd end) {
    easy_.reset();
    request_.body.clear();
    const ClientEvents events = std::move(events_);
    events.on_end(end);
  }

 private:
  void set_target() {
    easy_->set_common();
    easy_->set(CURLOPT_URL, request_.url.c_str());
    easy_->set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
    easy_->set(CURLOPT_PATH_AS_IS, 1L);
    easy_->set(CURLOPT_PROXY, "");
    easy_->set(CURLOPT_CONNECT_TO, address_.get());
    easy_->set(CURLOPT_HTTPHEADER, headers_.get());
    easy_->set(CURLOPT_FOLLOWLOCATION, 0L);
    easy_->set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request_.connect_timeout.count()));
  }

  void set_trust() {
    if (ca_certs_.empty()) return;
    const curl_blob certificates{.data = const_cast<char*>(ca_certs_.data()),  // NOLINT: read
                                 .len = ca_certs_.size(),
                                 .flags = CURL_BLOB_NOCOPY};
    easy_->set(CURLOPT_CAINFO_BLOB, &certificates);
    easy_->set(CURLOPT_CAPATH, nullptr);
  }

  void set_body() {
    if (request_.method != "POST") return;
    // On a connection that was used before libcurl would send it again when that ends, unasked.
    easy_->set(CURLOPT_FRESH_CONNECT, 1L);
    easy_->set(CURLOPT_FORBID_REUSE, 1L);
    easy_->set(CURLOPT_POST, 1L);
    easy_->set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_size_));
    easy_->set(CURLOPT_UPLOAD_BUFFERSIZE, kUploadBytes);
    easy_->set(CURLOPT_READFUNCTION, &Call::give_body);
    easy_->set(CURLOPT_READDATA, this);
    easy_->set(CURLOPT_SEEKFUNCTION, &Call::seek_body);
    easy_->set(CURLOPT_SEEKDATA, this);
  }

  void set_callbacks() {
    easy_->set(CURLOPT_HEADERFUNCTION, &Call::take_header);
    easy_->set(CURLOPT_HEADERDATA, this);
    easy_->set(CURLOPT_WRITEFUNCTION, &Call::take_body);
    easy_->set(CURLOPT_WRITEDATA, this);
  }

  // Callbacks of libcurl.

  static std::size_t give_body(char* to, std::size_t one, std::size_t size, void* self) {
    return static_cast<Call*>(self)->give(to, one * size);
  }
  static int seek_body(void* self, curl_off_t offset, int origin) {
    auto& call = *static_cast<Call*>(self);
    if (origin != SEEK_SET || offset != 0) return CURL_SEEKFUNC_CANTSEEK;
    call.next_part_ = call.part_offset_ = call.given_ = 0;
    return CURL_SEEKFUNC_OK;
  }
  static std::size_t take_header(const char* data, std::size_t /*one*/, std::size_t size,
                                 void* self) {
    auto& call = *static_cast<Call*>(self);
    return call.take_line({data, size}) ? size : 0;
  }
  static std::size_t take_body(const char* data, std::size_t /*one*/, std::size_t size,
                               void* self) {
    return static_cast<Call*>(self)->take({data, size});
  }

  std::size_t give(char* to, std::size_t most) {
    std::size_t size = 0;
    while (size < most && next_part_ < request_.body.size()) {
      const auto rest = request_.body[next_part_].bytes.subspan(part_offset_);
      const std::size_t here = std::min(most - size, rest.size());
      if (here > 0) std::memcpy(to + size, rest.data(), here);
      size += here;
      part_offset_ += here;
      if (here == rest.size()) {
        ++next_part_;
        part_offset_ = 0;
      }
    }
    given_ += size;
    return size;
  }

  /// A line of a head, or a trailer. @return whether the request goes on.
  bool take_line(std::string_view line) {
    if (has_head_) return true;
    head_bytes_ += line.size();
    if (head_bytes_ > kMaxHeadBytes || head_.headers.size() > kMaxHeaders) return false;
    line = curl::without_break(line);
    try {
      if (line.empty()) return end_head();
      if (line.starts_with("HTTP/")) {
        head_ = {};  // of an interim answer, if there was one
      } else if (std::optional<Header> header = parsed_header(line)) {
        head_.headers.push_back(*std::move(header));
      }
      return true;
    } catch (...) {
      is_unwanted_ = true;
      return false;
    }
  }

  bool end_head() {
    const int status = easy_->status();
    constexpr int kFirstFinal = 200;
    if (status < kFirstFinal) return true;
    head_.status = status;
    has_head_ = true;
    last_data_ = Clock::now();
    if (given_ == body_size_) request_.body.clear();
    is_unwanted_ = !events_.on_head(std::move(head_));
    return !is_unwanted_;
  }

  std::size_t take(std::string_view bytes) {
    try {
      is_paused_ = !events_.on_data(bytes);
    } catch (...) {
      is_unwanted_ = true;
      return 0;
    }
    if (is_paused_) return CURL_WRITEFUNC_PAUSE;
    last_data_ = Clock::now();
    return bytes.size();
  }

  ClientRequest request_;
  ClientEvents events_;
  const std::string& ca_certs_;
  curl::Lines headers_;
  curl::Lines address_;
  std::optional<curl::Easy> easy_;
  std::size_t body_size_ = 0;
  std::size_t given_ = 0;
  std::size_t next_part_ = 0;
  std::size_t part_offset_ = 0;
  std::size_t head_bytes_ = 0;
  ClientHead head_;
  bool has_head_ = false;
  bool is_paused_ = false;
  bool is_unwanted_ = false;
  Clock::time_point last_data_;
};

}  // namespace

struct HttpClient::Impl {
  explicit Impl(std::string certificates) : ca_certs(std::move(certificates)) {
    try {
      thread = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      throw Error(ErrorCode::kIo, std::string("a thread of the client: ") + error.what());
    }
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      ends = true;
    }
    curl_multi_wakeup(multi.get());
    thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  enum class Order : std::uint8_t { kStart, kResume, kStop };
  struct Command {
    Order order;
    Id id;
    std::unique_ptr<Call> call;
  };

  void tell(Command command) {
    {
      const std::lock_guard lock(mutex);
      commands.push_back(std::move(command));
    }
    curl_multi_wakeup(multi.get());
  }

  /// The same for orders to requests that run: where there is no memory for it, all are resumed.
  void tell_surely(Command command) noexcept {
    try {
      tell(std::move(command));
    } catch (const std::bad_alloc&) {
      resumes_all = true;
      curl_multi_wakeup(multi.get());
    }
  }

  void run() {
    for (;;) {
      const bool is_last = obey();
      if (resumes_all.exchange(false)) {
        for (auto place = calls.begin(); place != calls.end();) resume(place++);
      }
      int running = 0;
      curl_multi_perform(multi.get(), &running);
      take_finished();
      const Clock::time_point due = end_late();
      if (is_last) return end_all();
      const auto left = std::chrono::ceil<milliseconds>(due - Clock::now());
      const milliseconds wait = std::clamp(left, milliseconds(0), kLongestPoll);
      curl_multi_poll(multi.get(), nullptr, 0, static_cast<int>(wait.count()), nullptr);
    }
  }

  /// Does what was asked for. @return whether it is to end.
  bool obey() {
    std::vector<Command> now;
    bool is_last = false;
    {
      const std::lock_guard lock(mutex);
      now.swap(commands);
      is_last = ends;
    }
    for (Command& command : now) {
      if (command.order == Order::kStart) {
        begin(command.id, std::move(command.call));
      } else if (const auto found = calls.find(command.id); found != calls.end()) {
        if (command.order == Order::kResume) resume(found);
        if (command.order == Order::kStop) end(found, ClientEnd::kStopped);
      }
    }
    return is_last;
  }

  void begin(Id id, std::unique_ptr<Call> call) {
    try {
      CURL* const handle = call->prepare();
      const auto place = calls.emplace(id, nullptr).first;
      place->second = std::move(call);
      if (curl_multi_add_handle(multi.get(), handle) != CURLM_OK) {
        end(place, ClientEnd::kNoConnection);
      }
    } catch (const std::exception&) {  // there is no memory
      call->finish(ClientEnd::kNoConnection);
    }
  }

  using Calls = std::map<Id, std::unique_ptr<Call>>;
  /// libcurl would go on behind the bytes that were refused, as if they had been taken.
  void resume(Calls::iterator place) {
    if (!place->second->resume()) end(place, ClientEnd::kUnwanted);
  }
  void end(Calls::iterator place, ClientEnd how) {
    const std::unique_ptr<Call> call = std::move(place->second);
    calls.erase(place);
    curl_multi_remove_handle(multi.get(), call->handle());
    call->finish(how);
  }

  void take_finished() {
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi.get(), &left)) {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-union-access): libcurl has one message only
      const CURLcode code = message->data.result;
      const CURL* const handle = message->easy_handle;
      const auto place = std::ranges::find_if(
          calls, [&](const auto& entry) { return entry.second->handle() == handle; });
      if (place != calls.end()) end(place, place->second->end_of(code));
    }
  }

  /// Ends what is late. @return when the next one is.
  Clock::time_point end_late() {
    const Clock::time_point now = Clock::now();
    Clock::time_point next = Clock::time_point::max();
    for (auto place = calls.begin(); place != calls.end();) {
      const auto here = place++;
      const Clock::time_point due = here->second->due();
      if (due > now) {
        next = std::min(next, due);
      } else {
        end(here, ClientEnd::kLate);
      }
    }
    return next == Clock::time_point::max() ? now + kLongestPoll : next;
  }

  void end_all() {
    while (!calls.empty()) end(calls.begin(), ClientEnd::kStopped);
    std::vector<Command> rest;
    {
      const std::lock_guard lock(mutex);
      rest.swap(commands);
    }
    for (const Command& command : rest) {
      if (command.call) command.call->finish(ClientEnd::kStopped);
    }
  }

  const std::string ca_certs;
  const curl::Multi multi;
  std::mutex mutex;  // guards what follows, up to the thread
  std::vector<Command> commands;
  bool ends = false;
  std::atomic<Id> last_id = 0;
  std::atomic<bool> resumes_all = false;
  Calls calls;  // of the thread
  std::thread thread;
};

HttpClient::HttpClient(std::string ca_certs) : impl_(std::make_unique<Impl>(std::move(ca_certs))) {}
HttpClient::~HttpClient() = default;

HttpClient::Id HttpClient::make_id() noexcept { return ++impl_->last_id; }

void HttpClient::start(Id id, ClientRequest request, ClientEvents events) {
  auto call = std::make_unique<Call>(std::move(request), std::move(events), impl_->ca_certs);
  impl_->tell({.order = Impl::Order::kStart, .id = id, .call = std::move(call)});
}

void HttpClient::resume(Id id) noexcept { impl_->tell_surely({Impl::Order::kResume, id, nullptr}); }

void HttpClient::stop(Id id) noexcept { impl_->tell_surely({Impl::Order::kStop, id, nullptr}); }

}  // namespace fovea::serve
