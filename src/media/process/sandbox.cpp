// The sandbox of a decoder process: resource limits and a seccomp filter. Source: Linux man pages
// prctl(2), seccomp(2) and getrlimit(2).
#include "media/process/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <vector>

#include "core/check.h"

namespace fovea::media {
namespace {

/// Memory, bytes on descriptors that are open already, the end, and what the C library asks for on
/// the way.
constexpr std::array kAllowed{SYS_read,
                              SYS_pread64,
                              SYS_recvmsg,
                              SYS_close,
                              SYS_write,
                              SYS_munmap,
                              SYS_mremap,
                              SYS_brk,
                              SYS_madvise,
                              SYS_futex,
                              SYS_exit,
                              SYS_exit_group,
                              SYS_restart_syscall,
                              SYS_clock_gettime,
                              SYS_gettimeofday,
                              SYS_getpid,
                              SYS_gettid,
                              SYS_rt_sigreturn,
                              SYS_rt_sigprocmask,
                              SYS_getrandom,
                              SYS_sched_yield,
                              SYS_sched_getaffinity,
                              SYS_sysinfo};

/// Fail as if there were no such file. Libraries that look for one go on without it, and streams of
/// stdio without what fstat() says, which is fstat from glibc 2.39 on and newfstatat before. A
/// system that is younger than x86-64 has no calls that name a file without a folder.
#if defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr std::array kAbsent{SYS_openat, SYS_faccessat, SYS_fstat, SYS_newfstatat, SYS_readlinkat};
#else
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr std::array kAbsent{SYS_open,  SYS_openat,     SYS_access,   SYS_faccessat, SYS_stat,
                             SYS_fstat, SYS_newfstatat, SYS_readlink, SYS_readlinkat};
#endif

/// Allowed unless they ask for memory that can be executed.
constexpr std::array kWithoutCode{SYS_mmap, SYS_mprotect};

constexpr std::uint32_t kKill = SECCOMP_RET_KILL_PROCESS;

using Filter = std::vector<sock_filter>;

/// Returns `verdict` for the system call whose number was loaded last.
void add_verdict(Filter& filter, long call, std::uint32_t verdict) {
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, verdict));
}

/// Looks at the lower half of the third argument, `prot` of both calls.
void add_without_code(Filter& filter, long call) {
  constexpr std::uint32_t kProtection = offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t);
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 4));
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kProtection));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, kKill));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

Filter make_filter() {
  Filter filter;
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, kKill));
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (const long call : kAllowed) add_verdict(filter, call, SECCOMP_RET_ALLOW);
  for (const long call : kAbsent) add_verdict(filter, call, SECCOMP_RET_ERRNO | ENOENT);
  for (const long call : kWithoutCode) add_without_code(filter, call);
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, kKill));
  return filter;
}

/// Whether the system took the filter.
bool filter_system_calls() {
  Filter filter = make_filter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Leaves a limit that is lower already.
/// @param last for CPU time: a process that goes on gets a signal at `most`, and its end here.
void limit(int resource, std::uint64_t most, const char* what, std::uint64_t last = 0) {
  const auto kind = static_cast<__rlimit_resource>(resource);
  rlimit both{};
  FOVEA_CHECK(getrlimit(kind, &both) == 0, kIo, "cannot read the limit of ", what, ": ",
              std::strerror(errno));
  both.rlim_max = std::min<rlim_t>(both.rlim_max, std::max(most, last));
  both.rlim_cur = std::min<rlim_t>({both.rlim_cur, both.rlim_max, most});
  FOVEA_CHECK(setrlimit(kind, &both) == 0, kIo, "cannot limit ", what, " to ", most, ": ",
              std::strerror(errno));
}

std::uint64_t address_space_bytes() {
  std::uint64_t pages = 0;
  FOVEA_CHECK(std::ifstream("/proc/self/statm") >> pages, kIo, "cannot read /proc/self/statm");
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Isolation enter_sandbox(const SandboxLimits& limits) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != limits.host_pid) _exit(1);  // it ended before that
  prctl(PR_SET_DUMPABLE, 0);
  limit(RLIMIT_AS, address_space_bytes() + limits.address_bytes, "address space");
  limit(RLIMIT_CPU, limits.cpu_seconds, "CPU time", limits.cpu_seconds + 1);
  limit(RLIMIT_CORE, 0, "core dumps");
  limit(RLIMIT_FSIZE, 0, "files");
  limit(RLIMIT_NPROC, 0, "processes");
  limit(RLIMIT_NOFILE, STDERR_FILENO + 2, "descriptors");  // of a video
  const bool filters = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && filter_system_calls();
  return filters ? Isolation::kSeccomp : Isolation::kLimits;
}

}  // namespace fovea::media
