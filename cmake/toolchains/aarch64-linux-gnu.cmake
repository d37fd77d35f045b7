# Cross compilation for 64-bit ARM with Debian's cross compiler. `scripts/setup --arm` installs what it needs
# and unpacks the libraries into the folder below; QEMU runs the programs, as the processor that QEMU_CPU
# names, such as `max` (all extensions, the default) or `cortex-a72` (none).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
cmake_path(ABSOLUTE_PATH CMAKE_CURRENT_LIST_DIR OUTPUT_VARIABLE fovea_folder)
cmake_path(SET CMAKE_SYSROOT NORMALIZE ${fovea_folder}/../../build/sysroot/arm64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# `scripts/setup --arm-cuda` makes it. Another nvcc has no libraries for ARM, so CMake finds that it does not work.
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
if(EXISTS ${CMAKE_SYSROOT}/usr/local/cuda/bin/nvcc)
  set(CMAKE_CUDA_COMPILER ${CMAKE_SYSROOT}/usr/local/cuda/bin/nvcc)
endif()
set(CMAKE_FIND_ROOT_PATH ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
# By the environment, which programs hand on to those that they start.
set(CMAKE_CROSSCOMPILING_EMULATOR env QEMU_LD_PREFIX=${CMAKE_SYSROOT} qemu-aarch64-static)
# A cross compiler looks for other linkers than its own only where it is told to.
find_program(fovea_lld ld.lld)
if(fovea_lld)
  file(MAKE_DIRECTORY ${CMAKE_SYSROOT}/linker)
  file(CREATE_LINK ${fovea_lld} ${CMAKE_SYSROOT}/linker/ld.lld SYMBOLIC)
  set(CMAKE_CXX_FLAGS_INIT -B${CMAKE_SYSROOT}/linker)
endif()
