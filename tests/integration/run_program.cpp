// Starting the program as a user does, with pipes for both streams.
#include "integration/run_program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>

namespace fovea::test {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe open_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  return {ends[0], ends[1]};
}

/// Child side: never returns.
[[noreturn]] void execute(std::vector<char*>& argv, const std::string& folder,
                          const std::string& caches, const std::string& program, const Pipe& out,
                          const Pipe& err) {
  constexpr int kCannotStart = 127;
  if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(kCannotStart);
  for (const char* variable : {"HOME", "XDG_CACHE_HOME"}) ::unsetenv(variable);
  if (!caches.empty()) ::setenv("XDG_CACHE_HOME", caches.c_str(), 1);
  ::dup2(out.write_end, STDOUT_FILENO);
  ::dup2(err.write_end, STDERR_FILENO);
  ::execv(program.c_str(), argv.data());
  ::_exit(kCannotStart);
}

/// Reads both streams as they come, so that neither pipe fills up, until both are closed.
void drain(const Pipe& out, const Pipe& err, ProgramResult& result) {
  std::array<pollfd, 2> open{{{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}}};
  const std::array<std::string*, 2> text{&result.out, &result.err};
  std::array<char, 4096> buffer{};
  while (open[0].fd >= 0 || open[1].fd >= 0) {
    if (::poll(open.data(), open.size(), -1) < 0) throw std::runtime_error("poll failed");
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (open[i].fd < 0 || open[i].revents == 0) continue;
      const ssize_t count = ::read(open[i].fd, buffer.data(), buffer.size());
      if (count > 0) {
        text[i]->append(buffer.data(), static_cast<std::size_t>(count));
      } else {
        ::close(open[i].fd);
        open[i].fd = -1;
      }
    }
  }
}

}  // namespace

ProgramResult run_fovea(std::vector<std::string> arguments, const std::string& folder,
                        const std::string& caches, const std::string& program) {
  arguments.insert(arguments.begin(), "fovea");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  const Pipe out = open_pipe();
  const Pipe err = open_pipe();
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) execute(argv, folder, caches, program, out, err);
  ::close(out.write_end);
  ::close(err.write_end);

  ProgramResult result;
  drain(out, err, result);
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

void expect_failure(const ProgramResult& result, int exit_code, const std::string& part) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, ::testing::StartsWith("fovea: error: "));
  EXPECT_THAT(result.err, ::testing::HasSubstr(part));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(result.err.ends_with('\n'));
}

void expect_success(const ProgramResult& result) {
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

}  // namespace fovea::test
