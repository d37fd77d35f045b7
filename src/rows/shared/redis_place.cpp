// Rows in a Redis or Valkey server, by hiredis. A connection serves one call at a time and is kept
// for the next; one that failed, or that its server has ended, is not used again. Every wait of
// hiredis for the network has a bound. hiredis 0.14 writes without MSG_NOSIGNAL: threads that call
// it have SIGPIPE blocked.
// Source: Redis documentation, "Commands" (SET, GETRANGE, STRLEN, AUTH, SELECT) and "Pipelining".
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "fovea/version.h"
#include "rows/shared/row_place.h"

namespace fovea {
namespace {

constexpr timeval kConnectTime{.tv_sec = 0, .tv_usec = 500'000};
constexpr timeval kAnswerTime{.tv_sec = 2, .tv_usec = 0};  // between two pieces of an answer
constexpr std::size_t kMostIdle = 8;
/// hiredis grows its buffer by a mebibyte at a time, and copies what it has: an answer of 32 MiB
/// would be copied sixteen times over.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

struct Free {
  void operator()(redisContext* context) const { redisFree(context); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Connection = std::unique_ptr<redisContext, Free>;
using Answer = std::unique_ptr<redisReply, Free>;

/// Where a server is, and how to log in.
struct RedisUrl {
  std::string host;
  int port = 6379;
  int database = 0;
  std::string user;
  std::string password;

  [[nodiscard]] std::string text() const { return cat("redis://", host, ":", port, "/", database); }
};

bool read_number(std::string_view text, int most, int& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc{} && end == text.data() + text.size() && number >= 0 &&
         number <= most;
}

/// redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]; its text stays out of messages, as it may hold a
/// password. Source: IANA, URI scheme "redis".
RedisUrl parse_redis_url(std::string_view text) {
  constexpr std::string_view kScheme = "redis://";
  FOVEA_CHECK(text.starts_with(kScheme), kInvalidArgument,
              "shared_rows: rediss:// (TLS) is not spoken; expected redis://HOST:PORT/DB");
  text.remove_prefix(kScheme.size());
  RedisUrl url;
  if (const std::size_t at = text.rfind('@'); at != text.npos) {
    const std::string_view login = text.substr(0, at);
    const std::size_t colon = login.find(':');
    FOVEA_CHECK(colon != login.npos && colon + 1 < login.size(), kInvalidArgument,
                "shared_rows: expected USER:PASSWORD or :PASSWORD in front of the @ of redis://");
    url.user = login.substr(0, colon);
    url.password = login.substr(colon + 1);
    text.remove_prefix(at + 1);
  }
  bool is_right = true;
  if (const std::size_t slash = text.find('/'); slash != text.npos) {
    constexpr int kMostDatabase = 1'000'000;
    const std::string_view database = text.substr(slash + 1);
    is_right = database.empty() || read_number(database, kMostDatabase, url.database);
    text = text.substr(0, slash);
  }
  const std::size_t colon = text.rfind(':');
  const bool has_port = colon != text.npos && !text.ends_with(']');
  if (has_port) {
    constexpr int kMostPort = 65'535;
    is_right &= read_number(text.substr(colon + 1), kMostPort, url.port) && url.port > 0;
    text = text.substr(0, colon);
  }
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  url.host = text;
  FOVEA_CHECK(is_right && !url.host.empty(), kInvalidArgument,
              "shared_rows: expected redis://HOST:PORT/DB, with numbers for PORT and DB");
  return url;
}

class RedisPlace final : public RowPlace {
 public:
  RedisPlace(RedisUrl url, std::int64_t seconds)
      : url_(std::move(url)), seconds_(std::to_string(seconds)) {}

  std::vector<std::optional<RowBytes>> get(std::span<const std::string> names) override {
    Connection connection = take();
    for (const std::string& name : names) {
      append_range(*connection, name, 0);
      append(*connection, std::array<std::string_view, 2>{"STRLEN", key_of(name)});
    }
    std::vector<std::optional<RowBytes>> found(names.size());
    for (std::optional<RowBytes>& entry : found) {
      const Answer first = value_of(*connection, REDIS_REPLY_STRING);
      const std::int64_t bytes = value_of(*connection, REDIS_REPLY_INTEGER)->integer;
      if (bytes <= 0 || std::cmp_greater(bytes, kMaxEntryBytes)) continue;
      entry.emplace(static_cast<std::size_t>(bytes));
      if (!put_piece(*first, *entry, 0)) entry.reset();
    }
    get_rest(*connection, names, found);
    give_back(std::move(connection));
    return found;
  }

  void put(const std::string& name, std::span<const std::byte> bytes) override {
    Connection connection = take();
    const std::string_view value(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    append(*connection,
           std::array<std::string_view, 5>{"SET", key_of(name), value, "EX", seconds_});
    const Answer said = answer(*connection);
    give_back(std::move(connection));
    if (said->type == REDIS_REPLY_ERROR) {
      throw Error(ErrorCode::kUnavailable, cat(url_.text(), ": ", text_of(*said)));
    }
  }

 private:
  static std::string key_of(const std::string& name) {
    return cat("fovea:rows:", version(), ":", name);
  }
  static std::string text_of(const redisReply& reply) { return {reply.str, reply.len}; }

  /// Whether a connection still waits as it was left. What comes unasked is its end: a server hangs
  /// up on those that are idle for its `timeout`, and when it starts anew.
  static bool is_quiet(const redisContext& connection) {
    pollfd events{.fd = connection.fd, .events = POLLIN, .revents = 0};
    return ::poll(&events, 1, 0) == 0;
  }
  /// A connection of an earlier call; null: there is none.
  Connection take_idle() {
    const std::lock_guard lock(mutex_);
    while (!idle_.empty()) {
      Connection connection = std::move(idle_.back());
      idle_.pop_back();
      if (is_quiet(*connection)) return connection;
    }
    return nullptr;
  }
  /// A connection that is logged in. @throws Error(kIo).
  Connection take() {
    if (Connection idle = take_idle()) return idle;
    Connection connection(redisConnectWithTimeout(url_.host.c_str(), url_.port, kConnectTime));
    if (!connection) throw Error(ErrorCode::kOutOfMemory, cat(url_.text(), ": no memory"));
    check(*connection);
    if (redisSetTimeout(connection.get(), kAnswerTime) != REDIS_OK) check(*connection);
    if (!url_.password.empty() && !url_.user.empty()) {
      order(*connection, std::array<std::string_view, 3>{"AUTH", url_.user, url_.password});
    } else if (!url_.password.empty()) {
      order(*connection, std::array<std::string_view, 2>{"AUTH", url_.password});
    }
    if (url_.database != 0) {
      order(*connection, std::array<std::string_view, 2>{"SELECT", std::to_string(url_.database)});
    }
    return connection;
  }
  void give_back(Connection connection) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMostIdle) idle_.push_back(std::move(connection));
  }

  template <std::size_t kWords>
  void append(redisContext& connection, const std::array<std::string_view, kWords>& words) const {
    std::array<const char*, kWords> texts{};
    std::array<std::size_t, kWords> sizes{};
    for (std::size_t i = 0; i < kWords; ++i) {
      texts[i] = words[i].data();
      sizes[i] = words[i].size();
    }
    const int result = redisAppendCommandArgv(&connection, int{kWords}, texts.data(), sizes.data());
    if (result != REDIS_OK) check(connection);
  }
  /// Sends what was appended, if that is still to be done, and waits for the next answer.
  [[nodiscard]] Answer answer(redisContext& connection) const {
    void* reply = nullptr;
    if (redisGetReply(&connection, &reply) != REDIS_OK || reply == nullptr) check(connection);
    return Answer(static_cast<redisReply*>(reply));
  }
  /// A command that must succeed.
  template <std::size_t kWords>
  void order(redisContext& connection, const std::array<std::string_view, kWords>& words) const {
    append(connection, words);
    const Answer said = answer(connection);
    if (said->type == REDIS_REPLY_ERROR) {
      throw Error(ErrorCode::kIo, cat(url_.text(), ": ", words[0], ": ", text_of(*said)));
    }
  }
  void check(const redisContext& connection) const {
    if (connection.err == 0) return;
    throw Error(ErrorCode::kIo, cat(url_.text(), ": ", connection.errstr));
  }
  /// An answer of a type. @throws Error(kIo) for another one.
  [[nodiscard]] Answer value_of(redisContext& connection, int type) const {
    Answer said = answer(connection);
    if (said->type == type) return said;
    const bool is_error = said->type == REDIS_REPLY_ERROR;
    throw Error(ErrorCode::kIo,
                cat(url_.text(), ": ", is_error ? text_of(*said) : "no such answer"));
  }

  void append_range(redisContext& connection, const std::string& name, std::size_t at) const {
    append(connection, std::array<std::string_view, 4>{"GETRANGE", key_of(name), std::to_string(at),
                                                       std::to_string(at + kPieceBytes - 1)});
  }
  /// What is behind the first piece of each entry.
  void get_rest(redisContext& connection, std::span<const std::string> names,
                std::span<std::optional<RowBytes>> found) const {
    const auto for_each_piece = [&](const auto& visit) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        const std::size_t bytes = found[i] ? found[i]->size() : 0;
        for (std::size_t at = kPieceBytes; at < bytes; at += kPieceBytes) visit(i, at);
      }
    };
    std::vector<bool> is_whole(names.size(), true);
    for_each_piece([&](std::size_t i, std::size_t at) { append_range(connection, names[i], at); });
    for_each_piece([&](std::size_t i, std::size_t at) {
      const Answer piece = value_of(connection, REDIS_REPLY_STRING);
      is_whole[i] = put_piece(*piece, *found[i], at) && is_whole[i];
    });
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!is_whole[i]) found[i].reset();
    }
  }
  /// @return whether the piece is as long as it has to be: another process may have replaced it.
  static bool put_piece(const redisReply& piece, RowBytes& entry, std::size_t at) {
    if (piece.len != std::min(kPieceBytes, entry.size() - at)) return false;
    std::memcpy(entry.data() + at, piece.str, piece.len);
    return true;
  }

  const RedisUrl url_;
  const std::string seconds_;
  std::mutex mutex_;
  std::vector<Connection> idle_;  // under the mutex
};

}  // namespace

std::shared_ptr<RowPlace> make_redis_place(const std::string& url, std::int64_t seconds) {
  FOVEA_CHECK(seconds > 0, kInvalidArgument,
              "shared_rows_seconds: expected at least 1 second, got ", seconds);
  return std::make_shared<RedisPlace>(parse_redis_url(url), seconds);
}

}  // namespace fovea
