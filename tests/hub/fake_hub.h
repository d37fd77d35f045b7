#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/sha256.h"
#include "support/local_server.h"
#include "support/temporary_directory.h"

namespace fovea::test {

/// A repository of the hub, as the pages of its API describe it, for the time of a test.
class FakeHub {
 public:
  static constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

  struct File {
    std::string content;
    std::string etag;
    std::string location;  ///< empty: the hub has the bytes itself
  };

  FakeHub() : server_([this](int socket, const std::string& head) { answer(socket, head); }) {}

  [[nodiscard]] std::string url() const { return server_.url(""); }
  [[nodiscard]] int port() const { return server_.port(); }

  /// @param etag empty: SHA-256, as of the large storage.
  void add(const std::string& file, std::string content, std::string etag = "") {
    if (etag.empty()) {
      etag = fovea::sha256_hex(content);
    }
    files[file] = {.content = std::move(content), .etag = std::move(etag), .location = {}};
  }
  [[nodiscard]] std::string etag(const std::string& file) const { return files.at(file).etag; }

  /// Heads of the requests so far that begin with a text.
  [[nodiscard]] std::vector<std::string> requests(const std::string& start) {
    std::vector<std::string> heads = server_.heads();
    std::erase_if(heads, [&](const std::string& head) { return !head.starts_with(start); });
    return heads;
  }

  std::string name = "maker/model";
  std::map<std::string, File> files;
  /// A whole reply in place of that for a request; nothing: the usual one.
  std::function<std::optional<std::string>(const std::string& head)> instead;
  /// Bytes of a body after which a connection ends, one after the other, for the next downloads.
  std::vector<std::size_t> cuts;
  bool has_ranges = true;

 private:
  [[nodiscard]] std::string listing() const {
    std::string text =
        std::string(R"({"id": ")") + name + R"(", "sha": ")" + kCommit + R"(", "siblings": [)";
    const char* separator = "";
    for (const auto& [file, content] : files) {
      text += std::string(separator) + R"({"rfilename": ")" + file + R"("})";
      separator = ", ";
    }
    return text + "]}";
  }

  void answer(int socket, const std::string& head) {
    if (instead) {
      if (const std::optional<std::string> reply = instead(head)) return send_text(socket, *reply);
    }
    const std::string target =
        head.substr(head.find(' ') + 1, head.find(" HTTP") - head.find(' ') - 1);
    if (target.starts_with("/api/models/" + name + "/revision/")) {
      return send_text(socket, http_reply(200, listing(), kClose));
    }
    const std::string folder = "/" + name + "/resolve/" + kCommit + "/";
    const auto found =
        target.starts_with(folder) ? files.find(target.substr(folder.size())) : files.end();
    if (found == files.end()) {
      return send_text(
          socket, http_reply(404, "", std::string(kClose) + "X-Error-Code: EntryNotFound\r\n"));
    }
    if (head.starts_with("HEAD")) return send_text(socket, facts(found->first));
    send_file(socket, head, found->second);
  }

  [[nodiscard]] std::string facts(const std::string& file) const {
    const File& known = files.at(file);
    const std::string size = std::to_string(known.content.size());
    std::string text =
        std::string(known.location.empty() ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 302 Found\r\n") +
        kClose + "X-Repo-Commit: " + kCommit + "\r\n";
    if (known.location.empty())
      return text + "ETag: \"" + etag(file) + "\"\r\nContent-Length: " + size + "\r\n\r\n";
    return text + "Location: " + known.location +
           "\r\nETag: \"of-the-redirect\"\r\nX-Linked-Etag: \"" + etag(file) +
           "\"\r\nX-Linked-Size: " + size + "\r\nContent-Length: 0\r\n\r\n";
  }

  void send_file(int socket, const std::string& head, const File& file) {
    if (!file.location.empty()) {
      return send_text(
          socket, http_reply(302, "", std::string(kClose) + "Location: " + file.location + "\r\n"));
    }
    std::size_t begin = 0;
    if (const std::size_t range = head.find("Range: bytes="); has_ranges && range != head.npos) {
      begin = std::strtoull(head.c_str() + range + 13, nullptr, 10);
    }
    if (begin > 0 && begin >= file.content.size())
      return send_text(socket, http_reply(416, "", kClose));
    const std::string body = file.content.substr(begin);
    std::string reply = http_reply(begin > 0 ? 206 : 200, body, kClose);
    if (begin > 0) {
      const std::string range = "Content-Range: bytes " + std::to_string(begin) + "-" +
                                std::to_string(file.content.size() - 1) + "/" +
                                std::to_string(file.content.size()) + "\r\n";
      reply = http_reply(206, body, kClose + range);
    }
    if (const std::lock_guard lock(mutex_); !cuts.empty()) {
      reply.resize(reply.size() - body.size() + std::min(cuts.front(), body.size()));
      cuts.erase(cuts.begin());
    }
    send_text(socket, reply);
  }

  static constexpr const char* kClose = "Connection: close\r\n";

  std::mutex mutex_;    // guards cuts
  LocalServer server_;  // last: its threads use the rest
};

/// The environment of a process that asks a hub, for the time of a test.
class HubEnvironment {
 public:
  HubEnvironment() {
    for (const char* variable : kVariables) unsetenv(variable);
    setenv("HF_HOME", folder_.path().c_str(), 1);
    setenv("no_proxy", "127.0.0.1", 1);
  }
  ~HubEnvironment() {
    for (const char* variable : kVariables) unsetenv(variable);
  }
  HubEnvironment(const HubEnvironment&) = delete;
  HubEnvironment& operator=(const HubEnvironment&) = delete;

  [[nodiscard]] std::string home() const { return folder_.path(); }
  [[nodiscard]] std::string cache() const { return folder_ / "hub"; }

 private:
  static constexpr const char* kVariables[]{"HF_HUB_CACHE",
                                            "HF_HOME",
                                            "XDG_CACHE_HOME",
                                            "HF_ENDPOINT",
                                            "HF_TOKEN",
                                            "HF_TOKEN_PATH",
                                            "HF_HUB_OFFLINE",
                                            "HUGGING_FACE_HUB_TOKEN",
                                            "HF_HUB_DISABLE_IMPLICIT_TOKEN"};
  TemporaryDirectory folder_;
};

}  // namespace fovea::test
