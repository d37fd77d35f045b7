// Starting, talking to and ending a child, and the thread that starts decoder processes. The socket
// does not block: a process that neither reads nor answers is waited for in poll, between checks of
// the interrupt.
#include "media/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "core/blocked_signals.h"
#include "core/check.h"
#include "core/interrupt.h"
#include "core/local_socket.h"

namespace fovea::media {
namespace {

constexpr int kPollMs = 20;
constexpr int kSocketBufferBytes = 1 << 20;  // fewer changes between the two processes
constexpr auto kTimeToEnd = std::chrono::seconds(1);

/// Descriptors of the child: 0 the socket, 1 and 2 nowhere, no others.
class FileActions {
 public:
  explicit FileActions(int socket) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, socket, STDIN_FILENO);
    for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
      posix_spawn_file_actions_addopen(&actions_, output, "/dev/null", O_WRONLY, 0);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
  }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

/// No signal blocked, none ignored, a session of its own.
class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  [[nodiscard]] const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

/// The variables that lead a program to its libraries and plugins, and no secret of the host.
std::vector<std::string> environment(const std::string& program) {
  std::vector<std::string> variables{
      cat("FOVEA_PLUGIN_DIR=", std::filesystem::path(program).parent_path().string())};
  const char* const libraries = std::getenv("LD_LIBRARY_PATH");
  if (libraries != nullptr) variables.push_back(cat("LD_LIBRARY_PATH=", libraries));
  return variables;
}

/// With the null pointer that ends such a list. Refers to `texts`.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result(texts.size() + 1);
  std::ranges::transform(texts, result.begin(), [](std::string& text) { return text.data(); });
  return result;
}

/// @return false if the process has closed its end. @throws Error(kIo) for other failures.
bool is_done(Transfer transfer, const char* verb) {
  if (transfer == Transfer::kDone) return true;
  FOVEA_CHECK(errno == EPIPE || errno == ECONNRESET, kIo, "cannot ", verb,
              " a decoder process: ", std::strerror(errno));
  return false;
}

}  // namespace

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> texts{program};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment(program);
  const std::vector<char*> words = pointers(texts);
  const std::vector<char*> settings = pointers(variables);
  int ends[2] = {-1, -1};
  // Clients of a server read this: the place of the program does not concern them.
  const std::string name = std::filesystem::path(program).filename();
  FOVEA_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, kUnavailable,
              "cannot start ", name, ": ", std::strerror(errno));
  socket_.reset(ends[0]);
  const FileDescriptor socket_of_child(ends[1]);
  for (const int end : ends) {
    setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kSocketBufferBytes, sizeof(kSocketBufferBytes));
  }
  const int failed = posix_spawn(&pid_, program.c_str(), FileActions(ends[1]).get(),
                                 Attributes().get(), words.data(), settings.data());
  FOVEA_CHECK(failed == 0, kUnavailable, "cannot start ", name, ": ", std::strerror(failed));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::move(other.socket_)),
      status_(other.status_) {}

ChildProcess::~ChildProcess() {
  socket_.reset();
  kill();
}

void ChildProcess::kill() noexcept {
  if (!is_running()) return;
  ::kill(pid_, SIGKILL);
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

bool ChildProcess::is_running() {
  if (pid_ < 0) return false;
  const int found = waitpid(pid_, &status_, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return true;
  pid_ = -1;  // it ended; where the host reaps every child, it is not known how
  return false;
}

int ChildProcess::end() {
  const auto last = std::chrono::steady_clock::now() + kTimeToEnd;
  while (is_running() && std::chrono::steady_clock::now() < last) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill();
  return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
}

bool ChildProcess::wait(short events) const {
  check_interrupt_of_wait();
  pollfd entry{socket_.get(), events, 0};
  if (poll(&entry, 1, kPollMs) > 0) check_interrupt();  // the process has moved
  return true;
}

bool ChildProcess::send(std::span<const std::uint8_t> bytes, int descriptor) {
  return is_done(send_all(socket_.get(), std::as_bytes(bytes), descriptor,
                          [&](short events) { return wait(events); }),
                 "write to");
}

bool ChildProcess::receive(std::span<std::uint8_t> bytes) {
  return is_done(receive_all(socket_.get(), std::as_writable_bytes(bytes), nullptr,
                             [&](short events) { return wait(events); }),
                 "read from");
}

struct ProcessStarter::Impl {
  using Start = std::packaged_task<ChildProcess()>;

  void run(const std::stop_token& stop) {
    const BlockedSignals none;
    std::unique_lock lock(mutex);
    while (changed.wait(lock, stop, [&] { return !waiting.empty(); })) {
      Start next = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      next();
      lock.lock();
    }
  }

  std::mutex mutex;
  std::condition_variable_any changed;
  std::deque<Start> waiting;
  std::jthread thread{
      [this](const std::stop_token& stop) { run(stop); }};  // last: it uses the rest
};

ProcessStarter::ProcessStarter() : impl_(std::make_unique<Impl>()) {}
ProcessStarter::~ProcessStarter() = default;

ChildProcess ProcessStarter::start(const std::string& program,
                                   const std::vector<std::string>& arguments) {
  Impl::Start start([&] { return ChildProcess(program, arguments); });
  std::future<ChildProcess> child = start.get_future();
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->waiting.push_back(std::move(start));
  }
  impl_->changed.notify_one();
  return child.get();
}

}  // namespace fovea::media
