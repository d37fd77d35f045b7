// The program as a process to be killed.
#include "integration/fovea_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace fovea::test {

FoveaProcess::FoveaProcess(std::vector<std::string> arguments, const std::string& messages) {
  constexpr int kCannotStart = 127;
  constexpr mode_t kFileMode = 0600;
  arguments.insert(arguments.begin(), "fovea");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("fork failed");
  if (child_ > 0) return;
  for (const char* variable : {"HOME", "XDG_CACHE_HOME"}) ::unsetenv(variable);
  ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
  ::dup2(::open(messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kFileMode),
         STDERR_FILENO);
  ::execv(FOVEA_TEST_PROGRAM, argv.data());
  ::_exit(kCannotStart);
}

FoveaProcess::~FoveaProcess() {
  if (child_ < 0) return;
  signal(SIGKILL);
  (void)wait();
}

void FoveaProcess::signal(int number) const { ::kill(child_, number); }

int FoveaProcess::wait() {
  int status = 0;
  if (::waitpid(std::exchange(child_, -1), &status, 0) < 0) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace fovea::test
