#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace fovea::test {

/// A Redis or Valkey server of one test, in memory, on a loopback port.
class RedisServer {
 public:
  /// The program of this machine; empty: there is none.
  static std::string program() {
    std::stringstream folders(std::getenv("PATH"));
    for (std::string folder; std::getline(folders, folder, ':');) {
      for (const char* const name : {"/redis-server", "/valkey-server"}) {
        if (access((folder + name).c_str(), X_OK) == 0) return folder + name;
      }
    }
    return {};
  }

  /// @param flags beside those that every server here has.
  explicit RedisServer(const std::vector<std::string>& flags = {}) : port_(free_port()) {
    std::vector<std::string> words{
        program(),      "--port", std::to_string(port_), "--bind",   "127.0.0.1", "--save", "",
        "--appendonly", "no",     "--logfile",           "/dev/null"};
    words.insert(words.end(), flags.begin(), flags.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    while (says("PING").empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ~RedisServer() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  [[nodiscard]] std::string url(const std::string& login = "", int database = 0) const {
    return "redis://" + login + "127.0.0.1:" + std::to_string(port_) + "/" +
           std::to_string(database);
  }
  void signal(int number) const { kill(process_, number); }
  /// The first line of the answer to a command in one line; empty: there is none.
  [[nodiscard]] std::string says(const std::string& command) const {
    const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in name = at(port_);
    std::string answer;
    if (connect(connection, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0) {
      const std::string line = command + "\r\n";
      (void)send(connection, line.data(), line.size(), MSG_NOSIGNAL);
      for (char c = 0; recv(connection, &c, 1, 0) == 1 && c != '\r';) answer += c;
    }
    close(connection);
    return answer;
  }

 private:
  static sockaddr_in at(std::uint16_t port) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return name;
  }
  /// One that nobody listens on now.
  static std::uint16_t free_port() {
    const int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name = at(0);
    socklen_t size = sizeof(name);
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    if (bind(one, generic, size) != 0 || getsockname(one, generic, &size) != 0) {
      throw std::runtime_error("no loopback port");
    }
    close(one);
    return ntohs(name.sin_port);
  }

  std::uint16_t port_;
  pid_t process_ = 0;
};

}  // namespace fovea::test
