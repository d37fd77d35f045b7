// Preloaded into a program, it holds open the windows in which another process could interfere:
// after a file of SLOW_MAP_BYTES or more was mapped, and before a file gets its name (SLOW_RENAME).
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

template <class Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

void hold() { std::this_thread::sleep_for(std::chrono::milliseconds(1500)); }

}  // namespace

extern "C" {

void* mmap(void* address, std::size_t size, int protection, int flags, int file, off_t offset) {
  void* mapped = original<decltype(mmap)>("mmap")(address, size, protection, flags, file, offset);
  const char* least = std::getenv("SLOW_MAP_BYTES");
  if (least != nullptr && file >= 0 && protection == PROT_READ &&
      size >= std::strtoull(least, nullptr, 10))
    hold();
  return mapped;
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  if (std::getenv("SLOW_RENAME") != nullptr) hold();
  return original<decltype(linkat)>("linkat")(from_folder, from, to_folder, to, flags);
}

int rename(const char* from, const char* to) {
  if (std::getenv("SLOW_RENAME") != nullptr) hold();
  return original<decltype(rename)>("rename")(from, to);
}

}  // extern "C"
