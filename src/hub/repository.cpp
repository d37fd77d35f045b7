// The protocol of the hub: where a snapshot, the facts of a file and its bytes are, and what its
// refusals mean.
//   GET  <endpoint>/api/models/<name>/revision/<revision>
//        {"sha": .., "siblings": [{"rfilename": ..}]}
//   HEAD <endpoint>/<name>/resolve/<commit>/<file>
//        X-Linked-Etag or ETag, X-Linked-Size or Content-Length, X-Repo-Commit
//   GET  the same, with Range
//        mostly a redirect to another host
#include "hub/repository.h"

#include <charconv>
#include <optional>
#include <utility>

#include "core/check.h"
#include "core/json.h"
#include "fovea/text.h"

namespace fovea::hub {
namespace {

constexpr int kOk = 200;
constexpr int kPartial = 206;
constexpr int kFirstRedirect = 300;
constexpr int kEndOfRedirects = 400;
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kNotFoundStatus = 404;
constexpr int kRangeBeyondEnd = 416;
constexpr int kTooMany = 429;
constexpr int kFirstFault = 500;
constexpr int kMostHops = 3;
constexpr std::size_t kMaxReplyBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxShownBytes = 300;

/// As `urllib.parse.quote(text, safe)`. Source: RFC 3986, section 2.3.
std::string quoted(std::string_view text, std::string_view safe) {
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    if (kUnreserved.find(c) != kUnreserved.npos || safe.find(c) != safe.npos) {
      result += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    result += '%';
    result += kDigits[byte >> 4];
    result += kDigits[byte & 15];
  }
  return result;
}

/// An entity tag without what says how it compares.
std::string plain_etag(std::string_view text) {
  if (text.starts_with("W/")) text.remove_prefix(2);
  if (text.starts_with('"')) text.remove_prefix(1);
  if (text.ends_with('"')) text.remove_suffix(1);
  return std::string(text);
}

/// Whether an etag may be the name of a file.
bool is_file_name(std::string_view etag) {
  constexpr std::size_t kMost = 200;
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  return !etag.empty() && etag.size() <= kMost && !etag.starts_with('.') &&
         etag.find_first_not_of(kAllowed) == etag.npos;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_all = failure == std::errc{} && end == text.data() + text.size();
  return is_all && !text.empty() ? std::optional(value) : std::nullopt;
}

/// The first byte of a partial reply: "bytes 100-199/200".
std::optional<std::uint64_t> range_begin(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  return number(text.substr(0, text.find('-')));
}

}  // namespace

Repository::Repository(Place place, std::string name)
    : place_(std::move(place)), name_(std::move(name)) {}

std::vector<std::string> Repository::headers() const {
  if (place_.token.empty()) return {};
  return {"Authorization: Bearer " + place_.token};
}

void Repository::refuse(const HttpHead& head, const std::string& what) const {
  const std::string subject = cat(place_.endpoint, ": ", what, ": ");
  const std::string code = head.header("x-error-code");
  const std::string reason = printable(head.header("x-error-message"), kMaxShownBytes);
  const std::string said = reason.empty() ? cat("status ", head.status)
                                          : cat("status ", head.status, ", \"", reason, "\"");
  const std::string how =
      cat("(HF_TOKEN, or ", place_.token_file.empty() ? "HF_TOKEN_PATH" : place_.token_file, ")");
  FOVEA_CHECK(code != "GatedRepo", kInvalidArgument, subject,
              "the model is gated: accept its terms at ", place_.endpoint, "/", name_,
              " and give the token of an account that has ", how);
  FOVEA_CHECK(code != "RevisionNotFound", kNotFound, subject, "there is no such revision");
  FOVEA_CHECK(code != "EntryNotFound", kNotFound, subject, "there is no such file");
  if (head.status == kUnauthorized || head.status == kForbidden) {
    FOVEA_CHECK(!place_.token.empty(), kInvalidArgument, subject,
                "there is no such model, or it is private and needs a token ", how, "; ", said);
    FOVEA_CHECK(false, kInvalidArgument, subject, "the token ", how, " gives no access; ", said);
  }
  FOVEA_CHECK(code != "RepoNotFound" && head.status != kNotFoundStatus, kNotFound, subject,
              "there is no such model", place_.token.empty() ? ", or it is private" : "");
  FOVEA_CHECK(head.status != kTooMany, kUnavailable, subject,
              "the hub wants fewer requests: ", said);
  FOVEA_CHECK(head.status < kFirstFault, kUnavailable, subject, "the hub fails: ", said);
  throw Error(ErrorCode::kInvalidArgument, cat(subject, "the hub refuses: ", said));
}

void Repository::check_status(const HttpHead& head, const std::string& what) const {
  if (head.status != kOk && head.status != kPartial) refuse(head, what);
}

Snapshot Repository::snapshot(const std::string& revision) {
  const std::string what = cat(name_, " at ", printable(revision, kMaxShownBytes));
  const std::string url =
      cat(place_.endpoint, "/api/models/", name_, "/revision/", quoted(revision, ""));
  std::string text;
  const HttpEnd end = session_.perform(
      {.url = url, .headers = headers(), .is_head = false, .follows = true},
      {.on_head = [&](const HttpHead& head) { return check_status(head, what), true; },
       .on_body =
           [&](std::span<const std::byte> bytes) {
             FOVEA_CHECK(text.size() + bytes.size() <= kMaxReplyBytes, kCorruptData, url,
                         ": expected at most ", kMaxReplyBytes, " bytes");
             text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
           }});
  FOVEA_CHECK(end.problem.empty(), kUnavailable, url, ": ", end.problem);
  FOVEA_CHECK(end.head.status == kOk, kUnavailable, url, ": no reply");
  const JsonDocument reply = JsonDocument::parse(text, url);
  Snapshot snapshot{.commit = reply.root().at("sha").as_string(), .files = {}};
  FOVEA_CHECK(is_commit(snapshot.commit), kCorruptData, url,
              ": sha: expected 40 digits in base 16, got \"",
              printable(snapshot.commit, kMaxShownBytes), "\"");
  for (const JsonView& sibling : reply.root().at("siblings").elements()) {
    snapshot.files.push_back(sibling.at("rfilename").as_string());
  }
  return snapshot;
}

HttpHead Repository::head_of(std::string url) {
  // The facts of a file stand in the hub's own reply, which is a redirect to another host; only a
  // repository that has another name now leads on to the hub itself.
  for (int hop = 0; hop < kMostHops; ++hop) {
    const HttpEnd end =
        session_.perform({.url = url, .headers = headers(), .is_head = true, .follows = false},
                         {.on_head = [](const HttpHead&) { return true; }, .on_body = {}});
    FOVEA_CHECK(end.problem.empty(), kUnavailable, url, ": ", end.problem);
    FOVEA_CHECK(end.head.status != 0, kUnavailable, url, ": no reply");
    const std::string location = end.head.header("location");
    const bool leads_on = end.head.status >= kFirstRedirect && end.head.status < kEndOfRedirects &&
                          location.starts_with('/') && !location.starts_with("//");
    if (!leads_on) return end.head;
    const std::size_t host = place_.endpoint.find("://") + 3;
    url = place_.endpoint.substr(0, place_.endpoint.find('/', host)) + location;
  }
  throw Error(ErrorCode::kUnavailable, cat(url, ": more than ", kMostHops, " redirects"));
}

HubFile Repository::file(const Snapshot& snapshot, const std::string& name) {
  HubFile file{.name = name,
               .etag = {},
               .size = 0,
               .url = cat(place_.endpoint, "/", name_, "/resolve/", snapshot.commit, "/",
                          quoted(name, "/"))};
  const HttpHead head = head_of(file.url);
  const bool is_redirect = head.status >= kFirstRedirect && head.status < kEndOfRedirects;
  if (!is_redirect) check_status(head, cat(name_, ": ", name));
  const std::string linked = head.header("x-linked-etag");
  file.etag = plain_etag(linked.empty() ? head.header("etag") : linked);
  FOVEA_CHECK(is_file_name(file.etag), kCorruptData, file.url,
              ": expected a digest as ETag, got \"", printable(file.etag, kMaxShownBytes), "\"");
  const std::string linked_size = head.header("x-linked-size");
  const std::string length = is_redirect ? "" : head.header("content-length");
  const std::optional<std::uint64_t> size = number(linked_size.empty() ? length : linked_size);
  FOVEA_CHECK(size.has_value(), kCorruptData, file.url,
              ": the hub does not say how long the file is");
  file.size = *size;
  const std::string commit = head.header("x-repo-commit");
  FOVEA_CHECK(commit.empty() || commit == snapshot.commit, kCorruptData, file.url,
              ": expected commit ", snapshot.commit, ", got ", printable(commit, kMaxShownBytes));
  return file;
}

std::string Repository::read(const HubFile& file, std::uint64_t begin, const Sink& sink) {
  const std::string what = cat(name_, ": ", file.name);
  HttpRequest request{.url = file.url, .headers = headers(), .is_head = false, .follows = true};
  if (begin > 0) request.headers.push_back(cat("Range: bytes=", begin, "-"));
  std::uint64_t left = file.size - begin;
  const HttpEnd end = session_.perform(
      request, {.on_head =
                    [&](const HttpHead& head) {
                      const bool goes_on = head.status == kPartial &&
                                           range_begin(head.header("content-range")) == begin;
                      if (begin > 0 && !goes_on &&
                          (head.status == kOk || head.status == kPartial ||
                           head.status == kRangeBeyondEnd)) {
                        sink.restart();
                        left = file.size;
                        return head.status == kOk;
                      }
                      check_status(head, what);
                      return true;
                    },
                .on_body =
                    [&](std::span<const std::byte> bytes) {
                      FOVEA_CHECK(bytes.size() <= left, kCorruptData, file.url, ": more than the ",
                                  file.size, " bytes that the hub says it has");
                      left -= bytes.size();
                      sink.add(bytes);
                    }});
  FOVEA_CHECK(!end.is_lasting, kUnsupported, file.url, ": ", end.problem);
  return end.problem;
}

}  // namespace fovea::hub
