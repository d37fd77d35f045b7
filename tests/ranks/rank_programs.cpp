#include "ranks/rank_programs.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "core/check.h"
#include "ranks/transport/socket.h"

namespace fovea::test {

namespace {

struct Process {
  pid_t pid = -1;
  FileDescriptor output;
};

Process start(const RankPrograms& programs, int rank) {
  std::vector<std::string> words{FOVEA_RANK_PROGRAM,
                                 std::to_string(rank),
                                 std::to_string(programs.size),
                                 programs.rendezvous,
                                 std::to_string(programs.time_limit.count()),
                                 std::to_string(programs.num_items),
                                 rank == programs.ending_rank ? programs.end : "never",
                                 programs.model,
                                 programs.to_blocks ? "blocks" : "results"};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  Process process{.output = FileDescriptor(pipe[0])};
  const FileDescriptor inherited(pipe[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, inherited.get(), STDOUT_FILENO);
  const int failure =
      posix_spawn(&process.pid, FOVEA_RANK_PROGRAM, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw std::runtime_error("posix_spawn failed");
  return process;
}

RankOutcome await(Process& process) {
  RankOutcome outcome;
  std::array<char, 4096> buffer{};
  for (ssize_t bytes = 0; (bytes = read(process.output.get(), buffer.data(), buffer.size())) > 0;) {
    outcome.output.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
  int status = 0;
  (void)waitpid(process.pid, &status, 0);
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return outcome;
}

}  // namespace

std::vector<RankOutcome> run_rank_programs(const RankPrograms& programs) {
  std::vector<Process> processes;
  processes.reserve(static_cast<std::size_t>(programs.size));
  for (int rank = 0; rank < programs.size; ++rank) processes.push_back(start(programs, rank));
  std::vector<RankOutcome> outcomes(processes.size());
  std::vector<std::jthread> waiting;
  const auto ending = static_cast<std::size_t>(programs.ending_rank);
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    if (rank == ending) continue;
    waiting.emplace_back([&, rank] { outcomes[rank] = await(processes[rank]); });
  }
  waiting.clear();
  if (ending < processes.size()) {
    if (programs.end == "hang" || programs.end == "stop")
      (void)kill(processes[ending].pid, SIGKILL);
    outcomes[ending] = await(processes[ending]);
  }
  return outcomes;
}

}  // namespace fovea::test
